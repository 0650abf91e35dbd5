"""Running plans: what they refuse, groups in time, order by seed, and how long it takes (AMB-COLL-87, -90)."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives.planning import Options, groups_of, plan_function, run_plan, time_plan
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.module import Module
from tessera_reference.ir.targets import DEFAULT, target_of
from tessera_reference.levels.texts import read_at
from tessera_reference.mesh.topology import named
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

SUM = """%f = tessera.collective.all_reduce %x {{op="sum", axis="{axis}", chunk=16}}
    %y = tessera.await %f
    %z = "tessera.graph.add"(%y, %x)
    "tessera.graph.return"(%z)"""


def module(body: str, extent: int = 10) -> Module:
    held = f"tensor<{extent}xfp32>"
    text = f"""
"builtin.module"() ({{
  "tessera.graph.mesh"() {{sym_name = "g", axes = ["dp", "tp"], shape = [2, 3]}} : () -> ()
  "tessera.graph.func"() ({{
  ^bb0(%x: {held}):
    {body}
  }}) {{sym_name = "f", function_type = ({held}) -> ({held})}} : () -> ()
}}) {{sym_name = "m"}} : () -> ()
"""
    (found,) = read_at("graph", text, target_of(DEFAULT))
    return found


def arrays(extent: int = 10) -> list[tuple[Array, ...]]:
    return [(Array(dtype("fp32"), np.full(extent, 2.0**rank, np.float32)),) for rank in range(6)]


def ran(found: Module, options: Options | None = None, seed: int | None = None, extent: int = 10) -> Any:
    function = found.functions["f"]
    plan = plan_function(found, function, options or Options())
    groups = groups_of(plan, found, function, "g")
    return plan, groups, *run_plan(found, function, plan, arrays(extent), groups, seed)


def test_groups_along_an_axis_run_each_for_itself_and_in_time() -> None:
    plan, groups, results, _ = ran(module(SUM.format(axis="tp")))
    assert [each[0].values[0] for each in results] == [8, 9, 11, 64, 72, 88]
    assert list(groups.values()) == [((0, 1, 2), (3, 4, 5))]
    run = time_plan(plan, groups, 6, named("two-nodes"), 100)
    assert len(run.slots) == 6 * len(plan.units)
    assert {slot.id.split("/")[0] for slot in run.slots} == {str(unit.id) for unit in plan.units}


def test_a_wait_takes_what_has_landed() -> None:
    """One that waits for nothing gives the zeros that were there, whatever lands later."""
    found = module(SUM.format(axis="dp"))
    function = found.functions["f"]
    plan = plan_function(found, function, Options())
    early = [replace(unit, after=()) if unit.op == "tessera.await" else unit for unit in plan.units]
    early.sort(key=lambda unit: unit.op != "tessera.await")
    groups = groups_of(plan, found, function, "g")
    results, _ = run_plan(found, function, replace(plan, units=early), arrays(), groups)
    assert [each[0].values.tolist() for each in results] == [[2.0**rank] * 10 for rank in range(6)]


def test_an_order_follows_from_its_seed() -> None:
    found = module(SUM.format(axis="dp"))
    orders = [tuple(ran(found, Options(depth=2), seed)[3]) for seed in (None, None, 4, 4, 5)]
    assert orders[0] == orders[1] and orders[2] == orders[3]
    assert len(set(orders)) == 3


def test_more_ranks_than_devices_are_refused() -> None:
    plan, groups, *_ = ran(module(SUM.format(axis="dp")))
    with pytest.raises(Failure) as caught:
        time_plan(plan, groups, 6, named("single"), 1)
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_a_rank_in_no_group_is_refused() -> None:
    body = SUM.format(axis="dp").replace('axis="dp"', "subgroup=!tessera.shard<groups=[[0, 1], [3, 4]]>")
    with pytest.raises(Rejection, match="rank 2 is in no group"):
        ran(module(body))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('%g = "tessera.graph.root_sum"(%x) {axis = "dp"}\n"tessera.graph.return"(%g)', "root_sum"),
        (
            '%c = "tessera.graph.constant"() {value = true} : () -> bool\n'
            '"tessera.graph.if"(%c) ({ "tessera.graph.return"(%x) : (tensor<10xfp32>) -> () },'
            ' { "tessera.graph.yield"() : () -> () }) : (bool) -> ()\n"tessera.graph.return"(%x)',
            "returns within",
        ),
        (
            '%f = tessera.collective.send %x : tensor<10xfp32> {axis="dp", shift=1}\n'
            '%g = tessera.await %f\n"tessera.graph.return"(%g)',
            "send",
        ),
    ],
    ids=["root-sum", "early-return", "send"],
)
def test_what_a_plan_cannot_run_is_refused(body: str, said: str) -> None:
    with pytest.raises(Failure) as caught:
        ran(module(body))
    assert caught.value.status is Status.TESS_ERR_UNSUPPORTED
    assert said in str(caught.value)


def test_two_thousand_chunks_run_in_five_seconds() -> None:
    """On six ranks, two buffers each; CPU time."""
    found = module(SUM.format(axis="tp"), 8000)
    start = time.process_time()
    plan, _, results, _ = ran(found, Options(depth=2), 7, 8000)
    assert time.process_time() - start < 5
    assert len(plan.units) == 2003
    assert results[5][0].values.tolist() == [88.0] * 8000
