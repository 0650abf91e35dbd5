"""Plans that cannot be made or run, and the time that large plans take (AMB-COLL-87, -90)."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from tessera_reference.abi.status import Failure, Status
from tessera_reference.collectives.links import topology_of
from tessera_reference.collectives.planner import Options, plan_function
from tessera_reference.collectives.programs import groups_of, run_plan, time_plan
from tessera_reference.ir.operation import Module
from tessera_reference.ir.targets import DEFAULT, target_of
from tessera_reference.levels.texts import read_at
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.errors import TooLarge
from tessera_reference.numerics.formats import dtype


def module(body: str, takes: str, gives: str, more: str = "") -> Module:
    """A module with one mesh and the function @f."""
    types = ", ".join(part.partition(": ")[2] for part in takes.split(", %"))
    text = f"""
"builtin.module"() ({{
  "tessera.graph.mesh"() {{sym_name = "g", axes = ["dp"], shape = [4]}} : () -> ()
  {more}
  "tessera.graph.func"() ({{
  ^bb0({takes}):
    {body}
  }}) {{sym_name = "f", function_type = ({types}) -> ({gives})}} : () -> ()
}}) {{sym_name = "m"}} : () -> ()
"""
    (found,) = read_at("graph", text, target_of(DEFAULT))
    return found


def plan(body: str, takes: str, gives: str, options: Options | None = None, more: str = "") -> list[str]:
    """The units of @f as text."""
    found = module(body, takes, gives, more)
    return [str(unit) for unit in plan_function(found, found.functions["f"], options or Options()).units]


CALLED = """
  "tessera.graph.func"() ({
  ^bb0(%x: tensor<8xfp32>):
    %y = "tessera.graph.all_reduce"(%x) {op = "sum", axis = "dp"}
    "tessera.graph.return"(%y)
  }) {sym_name = "h", function_type = (tensor<8xfp32>) -> (tensor<8xfp32>)} : () -> ()
"""


@pytest.mark.parametrize(
    ("body", "takes", "gives", "message"),
    [
        ('%y = "tessera.graph.call"(%x) {callee = "h"}\n"tessera.graph.return"(%y)', "tensor<8xfp32>", "tensor<8xfp32>",
         "tessera.graph.call at <ir>:.* holds collectives"),
        ('%f = tessera.collective.broadcast %x\n"tessera.graph.return"(%f)', "tensor<8xfp32>",
         "!tessera.future<tensor<8xfp32>>", "@f returns a future"),
        ('%f = tessera.collective.broadcast %x\n%y = tessera.await %f\n"tessera.graph.return"(%y)', "tensor<?xfp32>",
         "tensor<?xfp32>", r"a collective of tensor<\?xfp32>"),
    ],
    ids=["call", "future", "extent"],
)  # fmt: skip
def test_what_has_no_plan_is_named(body: str, takes: str, gives: str, message: str) -> None:
    with pytest.raises(Failure, match=message) as caught:
        plan(body, f"%x: {takes}", gives, more=CALLED)
    assert caught.value.status is Status.TESS_ERR_UNSUPPORTED


def test_a_thousand_layers_are_planned_in_two_seconds() -> None:
    """Each layer has a product, a scaling, a cast and two collectives; the limit is of CPU time."""
    body = []
    for layer in range(1000):
        last = f"%y{layer - 1}" if layer else "%x"
        body += [
            f'%p{layer} = "tessera.graph.multiply"({last}, {last})',
            f'%q{layer} = "tessera.graph.multiply"(%p{layer}, %s)',
            f'%f{layer} = tessera.collective.all_reduce %q{layer} {{op="sum", chunk=1KiB}}',
            f'%g{layer} = "tessera.graph.all_reduce"(%p{layer}) {{op = "sum", axis = "dp"}}',
            f"%a{layer} = tessera.await %f{layer}",
            f'%y{layer} = "tessera.graph.add"(%a{layer}, %g{layer})',
        ]
    body.append('"tessera.graph.return"(%y999)')
    actual = module("\n".join(body), "%x: tensor<1024xfp32>, %s: fp32", "tensor<1024xfp32>")
    start = time.process_time()
    units = plan_function(actual, actual.functions["f"], Options(tile=256, depth=2, max_inflight=8)).units
    assert time.process_time() - start < 2
    assert len(units) == 1000 * (1 + 4 + 1 + 2 + 1) + 1


def test_too_many_chunks_are_refused() -> None:
    """Four bytes a chunk, as many chunks as a tensor may have, and one more."""
    body = '%f = tessera.collective.all_reduce %x {{op="sum", chunk=4}}\n"tessera.graph.return"(%x)'
    assert len(plan(body.format(), "%x: tensor<65536xfp32>", "tensor<65536xfp32>")) == 65537
    with pytest.raises(TooLarge, match="65537"):
        plan(body.format(), "%x: tensor<65537xfp32>", "tensor<65537xfp32>")


SUM = """%f = tessera.collective.all_reduce %x {{op="sum", axis="{axis}", chunk=16}}
    %y = tessera.await %f
    %z = "tessera.graph.add"(%y, %x)
    "tessera.graph.return"(%z)"""


def mesh_module(body: str, extent: int = 10) -> Module:
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


def ran(
    found: Module, options: Options | None = None, seed: int | None = None, extent: int = 10, level: str = "strict"
) -> Any:
    function = found.functions["f"]
    plan = plan_function(found, function, options or Options())
    groups = groups_of(plan, found, function, "g")
    return plan, groups, *run_plan(found, function, plan, arrays(extent), groups, seed, level)


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
        ran(mesh_module(body))
    assert caught.value.status is Status.TESS_ERR_UNSUPPORTED
    assert said in str(caught.value)


def test_a_bound_beyond_all_chunks_is_no_bound() -> None:
    plan, groups, _, _ = ran(mesh_module(SUM.format(axis="tp")))
    times = [time_plan(plan, groups, 6, topology_of("eight-sm90"), 1000, bound) for bound in (None, 1 << 62)]
    assert times[0] == times[1]


def test_two_thousand_chunks_run_in_five_seconds() -> None:
    """On six ranks, two buffers each; CPU time."""
    actual = mesh_module(SUM.format(axis="tp"), 8000)
    start = time.process_time()
    plan, _, results, _ = ran(actual, Options(depth=2), 7, 8000)
    assert time.process_time() - start < 5
    assert len(plan.units) == 2003
    assert results[5][0].values.tolist() == [88.0] * 8000
