"""Options of scheduling, from the caller and from `@schedule(...)` (sections 2, 2.3, 6.1).

A directive applies to its values, exactly or not at all: it is followed or refused. Options and annotations apply to a
whole function: sizes are clipped to each shape and padded where they do not divide it (AMB-LANG-216).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..ir.module import Function
from ..ir.operation import AttributeValue, Refusal

Prefetching = Literal["shared", "global", "none"]


@dataclass(frozen=True)
class Options:
    """The options of scheduling; None leaves the choice to the lowering."""

    tile: tuple[int, ...] | None = None
    """m, n and k, of contractions."""
    depth: int | None = None
    prefetch: Prefetching = "shared"
    fuse: bool = True

    def __post_init__(self) -> None:
        sizes = self.tile or ()
        if not all(_is_count(size) for size in sizes) or len(sizes) > 3:
            raise Refusal("schedule", f"tile is {list(sizes)}", "m, n and k, each at least 1", "LANG-06.3-01")
        if self.depth is not None and not _is_count(self.depth):
            raise Refusal("schedule", f"depth is {self.depth}", "depth >= 1", "LANG-06.2-05")
        if self.prefetch not in ("shared", "global", "none"):
            raise Refusal("schedule", f"there is no scope {self.prefetch!r}", "shared, global or none", "LANG-06.2-02")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def annotated(options: Options, function: Function) -> Options:
    """The options for a function, overridden by its `@schedule(...)`, whose other settings are metadata.

    Raises `Refusal`.
    """
    pairs: Any = function.attributes.get("schedule", ())
    settings = dict(pairs)
    changes: dict[str, Any] = {}
    sizes = _sizes(settings)
    if sizes is not None:
        changes["tile"] = sizes
    for name in ("depth", "prefetch", "fuse"):
        if name in settings:
            changes[name] = settings[name]
    if settings.get("double_buffer") is True:
        depth = changes.setdefault("depth", max(options.depth or 2, 2))
        if depth == 1:
            message = "double_buffer with depth 1"
            raise Refusal("schedule", message, "depth >= 2 with double_buffer=true", "LANG-06.2-05", "depth=2")
    if not isinstance(changes.get("fuse", True), bool):
        raise Refusal("schedule", f"fuse is {changes.get('fuse')}", "true or false", "LANG-02-06")
    return replace(options, **changes)


def _sizes(settings: Mapping[str, AttributeValue]) -> tuple[Any, ...] | None:
    """`tile=128`, `tile=[128, 64, 32]`, or `m=..., n=..., k=...`."""
    tile = settings.get("tile")
    if isinstance(tile, tuple):
        return tile
    if tile is not None:
        return (tile, tile)
    if "m" in settings and "n" in settings:
        return (settings["m"], settings["n"], *((settings["k"],) if "k" in settings else ()))
    return None
