"""Plans that run: fused tensors are split again, and what is folded is done once (2.4 and 8)."""

from __future__ import annotations

import math

import pytest

from tessera_conformance.chapters.collectives.kit.exchanges import afterwards
from tessera_conformance.chapters.collectives.kit.plan_runs import (
    SEEDS,
    each_has,
    executed,
    fp32,
    numbers,
    vector,
)
from tessera_conformance.chapters.collectives.kit.plans import chunks
from tessera_conformance.chapters.collectives.kit.programs import SUM, awaits, issue, on_ranks, program, returns
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.vectors.building import counted

pytestmark = feature("plan-execution", "graph-ir-text")


@feature("fusion")
@clause("COLL-02.4-01")
@pytest.mark.parametrize("collective", ["all_reduce", "broadcast"])
def test_tensors_that_travelled_together_are_split_again(impl, check, collective):
    """Each has its own elements, in its own shape (AMB-COLL-24, AMB-COLL-56)."""
    shapes = {"a": (3,), "b": (5, 2), "c": (7,)}
    types = {name: f"tensor<{'x'.join(map(str, shape))}xfp32>" for name, shape in shapes.items()}
    operator = SUM if collective == "all_reduce" else "root=3"
    lines = [issue(f"%f{name}", f"%{name}", f"{operator}, chunk=80", collective) for name, held in types.items()]
    lines += [awaits(f"%r{name}", f"%f{name}") for name in types]
    gives = ", ".join(types.values())
    takes = ", ".join(f"%{name}: {held}" for name, held in types.items())
    text = program(*lines, returns("%ra, %rb, %rc", gives), takes=takes, gives=gives)
    counts = {"a": 3, "b": 10, "c": 7}
    rows = {name: [numbers(rank, count, 31 * count) for rank in range(4)] for name, count in counts.items()}
    inputs = [{name: fp32(rows[name][rank], shapes[name]) for name in rows} for rank in range(4)]
    after = {name: afterwards(collective, rows[name], "sum", 3) for name in rows}
    expected = [[fp32(after[name][rank], shapes[name]) for name in rows] for rank in range(4)]
    for seed in SEEDS:
        answer = executed(impl, check, text, inputs, **({} if seed is None else {"seed": seed}))
        check.equal(len(chunks(answer["units"])), 1, "the number of chunks")
        each_has(check, answer, expected)


def cast(result, operand, to):
    """A conversion."""
    return f'{result} = "tessera.graph.cast"({operand}) {{dtype = "{to}"}}'


def folding(before, after, extent=25):
    """A sum over three ranks with a scaling by %s, or a cast to a dtype, before and behind it."""
    lines, source, dtype = [], "%x", "fp32"
    if before is not None:
        lines.append('%m = "tessera.graph.multiply"(%x, %s)' if before == "scale" else cast("%m", "%x", before))
        source, dtype = "%m", dtype if before == "scale" else before
    lines += [issue("%f", source, f"{SUM}, chunk=32"), awaits("%v", "%f")]
    value = "%v"
    if after is not None:
        lines.append('%y = "tessera.graph.multiply"(%v, %s)' if after == "scale" else cast("%y", "%v", after))
        value, dtype = "%y", dtype if after == "scale" else after
    gives = f"tensor<{extent}x{dtype}>"
    text = program(*lines, returns(value, gives), takes=f"%x: {vector(extent)}, %s: fp32", gives=gives, mesh="dp=3")
    return text, dtype


FOLDS = {
    # before, after, what becomes of 257 on one rank, and of the sum of three
    "scale-before": ("scale", None, lambda x: 3 * x, lambda total: total),
    "scale-after": (None, "scale", lambda x: x, lambda total: 3 * total),
    "scales": ("scale", "scale", lambda x: 3 * x, lambda total: 3 * total),
    "cast-before": ("bf16", None, lambda x: x - x % 2, lambda total: total),
    "cast-after": (None, "bf16", lambda x: x, lambda total: 772),
    "casts": ("bf16", "fp32", lambda x: x - x % 2, lambda total: total),
    "cast-and-scale": ("scale", "bf16", lambda x: 3 * x, lambda total: 2320),
}


@feature("fusion")
@clause("COLL-02.4-02", "COLL-02.4-04")
@pytest.mark.parametrize(("before", "after", "on_a_rank", "of_all"), FOLDS.values(), ids=FOLDS)
def test_what_is_folded_is_done_once(impl, check, before, after, on_a_rank, of_all):
    """On the side on which the program has it: 257 is 256 in bf16, 771 is 772, 2313 is 2320 (AMB-COLL-57, -89)."""
    text, dtype = folding(before, after)
    expected = tensor_of(dtype, [of_all(3 * on_a_rank(257))] * 25)
    inputs = [{"x": fp32([257] * 25), "s": tensor_of("fp32", 3)} for _ in range(3)]
    for seed in SEEDS:
        answer = executed(impl, check, text, inputs, depth=2, **({} if seed is None else {"seed": seed}))
        check.true(all(unit["folds"] for unit in chunks(answer["units"])), "every chunk has the folds", text)
        each_has(check, answer, [[expected]] * 3)


