"""The RDMA devices of this machine, as the kernel tells of them."""

from pathlib import Path
from typing import Optional


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
