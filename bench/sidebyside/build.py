"""Makes what is measured: the distributed binary, bare loops, the statistics bench, the peers."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Callable, Optional

from .process import reason_of
from .subjects import PACKAGES

ROOT = Path(__file__).resolve().parents[2]
BARE = ROOT / "bench" / "bare"
OUT = ROOT / "bench" / "build"
CC = ["cc", "-O2", "-std=gnu11", "-Wall", "-Wextra"]
# Program, source, flags.
LOOPS = [
    ("tcp", "tcp.c", []),
    ("udp", "udp.c", []),
    ("unix", "unix.c", []),
    ("unixgram", "unix.c", ["-DDATAGRAM"]),
    ("shm_pingpong", "shm_pingpong.c", []),
    ("shm_ring", "shm_ring.c", []),
    ("shm_ring_short", "shm_ring.c", ["-DCELL=16"]),
]
# What gives a program a second thread.
IDLE_THREAD = OUT / "idle_thread.so"
BUILD_SECONDS = 1800


class Failed(Exception):
    """What could not be made, a sentence."""


def _run(command: list[str], **options) -> str:
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=BUILD_SECONDS, **options
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise Failed(f"{' '.join(command)}: {error}") from error
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if line.startswith("error")]
        said = reason_of("\n".join(errors) or done.stderr)
        raise Failed(f"'{' '.join(command[:4])}' exited with {done.returncode}: {said}")
    return done.stdout


def target_directory() -> Path:
    metadata = _run(["cargo", "metadata", "--format-version", "1", "--no-deps"])
    return Path(json.loads(metadata)["target_directory"])


def wiregauge() -> Path:
    """The program as it is given to others."""
    _run(["cargo", "build", "--profile", "dist", "--bin", "wiregauge"])
    return target_directory() / "dist" / "wiregauge"


def bench(name: str) -> Path:
    """A program of bench/NAME.rs."""
    told = _run(["cargo", "bench", "--bench", name, "--no-run", "--message-format", "json"])
    for line in told.splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("target", {}).get("name") == name and message.get("executable"):
            return Path(message["executable"])
    raise Failed(f"cargo bench made no program called {name}")


def bare() -> Path:
    OUT.mkdir(parents=True, exist_ok=True)
    for program, source, flags in LOOPS:
        _run([*CC, *flags, "-o", str(OUT / program), str(BARE / source)])
    return OUT


def idle_thread() -> Path:
    """What gives a program that it is preloaded into a second thread."""
    OUT.mkdir(parents=True, exist_ok=True)
    source = str(BARE / "idle_thread.c")
    _run([*CC, "-shared", "-fPIC", "-o", str(IDLE_THREAD), source, "-lpthread"])
    return IDLE_THREAD


def bare_mpi(implementation: str) -> Path:
    """A folder with the bare MPI loop, built by that implementation's own wrapper."""
    folder = OUT / implementation
    folder.mkdir(parents=True, exist_ok=True)
    # MPICH declares status arrays in a way that its own constant for none does not fit.
    command = [f"mpicc.{implementation}", *CC[1:], "-Wno-stringop-overflow"]
    _run([*command, "-o", str(folder / "mpi"), str(BARE / "mpi.c")])
    return folder


def installed(program: str, package: str) -> str:
    path = shutil.which(program)
    if not path:
        raise Failed(f"{program} is not there: apt-get install {package}")
    return path


def install_peers(tell: Callable[[str], None], known: dict = PACKAGES) -> None:
    """By apt, what is missing. Not being able to is no fault: those rows say so."""
    packages = [package for name, package in known.items() if not shutil.which(name)]
    if not packages:
        return
    tell(f"installing {' '.join(packages)}")
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    try:
        _run(command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    except Failed as error:
        tell(f"  {error}")


def clean_build(cpus: Optional[str]) -> float:
    """Minutes of a release build from nothing in a directory of its own, with everything fetched
    before."""
    target = OUT / "clean-target"
    shutil.rmtree(target, ignore_errors=True)
    _run(["cargo", "fetch", "--locked"])
    command = ["cargo", "build", "--release", "--locked", "--offline", "-j", "2"]
    command += ["--bin", "wiregauge", "--target-dir", str(target)]
    pinned = ["taskset", "-c", cpus] if cpus else []
    start = time.monotonic()
    _run([*pinned, *command])
    minutes = (time.monotonic() - start) / 60
    shutil.rmtree(target)
    return minutes


def megabytes(path: Path) -> float:
    return path.stat().st_size / 1e6
