"""Sends and receives of programs that are refused before anything runs, their types and chunks (2.1 and 8)."""

import pytest

from tessera_conformance.chapters.collectives.kit.programs import (
    FIRST_LINE,
    T,
    awaits,
    binary,
    given,
    issue,
    on_ranks,
    operations,
    plain,
    program,
    returns,
    told,
)
from tessera_conformance.chapters.collectives.kit.send_recv import from_first_to_last, recv, rows_of, run, send
from tessera_conformance.chapters.runtime.kit.refusals import refused
from tessera_conformance.marks import clause, feature
from tessera_conformance.vectors.building import counted

pytestmark = feature("mesh-execution", "graph-ir-text", "point-to-point")


BAD = {
    "no_peer": "",
    "both": "peer=1, shift=1",
    "beyond": "peer=4",
    "negative": "peer=-1",
    "itself": "shift=0",
    "around": "shift=4",
    "around_back": "shift=-4",
    "tag": "peer=1, tag=-1",
    "large_tag": "peer=1, tag=2147483648",
    "unknown_attribute": "peer=1, op=1",
    "axis": 'peer=1, axis="tp"',
}


@clause("COLL-02.1-01")
@pytest.mark.parametrize("attributes", BAD.values(), ids=BAD)
@pytest.mark.parametrize("collective", ["send", "recv"])
def test_what_names_no_other_rank_is_refused(impl, check, collective, attributes):
    """One of peer, a place in the group, and shift, a distance in it, that is not the rank itself; a tag of 31 bits."""

    def lines(said):
        return [issue("%f", "%x", said, collective), awaits("%y", "%f"), returns("%y")]

    for legal in ("peer=0", "peer=3, tag=2147483647", "shift=3", "shift=-3, tag=0"):
        check.accepts(impl.language.verify_ir(text=program(*lines(legal))))
    answer = impl.language.verify_ir(text=program(*lines(attributes)))
    check.rejects(answer, category=("distributed", "types", "numerics", "syntax"), at_line=FIRST_LINE)


@clause("COLL-02.1-01")
def test_a_group_of_one_rank_has_no_other_end(impl, check):
    """Neither place 0, which is the rank itself, nor any distance."""
    legal = program(send("%f", "%x", 'peer=0, axis="dp"'), returns("%x"), mesh="dp=2 tp=1")
    check.accepts(impl.language.verify_ir(text=legal))
    for attributes in ('peer=0, axis="tp"', 'shift=1, axis="tp"'):
        text = program(send("%f", "%x", attributes), returns("%x"), mesh="dp=2 tp=1")
        check.rejects(impl.language.verify_ir(text=text), category="distributed", at_line=FIRST_LINE)


@clause("COLL-02.1-01")
@pytest.mark.parametrize("collective", ["send", "recv"])
def test_a_rank_that_is_its_own_peer_is_refused_when_it_runs(impl, check, collective):
    """The rank is known only when the program runs."""
    text = program(issue("%f", "%x", "peer=1", collective), awaits("%y", "%f"), returns("%y"), mesh="dp=3")
    check.accepts(impl.language.verify_ir(text=text))
    check.rejects(run(impl, text, given(rows_of(3))), category="distributed", at_line=FIRST_LINE)


@clause("COLL-02.1-05", "COLL-02.1-01")
@pytest.mark.parametrize("collective", ["send", "recv"])
def test_a_message_yields_a_future_of_the_operands_type(impl, check, collective):
    """The future is awaited before it is used; the printed text keeps peer, shift and tag."""
    bad = program(issue("%f", "%x", "shift=1", collective), binary("%y", "add", "%f", "%x"), returns("%y"))
    check.rejects(impl.language.verify_ir(text=bad), category="types", at_line=FIRST_LINE + 1)
    for attributes in ({"peer": 2, "tag": 9}, {"shift": -2, "priority": 3}):
        said = ", ".join(f"{name}={value}" for name, value in attributes.items())
        text = program(issue("%f", "%x", said, collective), awaits("%y", "%f"), returns("%y"))
        answer = told(impl, check, text)
        (actual,) = operations(answer, f"tessera.collective.{collective}")
        check.equal([plain(type_) for type_ in actual["result_types"]], [f"future<{T}>"], "the type of the result")
        kept = {name: actual["attributes"].get(name) for name in attributes}
        check.equal(kept, attributes, "the attributes that are kept")


@feature("compression")
@clause("COLL-02.5-01")
def test_a_wire_that_loses_bits_is_refused_where_the_bits_are_promised(impl, check):
    """Strict and deterministic promise all bits of what is sent; a wire that holds the data changes none."""
    rows = rows_of(2)
    lossy = from_first_to_last('dtype="bf16"')
    for level in ("strict", "deterministic"):
        refused(check, run(impl, lossy, given(rows, c=[1, 0]), level=level), "TESS_ERR_DETERMINISM_VIOLATION")
    narrow = [counted("bf16", (8,), seed=1650 + rank) for rank in range(2)]
    text = from_first_to_last('dtype="bf16"').replace(T, "tensor<8xbf16>")
    for (actual,) in on_ranks(impl, check, text, given(narrow, c=[1, 0])):
        check.bits(actual, narrow[0], "what was sent")


@clause("COLL-02.3-01", "COLL-02.4-02")
def test_a_plan_has_a_unit_for_each_chunk_of_a_message(impl, check):
    """On the communication queue; a scaling or cast next to it stays where it is (AMB-COLL-59)."""
    text = program(
        '%w = "tessera.graph.multiply"(%x, %k)',
        send("%f", "%w", "shift=1, chunk=12"),
        recv("%g", "%x", "shift=-1, chunk=12"),
        awaits("%s", "%f"),
        awaits("%v", "%g"),
        '%y = "tessera.graph.multiply"(%v, %k)',
        returns("%y"),
        takes=f"%x: {T}, %k: fp32",
    )
    units = check.returns(impl.collectives.plan(text=text, function="f"))["units"]
    for name in ("send", "recv"):
        chunks = [unit for unit in units if unit["op"] == f"tessera.collective.{name}"]
        check.equal([chunk["queue"] for chunk in chunks], ["comm"] * 3, f"the queue of each {name}")
        ranges = [(chunk["chunk"]["first"], chunk["chunk"]["count"]) for chunk in chunks]
        check.equal(ranges, [(0, 3), (3, 3), (6, 2)], f"the chunks of the {name}")
        check.equal([chunk.get("folds", []) for chunk in chunks], [[]] * 3, f"what is folded into the {name}")
    check.equal(len([unit for unit in units if unit["op"] == "tessera.graph.multiply"]), 2, "products that stay")
