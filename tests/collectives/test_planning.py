"""Plans as text, from IR to units; running them, and how long that takes (AMB-COLL-87, -90)."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives.planning import Options, groups_of, plan_function, run_plan, time_plan
from tessera_reference.collectives.planning.planner import ranges
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.module import Module
from tessera_reference.ir.targets import DEFAULT, target_of
from tessera_reference.levels.texts import read_at
from tessera_reference.mesh.topology import named
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


GRADIENT = """
    %dw = "tessera.graph.multiply"(%x, %x)
    %f = tessera.collective.all_reduce %dw {op="sum", chunk=1KiB}
    %next = "tessera.graph.add"(%x, %x)
    %sum = tessera.await %f
    %out = "tessera.graph.subtract"(%sum, %next)
    "tessera.graph.return"(%out)
"""


def test_a_gradient_in_chunks_with_two_buffers() -> None:
    """Section 9.1, with tiles of 128 bytes and three chunks under way at most."""
    held = "tensor<900xfp32>"
    assert plan(GRADIENT, f"%x: {held}", held, Options(tile=128, max_inflight=3, depth=2)) == [
        "0 compute: %dw = tessera.graph.multiply(%x)",
        "1 comm: %f = tessera.collective.all_reduce(%dw) [0:256] buffer 0 over fp32 in fp32 after 0",
        "2 comm: %f = tessera.collective.all_reduce(%dw) [256:512] buffer 1 over fp32 in fp32 after 0",
        "3 comm: %f = tessera.collective.all_reduce(%dw) [512:768] buffer 0 over fp32 in fp32 after 0, 1",
        "4 comm: %f = tessera.collective.all_reduce(%dw) [768:900] buffer 1 over fp32 in fp32 after 0, 1, 2",
        "5 compute: %next = tessera.graph.add(%x)",
        "6 compute: %sum = tessera.await(%f) after 1, 2, 3, 4",
        "7 compute: %out = tessera.graph.subtract(%sum, %next) after 5, 6",
        "8 compute: tessera.graph.return(%out) after 7",
    ]


def test_a_collective_of_graph_ir_is_awaited_at_its_first_use() -> None:
    """Also where that use is in a region; a value that is not used is not awaited."""
    body = """
    %s = "tessera.graph.all_reduce"(%x) {op = "sum", axis = "dp"}
    %t = "tessera.graph.root_broadcast"(%x) {root = 1, axis = "dp"}
    %a = "tessera.graph.exp"(%x)
    %r = "tessera.graph.if"(%c) ({
      %b = "tessera.graph.add"(%a, %s)
      "tessera.graph.yield"(%b)
    }, {
      "tessera.graph.yield"(%a)
    }) : (bool) -> tensor<8xbf16>
    "tessera.graph.return"(%r)
"""
    held = "tensor<8xbf16>"
    assert plan(body, f"%x: {held}, %c: bool", held) == [
        "0 comm: %s = tessera.collective.all_reduce(%x) [0:8] over bf16 in fp32",
        "1 comm: %t = tessera.collective.broadcast(%x) [0:8] over bf16",
        "2 compute: %a = tessera.graph.exp(%x)",
        "3 compute: %s = tessera.await(%s) after 0",
        "4 compute: %r = tessera.graph.if(%c, %a, %s) after 2, 3",
        "5 compute: tessera.graph.return(%r) after 4",
    ]


def test_a_scaled_gradient_travels_as_bf16() -> None:
    """Scaled and cast on both sides, all in the collective; by a scalar that comes too late, in the compute queue."""
    body = """
    %m = "tessera.graph.multiply"(%x, %s)
    %n = "tessera.graph.cast"(%m) {dtype = "bf16"}
    %f = tessera.collective.all_reduce %n {op="sum", chunk=1MiB}
    %a = tessera.await %f
    %b = "tessera.graph.cast"(%a) {dtype = "fp32"}
    %late = "tessera.graph.exp"(%s)
    %y = "tessera.graph.multiply"(%late, %b)
    "tessera.graph.return"(%y)
