"""Futures go through branches and calls as other values do, also of extents that are not known (2.1)."""

import pytest

from tessera_conformance.chapters.collectives.kit.programs import (
    BRANCHED,
    SUM,
    T,
    awaits,
    binary,
    branch,
    given,
    issue,
    on_ranks,
    program,
    returns,
)
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected

pytestmark = feature("mesh-execution", "graph-ir-text")

OPEN = "tensor<?xfp32>"


def with_helper(text, *operations, takes, gives):
    """A program and behind it a function @helper."""
    members = program(*operations, takes=takes, gives=gives).splitlines()[2:]
    members[-2] = members[-2].replace('"f"', '"helper"')
    return "\n".join([*text.splitlines()[:-1], *members, ""])


def handed_on(way, type_):
    """A program that returns the sum of %x over the ranks; its future goes one of several ways."""
    future = f"!tessera.future<{type_}>"
    takes = BRANCHED.replace(T, type_)
    call = '%r = "tessera.graph.call"({}) {{callee = "helper"}} : ({}) -> {}'
    end = returns("%s", type_)
    if way == "out-of-a-branch":
        sides = ([issue(name, "%x", SUM)] for name in ("%y", "%z"))
        return program(branch(*sides, future), awaits("%s", "%r"), end, takes=takes, gives=type_)
    if way == "out-of-a-call":
        text = program(call.format("%x", type_, future), awaits("%s", "%r"), end, takes=takes, gives=type_)
        operations = [issue("%w", "%v", SUM), returns("%w", future)]
        return with_helper(text, *operations, takes=f"%v: {type_}", gives=future)
    text = program(
        issue("%f", "%x", SUM),
        call.format("%f", future, type_),
        returns("%r", type_),
        takes=takes,
        gives=type_,
    )
    return with_helper(text, awaits("%w", "%v"), returns("%w", type_), takes=f"%v: {future}", gives=type_)


@clause("COLL-02.1-01", "COLL-02.1-05")
@pytest.mark.parametrize("held", [T, OPEN], ids=["known", "open"])
@pytest.mark.parametrize("way", ["out-of-a-branch", "out-of-a-call", "into-a-call"])
def test_a_future_is_handed_on_as_any_value(impl, check, way, held):
    """The await at the end yields the sum of what every rank contributed, whichever way the future took."""
    rows = [tensor_of("fp32", [(rank + 1) * i for i in range(8)]) for rank in range(4)]
    ranks = given(rows, c=[True, True, False, False] if way != "out-of-a-branch" else [True] * 4)
    for rank, (actual,) in enumerate(on_ranks(impl, check, handed_on(way, held), ranks)):
        check.bits(actual, tensor_of("fp32", [10 * i for i in range(8)]), f"rank {rank}")


PARTS = {
    "all_gather": ("", lambda rank: [(source + 1) * i for source in range(4) for i in range(8)]),
    "reduce_scatter": (SUM, lambda rank: [10 * i for i in (2 * rank, 2 * rank + 1)]),
    "all_to_all": ("", lambda rank: [(source + 1) * i for source in range(4) for i in (2 * rank, 2 * rank + 1)]),
}


@clause("COLL-02.1-01", "COLL-02.1-05")
@pytest.mark.parametrize("collective", PARTS)
def test_a_future_has_an_extent_that_is_not_known(impl, check, collective):
    """The extents of each rank's result are as unknown as those of its operand; the types are stated."""
    attributes, expected = PARTS[collective]
    waits = f"{awaits('%y', '%f')} : (!tessera.future<{OPEN}>) -> {OPEN}"
    text = program(
        issue("%f", "%x", attributes, collective), waits, returns("%y", OPEN), takes=f"%x: {OPEN}", gives=OPEN
    )
    rows = [tensor_of("fp32", [(rank + 1) * i for i in range(8)]) for rank in range(4)]
    for rank, (actual,) in enumerate(on_ranks(impl, check, text, given(rows))):
        check.bits(actual, tensor_of("fp32", expected(rank)), f"rank {rank}")


@clause("LANG-05.5-02", "COLL-02.1-01")
@pytest.mark.parametrize("way", ["from-the-future", "past-the-future"])
def test_no_gradient_is_lost_in_a_future(impl, check, way):
    """The derivative of s * s, s the sum over four ranks, is 8s; who has no adjoint of it refuses (AMB-LANG-59, -143).

    Past the future, s * x by the x that is no part of s, it is s.
    """
    factor, by, times = ("%s", "%x", 8) if way == "from-the-future" else ("%w", "%w", 1)
    text = program(
        issue("%f", "%x", SUM),
        awaits("%s", "%f"),
        binary("%y", "multiply", "%s", factor),
        f'%g = "tessera.graph.grad"(%y, {by}) : ({T}, {T}) -> {T}',
        returns("%g"),
        takes=f"%x: {T}, %w: {T}",
    )
    rows = [tensor_of("fp32", [(rank + 1) * i for i in range(8)]) for rank in range(4)]
    ranks = [{"x": row, "w": row} for row in rows]
    observed = impl.collectives.execute(text=text, function="f", ranks=ranks)
    if isinstance(observed, Rejected) and way == "from-the-future":
        check.rejects(observed, category="types")
        return
    actual = [rank_answer["outputs"][0] for rank_answer in check.returns(observed)["ranks"]]
    for rank, output in enumerate(actual):
        check.bits(output, tensor_of("fp32", [times * 10 * i for i in range(8)]), f"rank {rank}")
