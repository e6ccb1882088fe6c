"""MPI: wiregauge's transport beside a bare loop and NetPIPE, under the same launcher and CPUs.

`{openmpi}` and `{mpich}` are folders of the bare loop, built by each MPI's own compiler wrapper.
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


def _netpipe(name: str) -> Subject:
    """NetPIPE at one size: the mean of its best trial. It pins nothing, so its launcher does, and
    prints its figure on stderr."""
    launcher, program = IMPLEMENTATIONS[name.split()[0]]
    size = LATENCY_SIZE
    return Subject(
        name=f"netpipe {name}",
        group=name,
        client="sh -c 'exec " + launcher.replace("none", "core")
        + f" -n 2 {program} -l {size} -u {size} -p 0" + " -n {count} -o netpipe.out 2>&1'",
        read=lambda text: parse.netpipe_half_rtt_ns(text, size),
        unit="ns",
        figure="mean",
        count=COUNTS["latency"],
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
            _netpipe(latency),
            _ours(stream, f"bandwidth --size {STREAM_SIZE}", parse.wiregauge_bandwidth,
                  "B/s", "mean", counts["stream"]),
            _bare(stream, "stream", parse.bare_bytes_per_s, "B/s", "mean", counts["stream"]),
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
        name = f"{implementation} allreduce"
        what = f"{implementation} allreduce {ALLREDUCE_SIZE} B, 2 ranks"
        limit = Limit(1.05, at_most=True)
        rows.append(Row(what, f"wiregauge {name}", (f"bare {name}",), limit))
    return rows