"""
    assert plan(body, "%x: tensor<8xfp32>, %s: fp32", "tensor<8xfp32>") == [
        "0 comm: %f = tessera.collective.all_reduce(%x) [0:8] over bf16 in fp32"
        " scale before by %s cast before by bf16 cast after by fp32",
        "1 compute: %late = tessera.graph.exp(%s)",
        "2 compute: %b = tessera.await(%f) after 0",
        "3 compute: %y = tessera.graph.multiply(%late, %b) after 1, 2",
        "4 compute: tessera.graph.return(%y) after 3",
    ]


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


@given(st.integers(0, 5000), st.integers(1, 6000))
def test_ranges_cover_every_element_once(count: int, chunk: int) -> None:
    found = list(ranges(count, chunk))
    assert sum(size for _, size in found) == count
    assert all(first == index * chunk for index, (first, _) in enumerate(found))
    assert all(size == chunk for _, size in found[:-1])


LINES = st.lists(st.tuples(st.sampled_from(["add", "issue", "scale", "cast", "again"]), st.integers(0, 9)), max_size=12)


@settings(max_examples=60, deadline=None)
@given(LINES, st.integers(1, 4), st.integers(1, 4))
def test_a_plan_computes_each_value_once_before_its_uses(lines: list[tuple[str, int]], depth: int, most: int) -> None:
    """Whatever is issued, awaited, folded and fused: operands stand above, and every use waits for what it uses."""
    values, body = ["%x"], []
    for index, (kind, drawn) in enumerate(lines):
        operand, new = values[drawn % len(values)], f"%v{index}"
        if kind == "issue":
            body.append(f'%f{index} = tessera.collective.all_reduce {operand} {{op="sum", chunk={16 << drawn % 4}}}')
            body.append(f"{new} = tessera.await %f{index}")
        elif kind == "again":
            body.append(f'{new} = "tessera.graph.all_reduce"({operand}) {{op = "max", axis = "dp"}}')
        elif kind == "cast":
            body.append(f'%n{index} = "tessera.graph.cast"({operand}) {{dtype = "bf16"}}')
            body.append(f'{new} = "tessera.graph.cast"(%n{index}) {{dtype = "fp32"}}')
        elif kind == "scale":
            body.append(f'{new} = "tessera.graph.multiply"({operand}, %s)')
        else:
            body.append(f'{new} = "tessera.graph.add"({operand}, {values[-1]})')
        values.append(new)
    body.append(f'"tessera.graph.return"({values[-1]})')
    found = module("\n".join(body), "%x: tensor<8xfp32>, %s: fp32", "tensor<8xfp32>")
    units = plan_function(found, found.functions["f"], Options(depth=depth, max_inflight=most)).units
    made: dict[str, set[int]] = {"%x": set(), "%s": set()}
    issued: dict[str, set[int]] = {}
    for unit in units:
        for fold in unit.folds:
            assert fold.kind == "cast" or fold.by in made
        for operand in unit.operands:
            wanted = issued[operand] if unit.op == "tessera.await" else made[operand]
            assert wanted <= set(unit.after)
        for result in unit.results:
            if unit.queue == "comm":
                issued.setdefault(result, set()).add(unit.id)
                if not result.startswith("%f"):
                    continue
            else:
                assert result not in made
                made[result] = {unit.id}


def test_a_thousand_layers_are_planned_in_two_seconds() -> None:
    """Of a product, a scaling, a cast and two collectives each; CPU time."""
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
    found = module("\n".join(body), "%x: tensor<1024xfp32>, %s: fp32", "tensor<1024xfp32>")
    start = time.process_time()
    units = plan_function(found, found.functions["f"], Options(tile=256, depth=2, max_inflight=8)).units
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


def test_a_wait_takes_what_has_landed() -> None:
    """One that waits for nothing gives the zeros that were there, whatever lands later."""
    found = mesh_module(SUM.format(axis="dp"))
    function = found.functions["f"]
    plan = plan_function(found, function, Options())
    early = [replace(unit, after=()) if unit.op == "tessera.await" else unit for unit in plan.units]
    early.sort(key=lambda unit: unit.op != "tessera.await")
    groups = groups_of(plan, found, function, "g")
    results, _ = run_plan(found, function, replace(plan, units=early), arrays(), groups)
    assert [each[0].values.tolist() for each in results] == [[2.0**rank] * 10 for rank in range(6)]


def test_an_order_follows_from_its_seed() -> None:
    found = mesh_module(SUM.format(axis="dp"))
    orders = [tuple(ran(found, Options(depth=2), seed)[3]) for seed in (None, None, 4, 4, 5)]
    assert orders[0] == orders[1] and orders[2] == orders[3]
    assert len(set(orders)) == 3


def test_more_ranks_than_devices_are_refused() -> None:
    plan, groups, *_ = ran(mesh_module(SUM.format(axis="dp")))
    with pytest.raises(Failure) as caught:
        time_plan(plan, groups, 6, named("single"), 1)
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_a_rank_in_no_group_is_refused() -> None:
    body = SUM.format(axis="dp").replace('axis="dp"', "subgroup=!tessera.shard<groups=[[0, 1], [3, 4]]>")
    with pytest.raises(Rejection, match="rank 2 is in no group"):
        ran(mesh_module(body))


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


def test_a_chunk_of_blocks_with_scales_is_refused() -> None:
    """Its blocks would be those of the whole tensor (AMB-COLL-63)."""
    body = SUM.format(axis="dp").replace("chunk=16", 'dtype="fp8", qscheme="blockwise", chunk=16')
    with pytest.raises(Failure, match="a chunk of blocks that have scales") as caught:
        ran(mesh_module(body), level="fast")
    assert caught.value.status is Status.TESS_ERR_UNSUPPORTED
    ran(mesh_module(body.replace("chunk=16", "chunk=40")), level="fast")


def test_two_thousand_chunks_run_in_five_seconds() -> None:
    """On six ranks, two buffers each; CPU time."""
    found = mesh_module(SUM.format(axis="tp"), 8000)
    start = time.process_time()
    plan, _, results, _ = ran(found, Options(depth=2), 7, 8000)
    assert time.process_time() - start < 5
    assert len(plan.units) == 2003
    assert results[5][0].values.tolist() == [88.0] * 8000
