"""Golden bits of sums under the policy's stableReductions, and under a descriptor's order (runtime spec, 4.7, 11).

The frozen vectors of `ir/reductions` and `ir/matmul`, whose bits another order changes, asked for through the runtime.
"""

from __future__ import annotations

import pytest

from tessera_conformance.arithmetic import canonical, replay
from tessera_conformance.chapters.runtime.kit.collectives import filled, held
from tessera_conformance.chapters.runtime.kit.encoding import packed, values_of
from tessera_conformance.chapters.runtime.kit.mesh_session import opened
from tessera_conformance.chapters.runtime.kit.policies import LEVELS, REDUCTION_ORDERS, STRICT
from tessera_conformance.dsl import tensor_of, type_of
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.trees import Tree
from tessera_conformance.protocol import Rejected, Returned
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors import load
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.files import Vector

SUMS = [
    *(f"fp32/sum/{part}" for part in ("order", "n-7", "n-12", "n-31", "n-33")),
    *(f"fp64/sum/{part}" for part in ("order", "n-33")),
    *(f"{dtype}/sum/n-33" for dtype in ("fp16", "bf16")),
    "bf16/sum/small-after-large",
]


def vector_of(topic: str, name: str) -> Vector:
    """A frozen vector."""
    (actual,) = [vector for vector in load(topic) if vector.name == name]
    return actual


def summing(x: Tensor, result: Tensor, axis: int) -> str:
    """A kernel of a sum along an axis."""
    return f"module m {{ kernel k(x: {type_of(x)}, y: {type_of(result)}) {{ y = op.sum(x) @{{axis={axis}}}; }} }}"


@feature("reductions")
@clause("RT-04.7-02")
@pytest.mark.parametrize("name", SUMS)
def test_a_launched_sum_is_stable(impl, check, name):
    """With stableReductions at 1: the frozen bits of the pairwise tree at strict, else within the bound."""
    vector = vector_of("ir/reductions", name)
    (x,), (expected,) = vector.call.inputs.values(), vector.expected
    axis = vector.provenance.check.arguments["axis"]
    session = opened(impl, check)
    session.set_policy(STRICT | ({} if impl.level == "strict" else LEVELS[impl.level]) | {"stableReductions": 1})
    pointer, result = session.upload(x.data), session.upload(bytes(len(expected.data)))
    kernel = session.kernel("k", summing(x, expected, axis))
    session.launch(kernel, packed(("ptr", pointer), ("ptr", result)))
    actual = Tensor(expected.dtype, expected.shape, session.download(result, len(expected.data)))
    if impl.level == "strict":
        check.bits(actual, expected, "the frozen bits")
    else:
        check.enclosed(actual, bounds.enclose("oracle.sum", [x], {"axis": axis}), "the bound of a sum")


@level("strict")
@feature("operation-access", "reductions")
@clause("RT-11-02")
@pytest.mark.parametrize("name", SUMS)
def test_a_pairwise_order_has_the_golden_bits(impl, check, name):
    """A descriptor that asks for the pairwise tree: odd tails are carried unchanged and nothing is padded."""
    vector = vector_of("ir/reductions", name)
    attributes = {"axis": vector.provenance.check.arguments["axis"]}
    answer = impl.numerics.evaluate(
        operation="sum",
        inputs=list(vector.call.inputs.values()),
        attributes=attributes,
        descriptor={"reduction_order": "pairwise"},
    )
    check.bits(check.returns(answer)["outputs"][0], vector.expected[0], "the frozen bits")


@level("strict")
@feature("rank-memory")
@clause("RT-11-02")
@pytest.mark.parametrize("ranks", [3, 5, 6, 7, 8])
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp64"])
def test_a_collective_of_a_pairwise_order_has_the_golden_bits(impl, check, dtype, ranks):
    """The order that a descriptor fixes for an all-reduce, also over a number of ranks that is no power of two."""
    vector = vector_of("collectives/all_reduce", f"{dtype}/sum/ranks-{ranks}")
    inputs = list(vector.call.inputs.values())
    session = opened(impl, check, ranks)
    pointer = filled(session, inputs)
    session.ask("tessxSetDescriptor", context=session.context, descriptor={"reduction_order": "pairwise"})
    session.all_reduce(pointer, inputs[0].shape[0], dtype)
    session.synchronize()
    for rank, actual in enumerate(held(session, pointer, inputs)):
        check.bits(actual, vector.expected[0], f"the frozen bits on rank {rank}")


@feature("rank-memory")
@clause("RT-11-02")
@pytest.mark.parametrize("tree", [[0, 1], [[0, 1], [2, 3]]], ids=["fewer", "more"])
def test_a_tree_over_another_number_of_ranks_is_refused(impl, check, tree):
    """An all-reduce of three ranks under it is an invalid value, of the call or of its stream (AMB-RT-78)."""
    session = opened(impl, check, 3)
    inputs = [tensor_of("fp32", [place + 100 * rank for place in range(8)]) for rank in range(3)]
    pointer = filled(session, inputs)
    session.ask("tessxSetDescriptor", context=session.context, descriptor={"reduction_order": tree})
    answer = session.reducing(pointer, 8, "fp32", "dp")
    if isinstance(answer, Returned):
        answer = session.attempt("tessStreamSynchronize", stream=session.stream)
    if isinstance(answer, Returned):
        whole = [tensor_of("fp32", [3 * place + 300 for place in range(8)])] * 3
        check.reading("AMB-RT-78", "it is ignored", held(session, pointer, inputs) == whole)
    check.status(answer, "TESS_ERR_INVALID_VALUE")


