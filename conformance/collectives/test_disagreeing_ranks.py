"""Programs whose ranks disagree on a collective, do not come to it, or wait for each other (2.1 and 8)."""

import pytest

from tessera_conformance.chapters.collectives.kit.programs import (
    BRANCHED,
    MISMATCH,
    SUM,
    awaits,
    binary,
    branch,
    given,
    issue,
    program,
    returns,
    spread,
)
from tessera_conformance.chapters.collectives.kit.readings import recognize_unnoticed
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected

pytestmark = feature("mesh-execution", "graph-ir-text")

GRID = "dp=2 tp=2"


def disagreeing(first, second, collective="all_reduce", other="all_reduce"):
    """Ranks with %c issue one collective, the others another."""
    then = [issue("%f", "%x", first, collective), awaits("%y", "%f")]
    otherwise = [issue("%g", "%x", second, other), awaits("%z", "%g")]
    return program(branch(then, otherwise), returns("%r"), takes=BRANCHED, mesh="dp=2")


@clause("COLL-02.1-01")
@pytest.mark.parametrize(
    ("first", "second", "collective", "other"),
    [
        pytest.param(SUM, 'op="max"', "all_reduce", "all_reduce", id="op"),
        pytest.param("root=0", "root=1", "broadcast", "broadcast", id="root"),
        pytest.param(SUM, "root=0", "all_reduce", "broadcast", id="collective"),
        pytest.param(f"{SUM}, chunk=1KiB", f"{SUM}, chunk=2KiB", "all_reduce", "all_reduce", id="chunk"),
        pytest.param(f"{SUM}, chunk=1KiB", SUM, "all_reduce", "all_reduce", id="chunk-missing"),
        pytest.param(f'{SUM}, algo="ring"', f'{SUM}, algo="tree"', "all_reduce", "all_reduce", id="algo"),
    ],
)
def test_ranks_that_issue_different_collectives_mismatch(impl, check, first, second, collective, other):
    """They agree on all but their hints (AMB-COLL-52); the twin issues the same on both."""
    flags = given(spread(2), c=[1, 0])
    twin = disagreeing(first, first, collective, collective)
    check.returns(impl.collectives.execute(text=twin, function="f", ranks=flags))
    text = disagreeing(first, second, collective, other)
    check.status(impl.collectives.execute(text=text, function="f", ranks=flags), MISMATCH)


@clause("COLL-02.1-01")
def test_a_chunk_has_two_names_and_one_meaning(impl, check):
    """chunk=1KiB on one rank is chunk_bytes=1024 on another (AMB-COLL-01, AMB-COLL-52)."""
    flags = given(spread(2), c=[1, 0])
    alike = disagreeing(f"{SUM}, chunk=1KiB", f"{SUM}, chunk=1024")
    check.returns(impl.collectives.execute(text=alike, function="f", ranks=flags))
    text = disagreeing(f"{SUM}, chunk=1KiB", f"{SUM}, chunk_bytes=1024")
    answer = impl.collectives.execute(text=text, function="f", ranks=flags)
    apart = isinstance(answer, Rejected) and answer.code == MISMATCH
    check.reading("AMB-COLL-01", "different attributes", apart)
    check.returns(answer)


@clause("COLL-02.1-01")
@pytest.mark.parametrize(
    "other", [tensor_of("fp32", [1] * 9), tensor_of("fp32", [[1] * 4] * 2)], ids=["count", "shape"]
)
def test_ranks_that_bring_different_shapes_mismatch(impl, check, other):
    """A dimension that the text leaves open is one on every rank."""
    rank = len(other.shape)
    type_ = f"tensor<{'x'.join('?' * rank)}xfp32>"
    text = program(
        issue("%f", "%x", SUM), awaits("%y", "%f"), returns("%y", type_), takes=f"%x: {type_}", gives=type_
    ).replace("[4]", "[2]")
    first = tensor_of("fp32", [2] * 8) if rank == 1 else tensor_of("fp32", [[2] * 2] * 4)
    check.returns(impl.collectives.execute(text=text, function="f", ranks=[{"x": first}, {"x": first}]))
    check.status(impl.collectives.execute(text=text, function="f", ranks=[{"x": first}, {"x": other}]), MISMATCH)


@clause("COLL-02.1-02", "COLL-02.1-05")
@pytest.mark.parametrize(
    ("awaited", "before"),
    [(True, []), (False, []), (True, [issue("%e", "%x", SUM), awaits("%u", "%e")])],
    ids=["awaited", "never-awaited", "after-a-complete-one"],
)
def test_a_rank_that_never_comes_is_a_mismatch(impl, check, awaited, before):
    """It is never a hang, and is reported even if no rank awaits the future (AMB-COLL-50)."""
    then = [issue("%f", "%x", SUM), awaits("%y", "%f") if awaited else binary("%y", "add", "%x", "%x")]
    otherwise = [binary("%z", "add", "%x", "%x")]
    text = program(*before, branch(then, otherwise), returns("%r"), takes=BRANCHED, mesh="dp=3")
    rows = spread(3)
    check.returns(impl.collectives.execute(text=text, function="f", ranks=given(rows, c=[1, 1, 1])))
    observed = impl.collectives.execute(text=text, function="f", ranks=given(rows, c=[1, 0, 1]))
    recognize_unnoticed(check, observed, awaited)
    check.status(observed, MISMATCH)


@clause("COLL-02.1-02")
def test_ranks_that_wait_for_each_other_are_a_mismatch(impl, check):
    """Half of a square awaits along one axis before it issues along the other, half the other way round."""
    dp, tp = f'{SUM}, axis="dp"', f'{SUM}, axis="tp"'
    then = [issue("%f", "%x", dp), awaits("%a", "%f"), issue("%g", "%a", tp), awaits("%y", "%g")]
    otherwise = [issue("%h", "%x", tp), awaits("%d", "%h"), issue("%i", "%d", dp), awaits("%z", "%i")]
    text = program(branch(then, otherwise), returns("%r"), takes=BRANCHED, mesh=GRID)
    rows = spread(4)
    check.returns(impl.collectives.execute(text=text, function="f", ranks=given(rows, c=[1, 1, 1, 1])))
    actual = impl.collectives.execute(text=text, function="f", ranks=given(rows, c=[1, 0, 0, 1]))
    check.status(actual, MISMATCH)
