"""What Linux tells of processes that tests look for."""

from __future__ import annotations

from pathlib import Path


def is_alive(pid: int) -> bool:
    """True if a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def pids_in(directory: Path) -> list[int]:
    """The processes that fakes have written down in a folder."""
    return [int(pid) for path in directory.glob("*.pids") for pid in path.read_text().split()]
