"""Soft-RoCE in a machine with an emulated processor: what keeps both programs from waiting for the
kernel's tick instead of for a message. Put back as it was at the end.

Soft-RoCE works in soft interrupts on the CPU that posts. Two things delay them by milliseconds: a
virtual CPU that has halted wakes late, and once the kernel's thread for soft interrupts (ksoftirqd)
is to run it competes with the process that spins. So each CPU gets a process that spins at the idle
priority (any other goes first), and ksoftirqd goes before ordinary processes.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Optional

# Found in /proc/PID/stat, where a name stands in parentheses.
SOFT_INTERRUPTS = "(ksoftirqd/"
SPIN = "import os\nos.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\nwhile True: pass\n"


def is_software(device: str, classes: str = "/sys/class/infiniband") -> bool:
    """Whether the device has no adapter below it, as Soft-RoCE and Soft-iWARP."""
    folder = Path(classes) / device
    return folder.exists() and not (folder / "device").exists()


def first_device(classes: str = "/sys/class/infiniband") -> Optional[str]:
    """The first by name with a port that is up."""
    for folder in sorted(Path(classes).glob("*")):
        for state in folder.glob("ports/*/state"):
            if "ACTIVE" in state.read_text(encoding="ascii"):
                return folder.name
    return None


def threads_of_soft_interrupts(processes: str = "/proc") -> list[int]:
    found = []
    for stat in Path(processes).glob("[0-9]*/stat"):
        try:
            if SOFT_INTERRUPTS in stat.read_text(encoding="ascii", errors="replace"):
                found.append(int(stat.parent.name))
        except OSError:
            continue
    return sorted(found)


class Awake:
    """While it is entered, the given CPUs never halt and soft interrupts go first."""

    def __init__(self, cpus: tuple[int, ...]):
        self.cpus = cpus
        self.spinners: list[subprocess.Popen] = []
        self.before: list[tuple[int, int, os.sched_param]] = []

    def __enter__(self):
        for thread in threads_of_soft_interrupts():
            before = (thread, os.sched_getscheduler(thread), os.sched_getparam(thread))
            os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(1))
            self.before.append(before)
        for cpu in self.cpus:
            command = ["taskset", "-c", str(cpu), sys.executable, "-c", SPIN]
            self.spinners.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))
        return self

    def __exit__(self, *_):
        for spinner in self.spinners:
            spinner.kill()
            spinner.wait()
        for thread, policy, param in self.before:
            os.sched_setscheduler(thread, policy, param)
