"""From outside: the testbed is started, and each of its two processors kept on a CPU of its own.

Without, one run of ten on a loaded host took 2 to 4 ms a message instead of 20 us. Likely both were
on one CPU while something else took the other: ends that spin then meet once a time slice.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from .build import ROOT

PROCESSORS = 2
EMULATOR = "qemu-system"
# What the command inside says first: both processors have run by then.
STARTED = "round 1 of"


def _stat(path: Path) -> tuple[str, list[str]]:
    """A process's or thread's name, and what stands behind it."""
    before, after = path.read_text(encoding="ascii", errors="replace").rsplit(")", 1)
    return before.split("(", 1)[1], after.split()


def emulators_below(parent: int, processes: str = "/proc") -> list[int]:
    """The emulators that descend from a process."""
    children: dict[int, list[int]] = {}
    names = {}
    for stat in Path(processes).glob("[0-9]*/stat"):
        try:
            name, fields = _stat(stat)
        except OSError:
            continue
        process = int(stat.parent.name)
        names[process] = name
        children.setdefault(int(fields[1]), []).append(process)
    found, left = [], [parent]
    while left:
        process = left.pop()
        left += children.get(process, [])
        if names.get(process, "").startswith(EMULATOR):
            found.append(process)
    return found


def processors_of(emulator: int, processes: str = "/proc") -> list[int]:
    """Its busiest threads, which are the emulated processors."""
    taken = []
    for stat in Path(processes).glob(f"{emulator}/task/*/stat"):
        _, fields = _stat(stat)
        taken.append((int(fields[11]) + int(fields[12]), int(stat.parent.name)))
    return sorted(thread for _, thread in sorted(taken)[-PROCESSORS:])


def keep_apart(parent: int) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    for emulator in emulators_below(parent):
        for cpu, thread in zip(cpus, processors_of(emulator)):
            os.sched_setaffinity(thread, {cpu})


def minutes(rounds: int) -> int:
    """How long so many rounds may take: on a loaded host one took a minute."""
    return 10 + 2 * rounds


def run(command: list[str], program: Path, results: Path, longest_minutes: int) -> int:
    """Runs a command in the testbed that `program` makes, and moves what it leaves in /out to
    `results`; the command's exit code."""
    with tempfile.TemporaryDirectory(prefix="sidebyside-") as folder:
        out = Path(folder) / "out"
        options = ["--timeout", f"{longest_minutes}min", "--out", str(out)]
        whole = [str(ROOT / "testbed" / "rdma"), *options, "--", *command]
        code = _run_machine(whole, {**os.environ, "WIREGAUGE": str(program)})
        for file in sorted(out.glob("*.json")):
            results.mkdir(parents=True, exist_ok=True)
            print(f"written to {shutil.move(file, results / file.name)}", flush=True)
    return code


def _run_machine(command: list[str], environment: dict[str, str]) -> int:
    machine = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace",
    )
    kept = False
    try:
        for line in machine.stdout:
            if not kept and line.startswith(STARTED):
                keep_apart(machine.pid)
                kept = True
            print(line, end="", flush=True)
        return machine.wait()
    finally:
        if machine.poll() is None:
            machine.terminate()
            machine.wait()
