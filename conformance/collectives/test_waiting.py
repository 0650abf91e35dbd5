"""Programs with futures on all ranks: what is computed, who waits for whom, and groups (2 and 8)."""

import pytest

from tessera_conformance.chapters.collectives.kit.programs import (
    BRANCHED,
    FIRST_LINE,
    MISMATCH,
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
    spread,
)
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle.collectives import all_reduce
from tessera_conformance.protocol import Rejected
from tessera_conformance.tensors import Tensor

pytestmark = feature("mesh-execution", "graph-ir-text")

GRID = "dp=2 tp=2"


def parts(row, count):
    """Equal stretches of a vector."""
    size = len(row.data) // count
    return [row.data[index * size : (index + 1) * size] for index in range(count)]


def vector(like, *pieces):
    """A vector of pieces of another."""
    data = b"".join(pieces)
    return Tensor(like.dtype, (len(data) * like.shape[0] // len(like.data),), data)


# What is computed


def wanted(collective, rows):
    """Return the expected results of a group's ranks."""
    ranks = len(rows)
    if collective == "all_reduce":
        return list(all_reduce(*rows))
    if collective == "reduce_scatter":
        return [vector(rows[0], part) for part in parts(all_reduce(*rows)[0], ranks)]
    if collective == "all_gather":
        return [vector(rows[0], *(row.data for row in rows))] * ranks
    if collective == "broadcast":
        return [rows[-1]] * ranks
    dealt = [parts(row, ranks) for row in rows]
    return [vector(rows[0], *(dealt[source][rank] for source in range(ranks))) for rank in range(ranks)]


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize(
    "collective",
    [
        pytest.param("all_reduce", marks=clause("COLL-02.1-05")),
        pytest.param("reduce_scatter", marks=clause("COLL-02.1-04", "COLL-02.1-05")),
        pytest.param("all_gather", marks=clause("COLL-02.1-05", "COLL-09.2-02")),
        pytest.param("broadcast", marks=clause("COLL-02.1-05")),
        pytest.param("all_to_all", marks=clause("COLL-02.1-05")),
    ],
)
def test_an_awaited_future_has_the_bits_of_its_collective(impl, check, collective, dtype, ranks):
    """The bits are those of the collectives of Graph IR: canonical tree, parts in the order of ranks (AMB-RT-04)."""
    count = ranks * 3
    rows = spread(ranks, dtype, count)
    expected = wanted(collective, rows)
    type_, gives = (f"tensor<{size}x{dtype}>" for size in (count, expected[0].shape[0]))
    attributes = {"all_reduce": SUM, "reduce_scatter": SUM, "broadcast": f"root={ranks - 1}"}.get(collective, "")
    lines = [issue("%f", "%x", attributes, collective), awaits("%y", "%f"), returns("%y", gives)]
    text = program(*lines, takes=f"%x: {type_}", gives=gives, mesh=f"dp={ranks}")
    for rank, ((actual,), value) in enumerate(zip(on_ranks(impl, check, text, given(rows)), expected, strict=True)):
        check.bits(actual, value, f"{collective}: rank {rank}")


@clause("COLL-02.1-05")
@pytest.mark.parametrize("op", ["max", "min"])
def test_extremes_keep_signs_of_zeros_and_nans(impl, check, op):
    """NaN, infinities, zeros of both signs and subnormals come through a future as they are."""
    rows = [
        tensor_of("fp32", row)
        for row in (
            [0.0, -0.0, float("inf"), float("nan"), 2.0**-149, 1, -3, 5],
            [-0.0, 0.0, 1.0, 1.0, -(2.0**-149), 1, float("-inf"), float("nan")],
        )
    ]
    text = program(issue("%f", "%x", f'op="{op}"'), awaits("%y", "%f"), returns("%y"), mesh="dp=2")
    for (actual,), value in zip(on_ranks(impl, check, text, given(rows)), all_reduce(*rows, op=op), strict=True):
        check.bits(actual, value, op)


@clause("COLL-02.1-04", "COLL-02.1-05")
@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter"])
@pytest.mark.parametrize(("op", "values"), [("prod", [6, -60, 0, 6, 6, 24]), ("mean", [2, 1, 1, 2, 2, 3])])
def test_products_and_means_are_those_of_all_ranks(impl, check, collective, op, values):
    """Over three ranks, rounded once (AMB-COLL-31); a mean of integers is refused."""
    rows = [[1, 2, 0, 1, 1, 2], [2, -5, 1, 2, 2, 3], [3, 6, 2, 3, 3, 4]]
    gives = "tensor<6xfp32>" if collective == "all_reduce" else "tensor<2xfp32>"
    for dtype in ("fp32", "int32") if op == "mean" else ("fp32",):
        type_, result = "tensor<6xfp32>".replace("fp32", dtype), gives.replace("fp32", dtype)
        lines = [issue("%f", "%x", f'op="{op}"', collective), awaits("%y", "%f"), returns("%y", result)]
        text = program(*lines, takes=f"%x: {type_}", gives=result, mesh="dp=3")
        if dtype == "int32":
            check.rejects(impl.language.verify_ir(text=text), category=("types", "distributed"), at_line=FIRST_LINE)
            continue
        for rank, (actual,) in enumerate(on_ranks(impl, check, text, given([tensor_of("fp32", row) for row in rows]))):
            mine = values if collective == "all_reduce" else values[2 * rank : 2 * rank + 2]
            check.bits(actual, tensor_of("fp32", mine), f"{op}: rank {rank}")


@clause("COLL-02.1-05")
def test_a_second_await_yields_the_same_value(impl, check):
    """At once, and after other work has used the first (AMB-COLL-03)."""
    text = program(
        issue("%f", "%x", SUM),
        awaits("%a", "%f"),
        awaits("%b", "%f"),
        binary("%s", "add", "%a", "%b"),
        awaits("%c", "%f"),
        returns("%a, %b, %c", f"{T}, {T}, {T}"),
        gives=f"{T}, {T}, {T}",
        mesh="dp=3",
    )
    rows = spread(3)
    total = all_reduce(*rows)[0]
    observed = impl.collectives.execute(text=text, function="f", ranks=given(rows))
    check.reading("AMB-COLL-03", "errors", isinstance(observed, Rejected))
    for rank, outputs in enumerate(on_ranks(impl, check, text, given(rows))):
        for place, actual in enumerate(outputs):
            check.bits(actual, total, f"rank {rank}, await {place}")


@clause("COLL-02.1-05", "COLL-02.1-01")
@pytest.mark.parametrize("between", ["all_reduce", "all_gather", "broadcast"])
def test_a_second_await_yields_the_same_value_after_another_collective(impl, check, between):
    """Another future of the same ranks is issued and awaited between; then each is awaited again (AMB-COLL-03)."""
    gives = f"tensor<{8 * 3}xfp32>" if between == "all_gather" else T
    attributes = {"all_reduce": 'op="max"', "all_gather": "", "broadcast": "root=2"}[between]
    text = program(
        issue("%f", "%x", SUM),
        awaits("%a", "%f"),
        issue("%g", "%x", attributes, between),
        awaits("%b", "%g"),
        awaits("%c", "%f"),
        awaits("%d", "%g"),
        returns("%a, %b, %c, %d", f"{T}, {gives}, {T}, {gives}"),
        gives=f"{T}, {gives}, {T}, {gives}",
        mesh="dp=3",
    )
    rows = spread(3)
    total = all_reduce(*rows)[0]
    others = list(all_reduce(*rows, op="max")) if between == "all_reduce" else wanted(between, rows)
    observed = impl.collectives.execute(text=text, function="f", ranks=given(rows))
    check.reading("AMB-COLL-03", "errors", isinstance(observed, Rejected))
    for rank, outputs in enumerate(on_ranks(impl, check, text, given(rows))):
        for place, (actual, expected) in enumerate(zip(outputs, [total, others[rank]] * 2, strict=True)):
            check.bits(actual, expected, f"rank {rank}, await {place}")


@clause("COLL-02.1-05", "COLL-02.1-01")
def test_a_future_keeps_the_operand_as_it_was_issued(impl, check):
    """Two collectives under way have values of their own, whatever is computed, and awaited, between."""
    text = program(
        issue("%f", "%x", SUM),
        binary("%d", "multiply", "%x", "%x"),
        issue("%g", "%d", 'op="max"'),
        awaits("%b", "%g"),
        awaits("%a", "%f"),
        returns("%a, %b", f"{T}, {T}"),
        gives=f"{T}, {T}",
        mesh="dp=3",
    )
    rows = [tensor_of("fp32", [rank + place for place in range(8)]) for rank in range(3)]
    total = tensor_of("fp32", [sum(rank + place for rank in range(3)) for place in range(8)])
    largest = tensor_of("fp32", [(2 + place) ** 2 for place in range(8)])
    for first, second in on_ranks(impl, check, text, given(rows)):
        check.bits(first, total, "the sum")
        check.bits(second, largest, "the largest square")


# Hints


@feature("scopes")
@clause("COLL-02.2-02")
@pytest.mark.parametrize("scope", ["intra_sm", "intra_gpu", "node", "rack"])
def test_a_scope_leaves_the_bits_alone(impl, check, scope):
    """A hint: the sum of five ranks has the bits that it has without (AMB-COLL-11)."""
    rows = spread(5)
    for attributes in (SUM, f'{SUM}, scope="{scope}"'):
        text = program(issue("%f", "%x", attributes), awaits("%y", "%f"), returns("%y"), mesh="dp=5")
        for (actual,), value in zip(on_ranks(impl, check, text, given(rows)), all_reduce(*rows), strict=True):
            check.bits(actual, value, attributes)


@feature("scopes")
@clause("COLL-02.2-02")
def test_ranks_may_hint_differently(impl, check):
    """scope, path, priority, overlap and qos are each rank's own (AMB-COLL-52)."""
    hints = (f'{SUM}, scope="node"', f'{SUM}, scope="rack", path="auto", priority=2, overlap=true, qos="low"')
    sides = [[issue("%f", "%x", hint), awaits("%y", "%f")] for hint in hints]
    sides[1] = [line.replace("%f", "%g").replace("%y", "%z") for line in sides[1]]
    text = program(branch(*sides), returns("%r"), takes=BRANCHED, mesh="dp=3")
    rows = spread(3)
    on_ranks(impl, check, text, given(rows, c=[1, 1, 1]))
    on_ranks(impl, check, text, given(rows, c=[0, 0, 0]))
    flags = given(rows, c=[1, 0, 1])
    answer = impl.collectives.execute(text=text, function="f", ranks=flags)
    apart = isinstance(answer, Rejected) and answer.code == MISMATCH
    check.reading("AMB-COLL-52", "hints must agree too", apart)
    for rank, value in zip(check.returns(answer)["ranks"], all_reduce(*rows), strict=True):
        check.bits(rank["outputs"][0], value, "the sum")


# Who waits


@clause("COLL-02.1-02", "COLL-02.1-03")
def test_issuing_does_not_wait(impl, check):
    """On a square, half of the ranks issue along one axis first, half along the other: waiting there is a deadlock."""
    dp, tp = f'{SUM}, axis="dp"', f'{SUM}, axis="tp"'
    then = [issue("%f", "%x", dp), issue("%g", "%x", tp), awaits("%a", "%f"), awaits("%b", "%g")]
    otherwise = [issue("%h", "%x", tp), issue("%i", "%x", dp), awaits("%d", "%i"), awaits("%e", "%h")]
    then.append(binary("%y", "subtract", "%a", "%b"))
    otherwise.append(binary("%z", "subtract", "%d", "%e"))
    text = program(branch(then, otherwise), returns("%r"), takes=BRANCHED, mesh=GRID)
    rows = [tensor_of("fp32", [10**rank] * 8) for rank in range(4)]
    answers = on_ranks(impl, check, text, given(rows, c=[1, 0, 0, 1]))
    expected = [101 - 11, 1010 - 11, 101 - 1100, 1010 - 1100]
    for rank, ((actual,), value) in enumerate(zip(answers, expected, strict=True)):
        check.bits(actual, tensor_of("fp32", [value] * 8), f"rank {rank}: along dp less along tp")


@clause("COLL-02.1-02")
@pytest.mark.parametrize("orders", [(1, 0), (0, 1), (1, 1)], ids=["crossed", "crossed-back", "both-late-first"])
def test_ranks_may_await_in_different_orders(impl, check, orders):
    """Collectives issued in one order may be awaited in any other."""
    then = [issue("%f", "%x", SUM), issue("%g", "%x", 'op="max"')]
    otherwise = [issue("%h", "%x", SUM), issue("%i", "%x", 'op="max"')]
    waits = [[awaits("%a", "%f"), awaits("%b", "%g")], [awaits("%d", "%h"), awaits("%e", "%i")]]
    then += waits[0][::-1] if orders[0] else waits[0]
    otherwise += waits[1][::-1] if orders[1] else waits[1]
    then.append(binary("%y", "subtract", "%a", "%b"))
    otherwise.append(binary("%z", "subtract", "%d", "%e"))
    text = program(branch(then, otherwise), returns("%r"), takes=BRANCHED, mesh="dp=3")
    rows = [tensor_of("fp32", [rank * place for place in range(8)]) for rank in range(3)]
    for (actual,) in on_ranks(impl, check, text, given(rows, c=[1, 0, 1])):
        check.bits(actual, tensor_of("fp32", [3 * place - 2 * place for place in range(8)]), "the sum less the largest")


@clause("COLL-02.1-02")
def test_an_await_waits_for_its_own_future_alone(impl, check):
    """An earlier collective may still wait for a rank that waits for a later one of this rank."""
    tp, dp, all_ = f'{SUM}, axis="tp"', f'{SUM}, axis="dp"', f"{SUM}, subgroup=!tessera.shard<axes=[dp, tp]>"
    then = [
        issue("%f", "%x", dp),
        issue("%g", "%x", tp),
        awaits("%a", "%g"),
        issue("%k", "%a", all_),
        awaits("%b", "%f"),
        awaits("%c1", "%k"),
        binary("%y", "add", "%b", "%c1"),
    ]
    otherwise = [
        issue("%h", "%x", tp),
        awaits("%d", "%h"),
        issue("%l", "%d", all_),
        awaits("%e", "%l"),
        issue("%i", "%x", dp),
        awaits("%j", "%i"),
        binary("%z", "add", "%j", "%e"),
    ]
    text = program(branch(then, otherwise), returns("%r"), takes=BRANCHED, mesh=GRID)
    rows = [tensor_of("fp32", [10**rank] * 8) for rank in range(4)]
    answers = on_ranks(impl, check, text, given(rows, c=[1, 1, 0, 0]))
    for rank, (actual,) in enumerate(answers):
        value = (101 if rank % 2 == 0 else 1010) + 2 * 1111
        check.bits(actual, tensor_of("fp32", [value] * 8), f"rank {rank}")


@clause("COLL-02.1-03")
def test_a_group_that_issues_nothing_is_not_waited_for(impl, check):
    """Two ranks sum, and the other two do not wait: no collective includes all four."""
    then = [issue("%f", "%x", f'{SUM}, axis="tp"'), awaits("%y", "%f")]
    otherwise = [binary("%z", "subtract", "%x", "%x")]
    text = program(branch(then, otherwise), returns("%r"), takes=BRANCHED, mesh=GRID)
    rows = [tensor_of("fp32", [rank + 1] * 8) for rank in range(4)]
    for rank, (actual,) in enumerate(on_ranks(impl, check, text, given(rows, c=[0, 0, 1, 1]))):
        check.bits(actual, tensor_of("fp32", [0 if rank < 2 else 7] * 8), f"rank {rank}")


@clause("COLL-02.1-02", "COLL-02.1-05")
def test_a_future_that_one_rank_never_awaits_completes(impl, check):
    """It is dropped there, and has its value on the others (AMB-COLL-03)."""
    then = [issue("%f", "%x", SUM), awaits("%y", "%f")]
    otherwise = [issue("%g", "%x", SUM), binary("%z", "add", "%x", "%x")]
    text = program(branch(then, otherwise), returns("%r"), takes=BRANCHED, mesh="dp=3")
    rows = [tensor_of("fp32", [10**rank] * 8) for rank in range(3)]
    for rank, (actual,) in enumerate(on_ranks(impl, check, text, given(rows, c=[1, 0, 1]))):
        check.bits(actual, tensor_of("fp32", [20 if rank == 1 else 111] * 8), f"rank {rank}")


@clause("COLL-02.1-02", "COLL-02.1-05")
def test_a_future_that_nobody_awaits_is_dropped(impl, check):
    """The program ends as it would without it."""
    text = program(issue("%f", "%x", SUM), issue("%g", "%x", 'op="max"'), returns("%x"), mesh="dp=3")
    rows = spread(3)
    for (actual,), row in zip(on_ranks(impl, check, text, given(rows)), rows, strict=True):
        check.bits(actual, row, "what was given")


# Subgroups


@feature("subgroups")
@clause("COLL-02.2-03")
@pytest.mark.parametrize(
    ("shard", "groups"),
    [
        ("axes=[tp]", [[0, 1, 2], [3, 4, 5]]),
        ("axes=[dp]", [[0, 3], [1, 4], [2, 5]]),
        ("axes=[dp, tp]", [[0, 1, 2, 3, 4, 5]]),
        ("axes=[tp, dp]", [[0, 1, 2, 3, 4, 5]]),
        ("groups=[[0, 1, 2, 3, 4, 5]]", [[0, 1, 2, 3, 4, 5]]),
        ("groups=[[0, 5], [2, 1], [4, 3]]", [[0, 5], [2, 1], [4, 3]]),
        ("groups=[[5, 3, 1], [4, 0, 2]]", [[5, 3, 1], [4, 0, 2]]),
    ],
)
@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter", "broadcast"])
def test_each_group_meets_for_itself(impl, check, shard, groups, collective):
    """Axes in the order of the mesh, groups in the order written: of parts, and of roots (AMB-COLL-51)."""
    size = len(groups[0])
    extra = {"reduce_scatter": f"{SUM}, ", "broadcast": f"root={size - 1}, "}.get(collective, "")
    rows = spread(6, count=6)
    expected = {
        rank: value
        for group in groups
        for rank, value in zip(group, wanted(collective, [rows[rank] for rank in group]), strict=True)
    }
    gives = f"tensor<{expected[0].shape[0]}xfp32>"
    lines = [issue("%f", "%x", f"{extra}subgroup=!tessera.shard<{shard}>", collective)]
    lines += [awaits("%y", "%f"), returns("%y", gives)]
    text = program(*lines, takes="%x: tensor<6xfp32>", gives=gives, mesh="dp=2 tp=3")
    for rank, (actual,) in enumerate(on_ranks(impl, check, text, given(rows))):
        check.bits(actual, expected[rank], f"{collective} of {shard}: rank {rank}")


@feature("subgroups")
@clause("COLL-02.2-03")
def test_a_rank_of_no_group_issues_nothing(impl, check):
    """A rank of no group that issues the collective is refused; if it does not, the groups complete without it."""
    shard = f"{SUM}, subgroup=!tessera.shard<groups=[[0, 2]]>"
    then = [issue("%f", "%x", shard), awaits("%y", "%f")]
    text = program(branch(then, [binary("%z", "subtract", "%x", "%x")]), returns("%r"), takes=BRANCHED, mesh="dp=3")
    rows = [tensor_of("fp32", [10**rank] * 8) for rank in range(3)]
    for rank, (actual,) in enumerate(on_ranks(impl, check, text, given(rows, c=[1, 0, 1]))):
        check.bits(actual, tensor_of("fp32", [0 if rank == 1 else 101] * 8), f"rank {rank}")
    refused = impl.collectives.execute(text=text, function="f", ranks=given(rows, c=[1, 1, 1]))
    check.rejects(refused, category="distributed")