@level("strict")
@feature("rank-memory")
@clause("RT-11-02")
def test_a_collective_has_the_order_that_was_set_when_it_was_queued(impl, check):
    """Three all-reduces are queued under three descriptors, and a fourth is set before the first has run."""
    session = opened(impl, check, 4)
    inputs = [counted("fp32", (32,), seed=824 + rank, exponents=(-12, 12)) for rank in range(4)]
    pointers = [filled(session, inputs) for _ in range(3)]
    trees = [[[[0, 1], 2], 3], [[0, 1], [2, 3]], [0, [1, [2, 3]]]]
    for tree, pointer in zip(trees, pointers, strict=True):
        session.ask("tessxSetDescriptor", context=session.context, descriptor={"reduction_order": tree})
        session.all_reduce(pointer, 32, "fp32")
    session.ask("tessxSetDescriptor", context=session.context, descriptor={"reduction_order": [[0, 2], [1, 3]]})
    session.synchronize()
    for tree, pointer in zip(trees, pointers, strict=True):
        expected = replay.all_reduce(inputs, Tree.from_json(tree), canonical("fp32"))
        for rank, actual in enumerate(held(session, pointer, inputs)):
            check.bits(actual, expected, f"the sum over {tree} on rank {rank}")


FACTORS = ((4, 8), (8, 4))
PRODUCT = (
    "module m { kernel k(a: tensor<4x8xfp32>, b: tensor<8x4xfp32>, c: tensor<4x4xfp32>) { c = op.matmul(a, b); } }"
)
ROWS = "module m { kernel k(x: tensor<16x8xfp32>, y: tensor<16xfp32>) { y = op.sum(x) @{axis=1}; } }"


def launched(impl, check, source, tree, operands, size):
    """The bytes of the result of a kernel that is launched under a reduction order; None if that is refused."""
    session = opened(impl, check)
    kernel = session.kernel("k", source)
    pointers = [session.upload(x.data) for x in operands] + [session.upload(bytes(size))]
    session.ask("tessxSetDescriptor", context=session.context, descriptor={"reduction_order": tree})
    answer = session.launching(kernel, packed(*(("ptr", pointer) for pointer in pointers)))
    data = session.download(pointers[-1], size)
    if not isinstance(answer, Rejected):
        return data
    check.status(answer, "TESS_ERR_UNSUPPORTED")
    check.equal(data, bytes(size), "the memory after the refusal")
    return None


@level("strict")
@feature("reductions")
@clause("RT-11-02")
@pytest.mark.parametrize("tree", REDUCTION_ORDERS.values(), ids=REDUCTION_ORDERS)
def test_a_launched_sum_has_the_order_of_its_descriptor_or_is_refused(impl, check, tree):
    """A program that is lowered in another order is TESS_ERR_UNSUPPORTED from tessLaunch (AMB-RT-78)."""
    x = counted("fp32", (16, 8), seed=821, exponents=(-12, 12))
    data = launched(impl, check, ROWS, tree, [x], 64)
    if data is not None:
        expected = replay.sum(x, 1, Tree.from_json(tree), canonical("fp32"))
        check.bits(Tensor("fp32", (16,), data), expected, "the tree, replayed")


@level("strict")
@clause("RT-11-02")
@pytest.mark.parametrize("tree", REDUCTION_ORDERS.values(), ids=REDUCTION_ORDERS)
def test_a_launched_product_has_the_order_of_its_descriptor_or_is_refused(impl, check, tree):
    """The eight terms of each element; a product in another order is TESS_ERR_UNSUPPORTED (AMB-RT-78)."""
    a, b = (counted("fp32", shape, seed=826 + place, exponents=(-12, 12)) for place, shape in enumerate(FACTORS))
    data = launched(impl, check, PRODUCT, tree, [a, b], 64)
    if data is not None:
        expected = replay.matmul(a, b, Tree.from_json(tree), canonical("fp32"))
        check.bits(Tensor("fp32", (4, 4), data), expected, "the tree, replayed")


POWERS = ((1, 0), (0, -1), (-1, 0), (0, 1))
"""The powers of -i, real and imaginary."""
COLUMNS = "module m { kernel k(x: tensor<16x4xfp32>, y: tensor<16x4xcomplex64>) { y = op.fft(x); } }"


@level("strict")
@clause("RT-11-02")
@pytest.mark.parametrize("tree", ["fold", "pairwise", [[0, 2], [1, 3]], [3, [2, [1, 0]]]], ids=str)
def test_a_launched_transform_has_the_order_of_its_descriptor_or_is_refused(impl, check, tree):
    """Of four elements, whose factors are 1, -1, i and -i, and whose scale is a half: sums alone round (AMB-RT-78)."""
    x = counted("fp32", (16, 4), seed=828, exponents=(-12, 12))
    data = launched(impl, check, COLUMNS, tree, [x], 512)
    if data is None:
        return
    rows = [values_of("fp32", x.data)[4 * row : 4 * row + 4] for row in range(16)]
    parts = [[POWERS[j * k % 4][part] for j in range(4)] for k in range(4) for part in (0, 1)]
    terms = [[value * factor for value, factor in zip(row, part, strict=True)] for row in rows for part in parts]
    sums = replay.sum(tensor_of("fp32", terms), 1, Tree.from_json(tree), canonical("fp32"))
    check.equal(values_of("fp32", data), [value / 2 for value in values_of("fp32", sums.data)], "the tree, replayed")
