"""Verifiers of Schedule IR that accept an illegal schedule, or refuse a legal one (sections 6, 11)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import make
from tessera_reference.ir.targets import TARGETS
from tessera_reference.schedule import nests, operations
from tessera_reference.schedule.nests import Legality, Nest, buffers, shared_bytes
from tessera_reference.schedule.operations import padding_of, require_cover

from .verifiers_of_text import misreads, overlooks, turns_down

# Tiles


def covering(name: str, description: str, cover: Any) -> Violation:
    """Return a violation that compares tile sizes and extents differently."""
    owners = [(owner, "require_cover", cover) for owner in (operations, nests)]
    return replaced("LANG-06.3-01", description, make, *owners, name=name)


def _larger_go(position: int, size: int, extent: Any, pad: Any) -> None:
    if not isinstance(extent, int) or size < extent:
        require_cover(position, size, extent, pad)


def _k_goes(position: int, size: int, extent: Any, pad: Any) -> None:
    if position < 2:
        require_cover(position, size, extent, pad)


def _pads_all(pad: Any, position: int, size: int, extent: int) -> int:
    return pad if isinstance(pad, int) else padding_of(pad, position, size, extent)


TILES = [
    covering("larger_tiles", "takes tiles larger than their extents without padding", _larger_go),
    covering("any_k", "does not compare k with what is summed over", _k_goes),
    replaced("LANG-06.3-01", "pads with one number what a size divides too", make,
        ("schedule.operations.padding_of", _pads_all), name="everything_padded"),
    overlooks("negative_behind_zero", "LANG-06.3-01", "that a later number of a padding is negative",
        r"pad is \((0, )+-"),
    overlooks("empty_tiles", "LANG-06.3-01", "that a tile has no extent", r"\b[mnk] is (0|-\d+)"),
    overlooks("tile_attributes", "LANG-06.1-01", "attributes of a tile that there are not", r"no attribute|is missing"),
]  # fmt: skip

# Pipelines


def _only_to_itself(self: operations.Pipeline) -> None:
    if any(first == then for first, then in self.edges):
        _check_order(self)


def _only_of_two(self: operations.Pipeline) -> None:
    if any((then, first) in self.edges for first, then in self.edges):
        _check_order(self)


_check_order = operations.Pipeline._check_order


def ordering(name: str, description: str, check: Any, clause: str = "LANG-06.2-04") -> Violation:
    """Return a violation that searches for cycles differently."""
    return replaced(clause, description, make, ("schedule.operations.Pipeline._check_order", check), name=name)


PIPELINES = [
    ordering("circles_of_two", "sees no cycle of more than two stages", _only_of_two),
    ordering("knots", "sees only stages before themselves", _only_to_itself, "LANG-11-07"),
    overlooks("stages_of_one_name", "LANG-06.2-04", "that two stages have one name", "a stage is named twice"),
    overlooks("unknown_stages", "LANG-06.2-04", "that an edge names no stage", "which is no stage"),
    overlooks("no_depth", "LANG-06.2-05", "that a pipeline has no depth", "depth is (0|-)"),
    overlooks("one_buffer_of_two", "LANG-06.2-05", "that two buffers need a depth of two", "double_buffer with"),
    turns_down("exactly_two", "LANG-06.1-03", "two buffers and a depth of three", r"double_buffer = true, depth = 3"),
    overlooks("pipeline_attributes", "LANG-06.1-03", "attributes of a pipeline that there are not", "no attribute"),
]

# Prefetches


def _of_shared_memory(self: operations.Prefetch) -> None:
    if self.scope != "global":
        _check_prefetch(self)


_check_prefetch = operations.Prefetch.check

PREFETCHES = [
    replaced("LANG-06.1-04", "takes any alignment in global memory", make,
        ("schedule.operations.Prefetch.check", _of_shared_memory), name="alignments_of_shared_memory"),
    turns_down("shared_only", "LANG-06.2-02", "prefetches to global memory", 'scope = "global"'),
    overlooks("odd_alignments", "LANG-06.1-04", "that an alignment is no power of two", r"align is (24|48|17|127)\b"),
    overlooks("small_alignments", "LANG-06.1-04", "that an alignment is below 16", r"align is (8|1|0|-16)\b"),
    turns_down("exactly_16", "LANG-06.1-04", "alignments above 16", r"align = (32|64|128)\b"),
]  # fmt: skip

# Memory and registers


def measuring(name: str, clause: str, description: str, what: str, measure: Any) -> Violation:
    """Return a violation that counts a nest's resources wrongly."""
    return replaced(clause, description, make, (nests, what, measure), name=name)


def _of_the_first(nest: Nest) -> int:
    counted = [size for value, size in buffers(nest) if value is nest.lead.operands[0]]
    return shared_bytes(nest) if nest.lead.operation.short_name == "matmul" else sum(counted)


def _for_one_target(self: Legality, function: Any, target: Any) -> None:
    _judge(self, function, TARGETS["sm_90"])


_judge = Legality.__init__

RESOURCES = [
    measuring("first_operand", "LANG-06.2-03", "counts shared memory of the first operand alone of other operations",
        "shared_bytes", _of_the_first),
    measuring("without_addends", "LANG-06.2-03", "counts no shared memory of operations behind a product",
        "shared_bytes", lambda nest: sum(size for value, size in buffers(nest) if value in nest.lead.operands)),
    measuring("registers", "LANG-11-09", "counts no registers", "registers", lambda *ignored: 0),
    replaced("LANG-11-08", "knows one target only", make, ("schedule.nests.Legality.__init__", _for_one_target),
        name="one_target"),
]  # fmt: skip

# Dependences


DEPENDENCES = [
    replaced("LANG-11-06", "sees no value that is used inside a branch", make,
        ("schedule.fusion.used_by", lambda instruction: instruction.operands), name="around_branches"),
    overlooks("dependences", "LANG-06.2-01", "that a fusion goes around something", "cannot run as one"),
    turns_down("upwards", "LANG-11-06", "a fusion whose last value is the first computed", r'fuse"\(%e, %p\)'),
    overlooks("one_value", "LANG-06.1-02", "that a fusion has one value", r"fuses \d"),
]  # fmt: skip

# Layout casts

CASTS = [
    overlooks("layouts", "LANG-06.1-05", "that a layout is unknown", "unknown layout"),
    overlooks("cast_results", "LANG-06.1-05", "that a cast gives another layout than it says", "the result is"),
    misreads("copies_unasked", "LANG-06.3-02", "copies where no copy is asked for",
        r'(layout_cast"\([^)]*\) \{to = "[^"]*")\}', r"\1, materialize = true}"),
]  # fmt: skip