@feature("fusion")
@clause("COLL-02.4-02", "COLL-02.4-04")
@pytest.mark.parametrize("first", ["scale", "cast"])
def test_a_scaling_and_a_cast_before_a_collective_keep_their_order(impl, check, first):
    """257 times 3 is 771, which bf16 has as 772; 257 is 256 in bf16, of which 768 is three times as much."""
    scaled, cast_ = '%m = "tessera.graph.multiply"(%x, %s)', cast("%n", "%m", "bf16")
    takes = f"%x: {vector(25)}, %s: fp32"
    if first == "cast":
        scaled, cast_ = cast("%m", "%x", "bf16"), '%n = "tessera.graph.multiply"(%m, %s)'
        takes = f"%x: {vector(25)}, %s: bf16"
    gives = "tensor<25xbf16>"
    lines = [scaled, cast_, issue("%f", "%n", f"{SUM}, chunk=32"), awaits("%v", "%f")]
    text = program(*lines, returns("%v", gives), takes=takes, gives=gives, mesh="dp=3")
    scale = tensor_of("fp32" if first == "scale" else "bf16", 3)
    inputs = [{"x": fp32([257] * 25), "s": scale} for _ in range(3)]
    expected = tensor_of("bf16", [3 * 772 + 4 if first == "scale" else 3 * 768] * 25)
    for seed in SEEDS:
        answer = executed(impl, check, text, inputs, depth=2, **({} if seed is None else {"seed": seed}))
        each_has(check, answer, [[expected]] * 3)


@feature("fusion")
@clause("COLL-02.4-02")
@pytest.mark.parametrize("place", ["before", "behind"])
def test_a_cast_beside_a_collective_overflows_as_it_says(impl, check, place):
    """A value too large for fp8_e5m2 becomes an infinity and not the largest number, also in a folded cast."""
    gives, inputs = "tensor<25xfp8_e5m2>", [{"x": fp32([1.0] * 24 + [-(2.0**20)])} for _ in range(3)]
    to = '{dtype = "fp8_e5m2", overflow = "nonfinite"}'
    if place == "before":
        lines = [f'%m = "tessera.graph.cast"(%x) {to}', issue("%f", "%m", 'op="max", chunk=8'), awaits("%v", "%f")]
    else:
        lines = [issue("%f", "%x", 'op="max", chunk=32'), awaits("%y", "%f"), f'%v = "tessera.graph.cast"(%y) {to}']
    text = program(*lines, returns("%v", gives), takes=f"%x: {vector(25)}", gives=gives, mesh="dp=3")
    expected = tensor_of("fp8_e5m2", [1.0] * 24 + [-math.inf])
    each_has(check, executed(impl, check, text, inputs, depth=2), [[expected]] * 3)


@feature("fusion")
@clause("COLL-02.4-02")
def test_a_scale_that_is_computed_behind_the_collective_is_waited_for(impl, check):
    """The scalar is made between the issue and the use: nine times the sum, wherever the scaling is done."""
    type_ = vector(25)
    lines = [
        issue("%f", "%x", f"{SUM}, chunk=32"),
        '%t = "tessera.graph.multiply"(%s, %s) : (fp32, fp32) -> fp32',
        awaits("%v", "%f"),
        '%y = "tessera.graph.multiply"(%v, %t)',
    ]
    text = program(*lines, returns("%y", type_), takes=f"%x: {type_}, %s: fp32", gives=type_, mesh="dp=3")
    inputs = [{"x": fp32(numbers(rank, 25)), "s": tensor_of("fp32", 3)} for rank in range(3)]
    total = afterwards("all_reduce", [numbers(rank, 25) for rank in range(3)], "sum", 0)
    expected = [[fp32([9 * value for value in row])] for row in total]
    for seed in SEEDS:
        each_has(check, executed(impl, check, text, inputs, **({} if seed is None else {"seed": seed})), expected)


@feature("fusion", "mesh-execution")
@clause("COLL-02.4-02", "COLL-02.4-04")
@pytest.mark.parametrize(("before", "after"), [fold[:2] for fold in FOLDS.values()], ids=FOLDS)
def test_folding_changes_no_bit(impl, check, before, after):
    """The data round at every step; 0.3 is not a number of fp32 (AMB-COLL-57)."""
    text, _ = folding(before, after)
    scale = counted("fp32", (1,), seed=77)
    inputs = [
        {"x": counted("fp32", (25,), seed=820 + rank, exponents=(-4, 4)), "s": type(scale)("fp32", (), scale.data)}
        for rank in range(3)
    ]
    whole = on_ranks(impl, check, text, inputs)
    for seed in SEEDS[:4]:
        each_has(check, executed(impl, check, text, inputs, **({} if seed is None else {"seed": seed})), whole)


@feature("fusion")
@clause("COLL-02.4-02", "COLL-02.4-04")
def test_a_factor_that_is_made_after_the_collective_scales_its_value(impl, check):
    """A product of scalars, computed once the first chunk may be on its way."""
    type_ = vector(8)
    text = program(
        issue("%f", "%x", f"{SUM}, chunk=8"),
        '%t = "tessera.graph.multiply"(%s, %s) : (fp32, fp32) -> fp32',
        awaits("%v", "%f"),
        f'%y = "tessera.graph.multiply"(%v, %t) : ({type_}, fp32) -> {type_}',
        returns("%y", type_),
        takes=f"%x: {type_}, %s: fp32",
        gives=type_,
        mesh="dp=3",
    )
    inputs = [{"x": fp32(range(rank, rank + 8)), "s": tensor_of("fp32", 3)} for rank in range(3)]
    expected = fp32([9 * (3 * place + 3) for place in range(8)])
    for seed in SEEDS:
        answer = executed(impl, check, text, inputs, **({} if seed is None else {"seed": seed}))
        each_has(check, answer, [[expected]] * 3)
