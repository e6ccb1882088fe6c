"""MPI: wiregauge's transport beside a bare loop and NetPIPE, under the same launcher and CPUs.

`{openmpi}` and `{mpich}` are folders of the bare loop, built by each MPI's own compiler wrapper;
`{NPopenmpi}` and `{NPmpich2}` are NetPIPE's programs.
"""

from . import parse
from .ratios import Limit
from .rows import Row
from .subjects import Subject

# Implementation, its launcher with what leaves the CPUs to the program, NetPIPE's program for it.
IMPLEMENTATIONS = {
    "openmpi": ("mpirun.openmpi --allow-run-as-root --bind-to none", "NPopenmpi"),
    "mpich": ("mpirun.mpich -bind-to none", "NPmpich2"),
}
# Debian's packages.
PACKAGES = {
    "mpicc.openmpi": "libopenmpi-dev",
    "mpicc.mpich": "libmpich-dev",
    "mpirun.openmpi": "openmpi-bin",
    "mpirun.mpich": "mpich",
    "NPopenmpi": "netpipe-openmpi",
    "NPmpich2": "netpipe-mpich2",
}
LATENCY_SIZE = 64
STREAM_SIZE = 65_536
ALLREDUCE_SIZE = 32
# NetPIPE's, fixed when it is compiled; it prints the best of them.
TRIALS = 3
COUNTS = {"latency": 500_000, "stream": 50_000, "allreduce": 100_000}
SIZES = {"pingpong": LATENCY_SIZE, "stream": STREAM_SIZE, "allreduce": ALLREDUCE_SIZE}


def _ours(name: str, pattern: str, read, unit: str, figure: str, count: int) -> Subject:
    return Subject(
        name=f"wiregauge {name}",
        group=name,
        client="{wiregauge} " + pattern + " --transport mpi --mpirun mpirun."
        + name.split()[0] + " --count {count} --rounds 1 --cpus {client},{server} --json",
        read=read,
        unit=unit,
        figure=figure,
        count=count,
    )


def _bare(name: str, loop: str, read, unit: str, figure: str, count: int) -> Subject:
    implementation = name.split()[0]
    launcher, _ = IMPLEMENTATIONS[implementation]
    size = SIZES[loop]
    return Subject(
        name=f"bare {name}",
        group=name,
        client=f"{launcher} -n 2 " + "{" + implementation + "}/mpi "
        + f"{loop} {size} " + "{count} {client} {server}",
        read=read,
        unit=unit,
        figure=figure,
        count=count,
    )


def _ours_as_netpipe(name: str) -> Subject:
    """The best of as many rounds as NetPIPE has trials, and as there in the processes of one
    launch: what differs between processes is then no choice for the best."""
    launcher, _ = IMPLEMENTATIONS[name.split()[0]]
    return Subject(
        name=f"wiregauge {name}, best of {TRIALS}",
        group=name,
        client=f"{launcher} -n 2 " + "{wiregauge}"
        + f" bandwidth --size {STREAM_SIZE} --transport mpi --rounds {TRIALS}"
        + " --count {count} --cpus {client},{server} --json",
        read=lambda text: parse.wiregauge_best_bandwidth(text, TRIALS),
        unit="B/s",
        figure="best mean",
        count=COUNTS["stream"],
    )


def _netpipe(name: str, options: str, size: int, read, unit: str, count: int) -> Subject:
    """NetPIPE at one size. It pins nothing, and prints its figure on stderr."""
    launcher, program = IMPLEMENTATIONS[name.split()[0]]
    words = "{" + program + "}" + f" {options}-l {size} -u {size} -p 0 -n " + "{count}"
    ranks = " : ".join(
        f"-n 1 taskset -c {cpu} {words} -o netpipe.out" for cpu in ("{client}", "{server}")
    )
    return Subject(
        name=f"netpipe {name}",
        group=name,
        client=f"sh -c 'exec {launcher} {ranks} 2>&1'",
        read=lambda text: read(text, size),
        unit=unit,
        figure="mean",
        count=count,
    )


def every_subject() -> dict[str, Subject]:
    """All of them by name."""
    found = []
    for implementation in IMPLEMENTATIONS:
        latency, stream = f"{implementation} latency", f"{implementation} stream"
        allreduce = f"{implementation} allreduce"
        counts = COUNTS
        found += [
            _ours(latency, f"latency --size {LATENCY_SIZE}", parse.wiregauge_half_rtt_p50_ns,
                  "ns", "p50", counts["latency"]),
            _bare(latency, "pingpong", parse.bare_p50_ns, "ns", "p50", counts["latency"]),
            _netpipe(latency, "", LATENCY_SIZE, parse.netpipe_half_rtt_ns, "ns", counts["latency"]),
            _ours(stream, f"bandwidth --size {STREAM_SIZE}", parse.wiregauge_bandwidth,
                  "B/s", "mean", counts["stream"]),
            _bare(stream, "stream", parse.bare_bytes_per_s, "B/s", "mean", counts["stream"]),
            _ours_as_netpipe(stream),
            # One way (-s), from and into 10 MB (-I) and not 64 KiB that stay in the cache.
            _netpipe(stream, "-s -I ", STREAM_SIZE, parse.netpipe_bandwidth, "B/s",
                     counts["stream"]),
            _ours(allreduce, f"collective --collective allreduce --size {ALLREDUCE_SIZE}",
                  parse.wiregauge_collective_p50_ns, "ns", "p50", counts["allreduce"]),
            _bare(allreduce, "allreduce", parse.bare_p50_ns, "ns", "p50", counts["allreduce"]),
        ]
    return {subject.name: subject for subject in found}


def every_row() -> list[Row]:
    rows = []
    for implementation in IMPLEMENTATIONS:
        name = f"{implementation} latency"
        what = f"{implementation} half_rtt {LATENCY_SIZE} B"
        limit = Limit(1.03, at_most=True)
        rows.append(Row(what, f"wiregauge {name}", (f"bare {name}",), limit))
        rows.append(Row(what, f"wiregauge {name}", (f"netpipe {name}",), limit))
        name = f"{implementation} stream"
        what = f"{implementation} bandwidth 64 KiB"
        limit = Limit(0.98, at_most=False)
        rows.append(Row(what, f"wiregauge {name}", (f"bare {name}",), limit))
        ours = f"wiregauge {name}, best of {TRIALS}"
        rows.append(Row(f"{what}, best of {TRIALS}", ours, (f"netpipe {name}",), limit))
        name = f"{implementation} allreduce"
        what = f"{implementation} allreduce {ALLREDUCE_SIZE} B, 2 ranks"
        limit = Limit(1.05, at_most=True)
        rows.append(Row(what, f"wiregauge {name}", (f"bare {name}",), limit))
    return rows
