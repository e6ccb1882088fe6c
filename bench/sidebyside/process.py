"""Runs a subject once: server, client, an end to both. Ends nothing that it has not started."""

import os
import re
import resource
import shlex
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from typing import Optional

from .parse import Unreadable
from .subjects import Subject

# A run takes a few seconds; a slow machine gets ten times that.
RUN_SECONDS = 60
READY_SECONDS = 5
# Between the request to end and the end by force.
END_SECONDS = 3
# Below the range from which the kernel takes ports of clients.
PORTS = range(20_000, 32_000)


@dataclass(frozen=True)
class Run:
    """One run of a subject."""

    # What its parser has read.
    figure: float
    # Voluntary context switches of all its processes, set-up included, for each message.
    switches: float


class NotMeasured(Exception):
    """Why a subject yielded no figure, a sentence."""


@dataclass
class Site:
    """What fills the braces of a command."""

    programs: dict[str, str]  # wiregauge, bare, stats: where they are
    missing: dict[str, str]  # and why one is not there
    client: int
    server: int
    quick: bool
    # Of this machine, in times of an ordinary one: what is waited for takes so much longer.
    slowness: int = 1
    used_ports: set[int] = field(default_factory=set)

    def fill(self, template: str, subject: Subject, ports: tuple[int, int]) -> list[str]:
        for name, reason in self.missing.items():
            if "{" + name + "}" in template:
                raise NotMeasured(reason)
        return shlex.split(
            template.format(
                **self.programs,
                client=self.client,
                server=self.server,
                port=ports[0],
                port2=ports[1],
                count=subject.messages(self.quick),
                seconds=1,
                # sockperf measures 0.45 s less than it is told.
                seconds2=1 if self.quick else 2,
            )
        )

    def free_port(self) -> int:
        for port in PORTS:
            if port in self.used_ports:
                continue
            self.used_ports.add(port)
            try:
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    with socket.socket(socket.AF_INET, kind) as probe:
                        probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
        raise NotMeasured("no free port is left")


def is_bound(protocol: str, port: int, tables: str = "/proc/net") -> bool:
    """Whether some socket listens on (udp: is bound to) the port. Asks the kernel's table rather
    than the server, which would take a probe for its client."""
    state = "0A" if protocol == "tcp" else "07"
    for table in (protocol, protocol + "6"):
        try:
            with open(f"{tables}/{table}", encoding="ascii") as lines:
                for line in list(lines)[1:]:
                    fields = line.split()
                    if fields[3] == state and int(fields[1].split(":")[1], 16) == port:
                        return True
        except FileNotFoundError:
            continue
    return False


def reason_of(text: str) -> str:
    """What a program said on stderr, short enough for a table."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # The thread's number of a panic differs each time and tells nothing.
    lines = [re.sub(r"^thread '(.*?)' \(\d+\)", r"thread '\1'", line) for line in lines]
    kept = " ".join(lines[:2])
    return kept if len(kept) <= 160 else kept[:157] + "..."


def end(child: subprocess.Popen) -> None:
    """Asks the child to end, and makes it end."""
    if child.poll() is not None:
        return
    child.terminate()
    try:
        child.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _start_server(
    command: list[str], subject: Subject, port: int, place: dict, log, slowness: int
) -> subprocess.Popen:
    server = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, **place
    )
    deadline = time.monotonic() + READY_SECONDS * slowness
    while not is_bound(subject.ready, port):
        if server.poll() is not None or time.monotonic() > deadline:
            end(server)
            log.seek(0)
            said = reason_of(log.read().decode(errors="replace"))
            raise NotMeasured(f"{subject.program}'s server did not listen: {said or 'no word'}")
        time.sleep(0.02)
    return server


def _run_client(command: list[str], subject: Subject, place: dict, slowness: int) -> str:
    client = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        **place,
    )
    limit = RUN_SECONDS * slowness
    try:
        output, said = client.communicate(timeout=limit)
    except subprocess.TimeoutExpired as error:
        raise NotMeasured(f"{subject.program} took more than {limit} s") from error
    finally:
        end(client)
    if client.returncode != 0:
        raise NotMeasured(
            f"{subject.program} exited with {client.returncode}: "
            f"{reason_of(said) or reason_of(output) or 'no word'}"
        )
    return output


def voluntary_switches() -> int:
    """Those of all processes below this one that have ended and were waited for."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw


def measure(subject: Subject, site: Site) -> Run:
    """One run, or `NotMeasured`."""
    before = voluntary_switches()
    figure = _figure(subject, site)
    messages = max(1, subject.messages(site.quick))
    return Run(figure, (voluntary_switches() - before) / messages)


def _figure(subject: Subject, site: Site) -> float:
    ports = (site.free_port(), site.free_port())
    client = site.fill(subject.client, subject, ports)
    server: Optional[subprocess.Popen] = None
    # A directory of its own: nothing that a program leaves behind stays.
    with tempfile.TemporaryDirectory(prefix="sidebyside-") as scratch:
        place = {"cwd": scratch, "env": {**os.environ, **(subject.environment or {})}}
        with tempfile.TemporaryFile() as log:
            try:
                if subject.server:
                    command = site.fill(subject.server, subject, ports)
                    server = _start_server(
                        command, subject, ports[0], place, log, site.slowness
                    )
                return subject.read(_run_client(client, subject, place, site.slowness))
            except FileNotFoundError as error:
                raise NotMeasured(f"{error.filename} is not there") from error
            except Unreadable as error:
                raise NotMeasured(f"{subject.program}: {error}") from error
            finally:
                if server and subject.server_ends:
                    try:
                        server.wait(END_SECONDS)
                    except subprocess.TimeoutExpired:
                        pass
                if server:
                    end(server)
