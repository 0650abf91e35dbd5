"""The determinism descriptor of a launch (runtime specification, 11; AMB-RT-23, AMB-RT-75, AMB-RT-76)."""

from __future__ import annotations

import pytest

from tessera_conformance.arithmetic import canonical, replay
from tessera_conformance.chapters.runtime.kit.policies import REDUCTION_ORDERS
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.trees import Tree
from tessera_conformance.protocol import Returned
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import Question, declaration

STABLE = ("softmax", "log_sum_exp", "clamp")


def launch(impl, check, operation, inputs, attributes, **under):
    """The outputs of an operation and the descriptor that governed it."""
    observation = impl.numerics.evaluate(operation=operation, inputs=inputs, attributes=attributes, **under)
    return check.returns(observation)


@feature("operation-access", "descriptor-access")
@clause("RT-11-01")
@pytest.mark.parametrize(
    "operation",
    [
        pytest.param("sum", marks=feature("reductions")),
        pytest.param("exp", marks=feature("elementary-functions")),
        "softmax",
        "matmul",
    ],
)
def test_a_launch_carries_a_descriptor(impl, check, operation):
    """Reduction order, seed, stream and toggles are all there, with seed 0 and stream 0 unless others are set."""
    x = counted("fp32", (4, 4), seed=321)
    inputs, attributes = ([x, x], {}) if operation == "matmul" else ([x], {} if operation == "exp" else {"axis": 1})
    actual = launch(impl, check, operation, inputs, attributes).get("descriptor", {})
    check.equal(sorted(actual), ["reduction_order", "seed", "stable", "stream"], "what the descriptor holds")
    check.equal((actual["seed"], actual["stream"]), (0, 0), "seed and stream")


@feature("operation-access", "descriptor-access", "reductions")
@clause("RT-11-02")
@pytest.mark.parametrize("tree", REDUCTION_ORDERS.values(), ids=REDUCTION_ORDERS)
@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
def test_the_reduction_order_of_the_descriptor_is_the_one_that_is_taken(impl, check, dtype, tree):
    """A sum whose bits depend on its order has the bits of the tree that the descriptor gives."""
    x = counted(dtype, (16, 8), seed=322, exponents=(-12, 12))
    given = launch(impl, check, "sum", [x], {"axis": 1}, descriptor={"reduction_order": tree})
    check.equal(given["descriptor"]["reduction_order"], tree, "the reduction order that was taken")
    if impl.level == "fast":
        check.enclosed(given["outputs"][0], bounds.sums(x, 1, tree), "the bound of the tree")
        return
    strict = impl.level == "strict"
    model = canonical(dtype) if strict else declaration(impl, check, Question("sum", [x], {"axis": 1})).model
    check.bits(given["outputs"][0], replay.sum(x, 1, Tree.from_json(tree), model), "the tree, replayed")


@feature("operation-access", "descriptor-access", "reductions")
@clause("RT-11-02")
def test_a_tree_over_another_number_of_elements_is_refused(impl, check):
    """A descriptor that does not fit the work is an invalid value, and one that fits is taken."""
    x = counted("fp32", (3,), seed=323)
    launch(impl, check, "sum", [x], {"axis": 0}, descriptor={"reduction_order": [[0, 1], 2]})
    own = launch(impl, check, "sum", [x], {"axis": 0})["outputs"]
    for tree in ([0, 1], [[0, 1], [2, 3]]):
        observation = impl.numerics.evaluate(
            operation="sum", inputs=[x], attributes={"axis": 0}, descriptor={"reduction_order": tree}
        )
        ignored = isinstance(observation, Returned) and observation.value["outputs"] == own
        check.reading("AMB-RT-78", "it is ignored", ignored)
        check.status(observation, "TESS_ERR_INVALID_VALUE")


@feature("operation-access", "descriptor-access", "random-numbers")
@pytest.mark.parametrize(
    "field", [pytest.param("seed", marks=clause("RT-11-03")), pytest.param("stream", marks=clause("RT-11-04"))]
)
def test_seed_and_stream_of_the_descriptor_are_those_of_the_numbers(impl, check, field):
    """Numbers drawn under a descriptor are those drawn with its seed and stream by name."""
    request = {"shape": [32], "dtype": "fp32"}
    under = launch(impl, check, "uniform", [], request, descriptor={field: 9})
    check.equal(under["descriptor"][field], 9, f"the {field} that was taken")
    by_name = launch(impl, check, "uniform", [], request | {field: 9})
    other = launch(impl, check, "uniform", [], request | {field: 10})
    check.bits(under["outputs"][0], by_name["outputs"][0], f"the numbers of {field} 9")
    check.true(other["outputs"][0] != by_name["outputs"][0], f"another {field} gives other numbers")


@feature("operation-access", "descriptor-access", "reductions")
@pytest.mark.parametrize(
    "toggle",
    [
        pytest.param(name, marks=clause(number))
        for name, number in zip(STABLE, ("RT-11-05", "RT-11-06", "RT-11-07"), strict=True)
    ],
)
def test_a_stable_math_toggle_is_there_and_off_is_refused(impl, check, toggle):
    """It is on by default; off is TESS_ERR_DETERMINISM_VIOLATION under deterministic and strict (AMB-RT-76)."""
    x = counted("fp32", (4,), seed=324)
    actual = launch(impl, check, "sum", [x], {"axis": 0}, descriptor={"stable": {toggle: True}})
    check.equal(actual["descriptor"]["stable"].get(toggle), True, f"stable {toggle}")
    observation = impl.numerics.evaluate(
        operation="sum", inputs=[x], attributes={"axis": 0}, descriptor={"stable": {toggle: False}}
    )
    accepted = isinstance(observation, Returned) and observation.value["descriptor"]["stable"].get(toggle) is False
    check.reading("AMB-RT-76", "off is accepted", accepted)
    check.status(observation, "TESS_ERR_DETERMINISM_VIOLATION")
