"""One stall of known length in the middle of a run, and what each program makes of it.

The server is stopped for 5 ms while messages go to and fro, one a millisecond. The largest half
round trip must be about half of the stall, and the standard deviation that of the samples.
"""

import math
import os
import signal
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable, Optional

from . import parse
from .process import NotMeasured, Site, measure
from .subjects import ON_CLIENT, ON_SERVER, Subject

MESSAGES = 1000
STALL_SECONDS = 0.005
# A message of RC is two packets there and two back: so many are the middle of a run.
MIDDLE_PACKETS = 2 * MESSAGES
# The run may be over before the server is found, and perftest may misjudge its clock.
TRIES = 3
# How long the middle is waited for on an ordinary machine.
WAIT_SECONDS = 10
# What has been sent, below the port's folder, on whichever device.
COUNTERS = ("hw_counters/sent_pkts", "counters/port_xmit_packets")

_LATENCY = "--transport verbs --device {device} --size 64 --wait busy --inline off"
_PERFTEST = "ib_send_lat -d {device} -F -p {port} -s 64 -I 0 -n {count} --latency_gap=1000000 -U"


@dataclass(frozen=True)
class Told:
    """Half round trips in us: as printed, and by the samples that the program itself lists."""

    program: str
    printed_max: str
    printed_sd: str
    sample_max: Optional[float] = None
    sample_sd: Optional[float] = None
    stopped_ms: Optional[float] = None


def deviation(values: list[float]) -> float:
    """The standard deviation with n - 1, by two passes."""
    if len(values) < 2:
        return math.nan
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


def of_perftest(text: str) -> Told:
    longest, sd = parse.perftest_spread_us(text)
    samples = parse.perftest_samples_us(text)
    return Told("ib_send_lat", longest, sd, max(samples), deviation(samples))


def of_wiregauge(text: str) -> Told:
    """What the record says, in which a lost message would be infinite."""
    summary = parse.wiregauge_summary(text, "half_rtt")
    try:
        longest, sd = float(summary["max"]) / 1e3, float(summary["sd"]) / 1e3
    except (KeyError, TypeError, ValueError) as error:
        raise parse.Unreadable("no max or sd of half_rtt in the record") from error
    return Told("wiregauge", f"{longest:.2f}", f"{sd:.2f}")


def every_subject() -> list[tuple[Subject, Callable[[str], Told]]]:
    def subject(name: str, client: str, server: Optional[str]) -> Subject:
        return Subject(
            name=name,
            group="stall",
            client=client,
            server=server,
            read=lambda text: text,
            unit="",
            figure="",
            server_ends=True,
            count=MESSAGES,
        )

    ours = "{wiregauge} latency " + _LATENCY + " --pause 1ms --count {count} --rounds 1"
    return [
        (subject("wiregauge stall", ours + " --cpus {client},{server} --json", None), of_wiregauge),
        (
            subject("ib_send_lat stall", ON_CLIENT + _PERFTEST + " 127.0.0.1",
                    ON_SERVER + _PERFTEST),
            of_perftest,
        ),
    ]


def packets(device: str, classes: str = "/sys/class/infiniband") -> int:
    """What all ports have sent."""
    for name in COUNTERS:
        files = list(Path(classes).glob(f"{device}/ports/*/{name}"))
        if files:
            return sum(int(file.read_text(encoding="ascii")) for file in files)
    raise NotMeasured(f"{device} does not count what it sends")


def pinned_below(parent: int, cpu: int, processes: str = "/proc") -> list[int]:
    """Processes that descend from `parent` and run on this CPU alone."""
    parents, there = {}, []
    for status in Path(processes).glob("[0-9]*/status"):
        try:
            fields = dict(
                line.split(":\t", 1)
                for line in status.read_text(encoding="utf-8", errors="replace").splitlines()
                if ":\t" in line
            )
        except OSError:
            continue
        process = int(status.parent.name)
        parents[process] = int(fields.get("PPid", "0"))
        if fields.get("Cpus_allowed_list") == str(cpu) and fields.get("State", "")[:1] != "Z":
            there.append(process)

    def descends(process: int) -> bool:
        while process in parents and process != parent:
            process = parents[process]
        return process == parent

    return [process for process in there if process != parent and descends(process)]


class Stopper(threading.Thread):
    """Waits for the middle of the run, and stops the server."""

    def __init__(self, device: str, cpu: int, slowness: int):
        super().__init__(daemon=True)
        self.device, self.cpu = device, cpu
        self.deadline = time.monotonic() + WAIT_SECONDS * slowness
        self.start_packets = packets(device)
        self.stopped_ms: Optional[float] = None
        self.ended = threading.Event()

    def run(self) -> None:
        while packets(self.device) - self.start_packets < MIDDLE_PACKETS:
            if self.ended.wait(0.002) or time.monotonic() > self.deadline:
                return
        servers = pinned_below(os.getpid(), self.cpu)
        if len(servers) != 1:
            return
        try:
            os.kill(servers[0], signal.SIGSTOP)
            before = time.monotonic()
            time.sleep(STALL_SECONDS)
            os.kill(servers[0], signal.SIGCONT)
            self.stopped_ms = (time.monotonic() - before) * 1e3
        except ProcessLookupError:
            return


def _once(subject: Subject, read: Callable[[str], Told], site: Site) -> Told:
    stopper = Stopper(site.programs["device"], site.server, site.slowness)
    stopper.start()
    try:
        text = measure(subject, replace(site, quick=False)).figure
    finally:
        stopper.ended.set()
        stopper.join()
    if stopper.stopped_ms is None:
        raise NotMeasured("the server was not met in the middle of the run")
    return replace(read(text), stopped_ms=stopper.stopped_ms)


def run(site: Site, tell: Callable[[str], None]) -> list[Told]:
    """Each program until it has been met once, one after the other."""
    found = []
    for subject, read in every_subject():
        for _ in range(TRIES):
            try:
                told = _once(subject, read, site)
            except (NotMeasured, parse.Unreadable) as error:
                tell(f"  {subject.name:28} not measured: {error}")
                continue
            found.append(told)
            tell(f"  {subject.name:28} max {told.printed_max} us, sd {told.printed_sd} us")
            break
    return found


def table(found: list[Told]) -> str:
    """What was printed beside what the samples say."""
    lines = [
        f"One stall of {STALL_SECONDS * 1e3:.0f} ms in {MESSAGES} messages, half round trips in us",
        f"{'program':12} {'stopped ms':>10} {'max printed':>12} {'of samples':>11}"
        f" {'sd printed':>11} {'of samples':>11}",
    ]

    def number(value: Optional[float]) -> str:
        return "" if value is None else f"{value:.2f}"

    for told in found:
        lines.append(
            f"{told.program:12} {number(told.stopped_ms):>10} {told.printed_max:>12}"
            f" {number(told.sample_max):>11} {told.printed_sd:>11} {number(told.sample_sd):>11}"
        )
    return "\n".join(line.rstrip() for line in lines)
