"""Verifiers of Schedule IR that accept an illegal schedule, or refuse a legal one (sections 6, 11)."""

from tessera_conformance.strength import replaced
from tessera_reference.adapter import make
from tessera_reference.ir.targets import TARGETS
from tessera_reference.schedule.nests import buffers

from .changes import around, instead, wrapped
from .verifiers_of_text import misreads, overlooks, turns_down


def covering(name, description, cover):
    """Return a violation that compares tile sizes and extents differently."""
    owners = [(f"schedule.{module}.require_cover", around(cover)) for module in ("operations", "nests")]
    return replaced("LANG-06.3-01", description, make, *owners, name=name)


def ordering(name, description, check, clause="LANG-06.2-04"):
    """Return a violation that searches for cycles differently."""
    return instead(clause, name, description, "schedule.operations.Pipeline._check_order", check)


VIOLATIONS = [
    covering("larger_tiles", "takes tiles larger than their extents without padding",
        lambda usual, position, size, extent, pad:
        usual(position, size, extent, pad) if not isinstance(extent, int) or size < extent else None),
    covering("any_k", "does not compare k with what is summed over",
        lambda usual, position, size, extent, pad: usual(position, size, extent, pad) if position < 2 else None),
    wrapped("LANG-06.3-01", "everything_padded", "pads with one number what a size divides too",
        "schedule.operations.padding_of",
        lambda usual, pad, *place: pad if isinstance(pad, int) else usual(pad, *place)),
    overlooks("LANG-06.3-01", "negative_behind_zero", "that a later number of a padding is negative",
        r"pad is \((0, )+-"),
    overlooks("LANG-06.3-01", "empty_tiles", "that a tile has no extent", r"\b[mnk] is (0|-\d+)"),
    overlooks("LANG-06.1-01", "tile_attributes", "attributes of a tile that there are not", r"no attribute|is missing"),
    ordering("circles_of_two", "sees no cycle of more than two stages", around(lambda usual, self:
            usual(self) if any((then, first) in self.edges for first, then in self.edges) else None)),
    ordering("knots", "sees only stages before themselves", around(lambda usual, self:
            usual(self) if any(first == then for first, then in self.edges) else None), "LANG-11-07"),
    overlooks("LANG-06.2-04", "stages_of_one_name", "that two stages have one name", "a stage is named twice"),
    overlooks("LANG-06.2-04", "unknown_stages", "that an edge names no stage", "which is no stage"),
    overlooks("LANG-06.2-05", "no_depth", "that a pipeline has no depth", "depth is (0|-)"),
    overlooks("LANG-06.2-05", "one_buffer_of_two", "that two buffers need a depth of two", "double_buffer with"),
    turns_down("LANG-06.1-03", "exactly_two", "two buffers and a depth of three", r"double_buffer = true, depth = 3"),
    overlooks("LANG-06.1-03", "pipeline_attributes", "attributes of a pipeline that there are not", "no attribute"),
    wrapped("LANG-06.1-04", "alignments_of_shared_memory", "takes any alignment in global memory",
        "schedule.operations.Prefetch.check", lambda usual, self: usual(self) if self.scope != "global" else None),
    turns_down("LANG-06.2-02", "shared_only", "prefetches to global memory", 'scope = "global"'),
    overlooks("LANG-06.1-04", "odd_alignments", "that an alignment is no power of two", r"align is (24|48|17|127)\b"),
    overlooks("LANG-06.1-04", "small_alignments", "that an alignment is below 16", r"align is (8|1|0|-16)\b"),
    turns_down("LANG-06.1-04", "exactly_16", "alignments above 16", r"align = (32|64|128)\b"),
    wrapped("LANG-06.2-03", "first_operand", "counts shared memory of the first operand alone of other operations",
        "schedule.nests.shared_bytes", lambda usual, nest: usual(nest) if nest.lead.operation.short_name == "matmul"
        else sum(size for value, size in buffers(nest) if value is nest.lead.operands[0])),
    instead("LANG-06.2-03", "without_addends", "counts no shared memory of operations behind a product",
        "schedule.nests.shared_bytes",
        lambda nest: sum(size for value, size in buffers(nest) if value in nest.lead.operands)),
    instead("LANG-11-09", "registers", "counts no registers", "schedule.nests.registers", lambda *ignored: 0),
    wrapped("LANG-11-08", "one_target", "knows one target only", "schedule.nests.Legality.__init__",
        lambda usual, self, function, target: usual(self, function, TARGETS["sm_90"])),
    instead("LANG-11-06", "around_branches", "sees no value that is used inside a branch", "schedule.fusion.used_by",
        lambda instruction: instruction.operands),
    overlooks("LANG-06.2-01", "dependences", "that a fusion goes around something", "cannot run as one"),
    turns_down("LANG-11-06", "upwards", "a fusion whose last value is the first computed", r'fuse"\(%e, %p\)'),
    overlooks("LANG-06.1-02", "one_value", "that a fusion has one value", r"fuses \d"),
    overlooks("LANG-06.1-05", "layouts", "that a layout is unknown", "unknown layout"),
    overlooks("LANG-06.1-05", "cast_results", "that a cast gives another layout than it says", "the result is"),
    misreads("LANG-06.3-02", "copies_unasked", "copies where no copy is asked for",
        r'(layout_cast"\([^)]*\) \{to = "[^"]*")\}', r"\1, materialize = true}"),
]  # fmt: skip
