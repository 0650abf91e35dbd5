"""The causes of failures: few groups, what tells them from the cases that pass, what to mend first."""

from __future__ import annotations

from typing import Any

from tessera_conformance.observations import Returned
from tessera_conformance.reports.causes import Cause, causes
from tessera_conformance.reports.lines import traits
from tessera_conformance.session import Exchange
from tessera_conformance.tensors import Tensor

COPY, LAUNCH, ADD = "runtime.tessMemcpyAsync", "runtime.tessLaunch", "runtime.tessAllReduce"


def calls(*named: str) -> dict[str, Any]:
    """The fields of a line whose case calls these, with these arguments."""
    return {"traits": sorted(named), "methods": sorted({name.partition(" ")[0] for name in named})}


def wrong(what: str = "the bytes", kind: str = "equal", expected: Any = 1, actual: Any = 2) -> dict[str, Any]:
    """The fields of a line whose check failed."""
    record = {"kind": kind, "passed": False, "what": what, "expected": expected, "actual": actual, "difference": None}
    return {"checks": [record], "reason": what}


def told(found: list[Cause]) -> list[str]:
    return [cause.sentence() for cause in found]


def test_failures_of_one_way_are_told_by_the_argument_that_those_that_pass_lack(build, observation):
    short, long = calls(COPY, f"{COPY} bytes=8"), calls(COPY, f"{COPY} bytes>=256")
    lines = [observation(f"runtime/copies/a/{number}", "fail", ["RT-04"], **wrong(), **long) for number in range(4)]
    lines += [observation(f"runtime/sums/a/{number}", "fail", ["RT-05"], **wrong("a sum"), **long) for number in "ab"]
    lines += [observation(f"runtime/copies/b/{number}", **short) for number in range(9)]
    lines += [observation("runtime/copies/c", **long)]
    (cause,) = causes(build(lines))
    assert cause.sentence() == "6 cases: a wrong value, all with tessMemcpyAsync and bytes>=256 (1 with it pass)"
    assert cause.mended == ("RT-04", "RT-05")
    assert {line["case"] for line in cause.lines} == {line["case"] for line in lines[:6]}


def test_two_defects_are_two_causes_and_the_larger_stands_first(build, observation):
    copied, added = calls(COPY, f"{COPY} kind=2"), calls(COPY, f"{COPY} kind=0", ADD)
    lines = [observation(f"runtime/sums/a/{number}", "fail", ["RT-05"], **wrong(), **added) for number in range(5)]
    lines += [observation(f"runtime/copies/a/{number}", "fail", ["RT-04"], **wrong(), **copied) for number in range(3)]
    lines += [observation(f"runtime/b/a/{number}", **calls(COPY, f"{COPY} kind=0")) for number in range(60)]
    assert told(causes(build(lines))) == [
        "5 cases: a wrong value, all with tessAllReduce (none with it passes): the bytes",
        "3 cases: a wrong value, all with tessMemcpyAsync and kind=2 (none with it passes): the bytes",
    ]


def test_ways_of_going_wrong_are_not_mixed(build, observation, lacking):
    status = wrong(kind="status", expected="TESS_ERR_INVALID_VALUE", actual="returned a result")
    refused = wrong(kind="returns", expected="a result", actual="rejected in phase call with TESS_ERR_INTERNAL: no")
    lines = [lacking(f"ir/l/{number}", "language.lower") for number in range(7)]
    lines += [observation("ir/a/a", "fail", **status), observation("ir/b/a", "fail", **refused)]
    lines += [observation("ir/c/a", "crash", reason="the process ended by SIGSEGV"), observation("ir/d/a", "hang")]
    assert told(causes(build(lines))) == [
        "1 case: acceptance where TESS_ERR_INVALID_VALUE is due, all of clause RT-10.1-01",
        "1 case: a legal call or program is refused with TESS_ERR_INTERNAL, all of clause RT-10.1-01",
        "1 case: the implementation ends in execute (SIGSEGV)",
        "1 case: execute does not answer in time",
        "7 cases: language.lower is not implemented",
    ]


def test_a_cause_that_blocks_others_stands_before_one_with_more_failures(build, observation):
    lines = [observation(f"ir/a/{number}", "fail", ["RT-05"], **wrong()) for number in range(3)]
    refused = wrong(kind="returns", expected="a result", actual="rejected in phase call with TESS_ERR_INTERNAL: no")
    lines += [observation("runtime/legal-calls/tesslaunch", "fail", ["RT-04"], **refused)]
    leaning = {"leans": ["runtime/legal-calls/tesslaunch"]}
    lines += [observation(f"runtime/b/{number}", "fail", ["RT-04"], **refused, **leaning) for number in range(5)]
    first, second = causes(build(lines))
    assert first.sentence().startswith("1 case, and 5 blocked by it: a legal call or program is refused with TESS_ERR")
    assert second.sentence().startswith("3 cases: a wrong value")


def test_an_implementation_that_did_not_start_has_no_causes(not_started):
    assert causes(not_started) == []


def test_the_smallest_case_is_the_one_with_the_fewest_calls(build, observation):
    line = observation("ir/b/a", "fail", **wrong())
    lines = [observation("ir/a/a", "fail", **wrong(), exchanges=line["exchanges"] * 3), line]
    (cause,) = causes(build(lines))
    assert cause.smallest["case"] == "ir/b/a"


def test_traits_are_values_thresholds_and_what_a_program_has():
    tensor = Tensor("bf16", (3, 100), bytes(600))
    params = {"bytes": 300, "kind": 2, "stream": 1 << 60, "flags": [1, True], "x": tensor, "name": "ring"}
    source = 'module m { func f(a: tensor<4xfp16>) { dist.all_reduce(op.sum(a)) @{op="max"}; } }'
    exchanges = [Exchange("a.f", params, Returned({}), 0.0), Exchange("a.g", {"source": source}, Returned({}), 0.0)]
    assert traits(exchanges) == [
        "a.f",
        "a.f bytes>=256",
        "a.f bytes>=256, no multiple of 64",
        "a.f bytes>=32",
        "a.f bytes>=32, no multiple of 64",
        "a.f elements of x>=256",
        "a.f elements of x>=256, no multiple of 64",
        "a.f elements of x>=32",
        "a.f elements of x>=32, no multiple of 64",
        "a.f flags=1",
        "a.f flags=true",
        "a.f kind=2",
        "a.f name=ring",
        "a.f number of flags=2",
        "a.f x:bf16",
        "a.g",
        "a.g dist.all_reduce",
        "a.g fp16",
        "a.g op.sum",
    ]
