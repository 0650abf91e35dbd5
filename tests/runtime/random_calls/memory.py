"""What memory holds according to the model: bytes of each copy, and which of them are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Block", "Place"]

NEVER_WRITTEN = 0xA5


@dataclass(eq=False)
class Block:
    """An allocation: one copy for each device, or one in all where it is of the host or shared."""

    address: int
    size: int
    devices: tuple[int, ...] = ()
    owner: int = 0
    shared: bool = False
    read_only: bool = False
    freed: bool = False
    actual: Any = None
    """The allocation of the runtime, for comparison."""
    copies: list[bytearray] = field(default_factory=list)
    known: list[bytearray] = field(default_factory=list)

    def __post_init__(self) -> None:
        count = len(self.devices) if self.devices and not self.shared else 1
        self.copies = self.copies or [bytearray([NEVER_WRITTEN]) * self.size for _ in range(count)]
        self.known = [bytearray([1]) * self.size for _ in range(count)]

    @property
    def of_device(self) -> bool:
        return bool(self.devices)

    def copy_on(self, device: int) -> int:
        """The copy that a device uses."""
        return self.devices.index(device) if self.devices and not self.shared else 0

    def read(self, copy: int, start: int, size: int) -> tuple[bytes, bytes]:
        """Bytes, and which of them are known."""
        return bytes(self.copies[copy][start : start + size]), bytes(self.known[copy][start : start + size])

    def write(self, copy: int, start: int, data: bytes, known: bytes | None = None) -> None:
        """Put bytes there."""
        self.copies[copy][start : start + len(data)] = data
        self.known[copy][start : start + len(data)] = bytes([1]) * len(data) if known is None else known

    def forget(self, start: int = 0, size: int | None = None) -> None:
        """Nothing is known of these bytes, on any copy; what cannot be written stays known."""
        if self.read_only:
            return
        stop = self.size if size is None else start + size
        for known in self.known:
            known[start:stop] = bytes(stop - start)

    def differs(self, copy: int, found: Sequence[int]) -> int | None:
        """Where what was found is not what is known."""
        expected, known = self.copies[copy], self.known[copy]
        if expected == found:
            return None
        return next((i for i in range(self.size) if known[i] and expected[i] != found[i]), None)


@dataclass(frozen=True, eq=False)
class Place:
    """Part of a block."""

    block: Block
    start: int
    size: int

    @property
    def address(self) -> int:
        return self.block.address + self.start
