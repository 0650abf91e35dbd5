"""IR at every level, for people to read (language spec, section 12)."""

import pytest

from tessera_conformance.chapters.ir.kit.level_programs import lowered
from tessera_conformance.dsl import returning
from tessera_conformance.marks import clause, feature

SOURCE = returning("op.softmax(A @ B)", "A: tensor<24x20xbf16>, B: tensor<20x18xbf16>")
SPOKEN = {
    "graph": ("tessera.graph.matmul",),
    "schedule": ("tessera.graph.matmul", "tessera.schedule.tile"),
    "tile": ("tessera.tile.kernel", "tessera.tile.thread_id"),
    "target": ("tessera.target.kernel", "llvm."),
}
"""Words that stand in the text of each level."""


@clause("LANG-12-04")
@pytest.mark.parametrize(
    "to", ["graph", *(pytest.param(to, marks=feature(f"lower-{to}")) for to in ("schedule", "tile", "target"))]
)
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_a_level_is_dumped(impl, check, to, target):
    """The text of a level has the operations of the level in it, and a second request gives the same text."""
    actual = lowered(impl, check, SOURCE, to, target)
    for word in SPOKEN[to]:
        check.true(word in actual.text, f"{word} is in the text of {to}", actual.text)
    check.equal(lowered(impl, check, SOURCE, to, target).text, actual.text, "the text when asked again")
