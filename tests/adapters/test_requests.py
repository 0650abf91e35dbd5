"""Requests that no engine defines reach none, and the orders on file are answered."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tessera_conformance.adapter import NotSupported
from tessera_conformance.arithmetic import NodeArithmetic, Tree
from tessera_conformance.dsl import tensor_of
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor

PAIR = [tensor_of("fp32", [1, 2]), tensor_of("fp32", [3, 4])]


@pytest.fixture
def requests(at_the_root: Path) -> ModuleType:
    return importlib.import_module("conformance.adapters.collective_requests")


@pytest.fixture
def orders(at_the_root: Path) -> ModuleType:
    return importlib.import_module("conformance.adapters.orders")


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("all_reduced", {"op": "sum"}),
        ("all_reduce", {}),
        ("all_gather", {"op": "sum"}),
        ("all_reduce", {"op": "sum", "algorithm": "rings"}),
        ("all_reduce", {"op": "sum", "root": 0}),
        ("broadcast", {}),
        ("broadcast", {"root": -1}),
        ("broadcast", {"root": 1, "groups": [[0], [1]]}),
        ("all_reduce", {"op": "sum", "groups": [[0, 1], []]}),
        ("all_reduce", {"op": "sum", "per_node": 3}),
    ],
)
def test_no_engine_is_asked_for_arguments_that_do_not_fit(
    requests: ModuleType, operation: str, arguments: Mapping[str, Any]
) -> None:
    with pytest.raises(NotSupported):
        requests.request_of(operation, PAIR, 8, **arguments)


def test_no_engine_is_asked_for_operators_that_a_dtype_has_not(requests: ModuleType) -> None:
    for dtype, op in (("int32", "mean"), ("bool", "sum"), ("complex64", "max")):
        element = ELEMENT_FORMATS[dtype]
        inputs = [Tensor(dtype, (1,), bytes(element.word_bytes * element.words))] * 2
        with pytest.raises(NotSupported):
            requests.request_of("all_reduce", inputs, 8, op=op)


def test_a_sound_request(requests: ModuleType) -> None:
    asked = requests.request_of("broadcast", PAIR, 2, root=0, groups=[[1], [0]], chunk=3, algorithm="tree")
    assert asked == requests.Request("broadcast", "", 0, ((1,), (0,)), 3)


def test_the_canonical_order_is_that_of_integers_alone(requests: ModuleType) -> None:
    requests.request_of("all_reduce", [tensor_of("int32", [1])] * 2, 8, op="sum", level="strict")
    requests.request_of("all_reduce", PAIR, 8, op="max", level="strict")
    with pytest.raises(NotSupported):
        requests.request_of("all_reduce", PAIR, 8, op="sum", level="strict")


def test_what_belongs_to_a_runtime_is_unsupported(requests: ModuleType) -> None:
    for given in ({"context": 1}, {"wire": "bf16"}, {"descriptors": []}):
        with pytest.raises(NotSupported):
            requests.all_reduce_of(PAIR, "sum", 8, "fast", given)


def test_all_orders_on_file_can_be_read(orders: ModuleType) -> None:
    """Each covers all elements once, and each of its trees all ranks."""
    assert {each["engine"] for each in orders.known()} == {"gloo", "jax", "mpich", "openmpi"}
    for each in orders.known():
        NodeArithmetic.from_json(each["arithmetic"])
        covered = [place for run in each["orders"] for place in range(run["first"], run["last"] + 1)]
        assert covered == list(range(each["elements"]))
        for run in each["orders"]:
            assert Tree.from_text(run["tree"]).leaves == each["ranks"]


def test_an_order_is_declared_for_what_was_probed_and_nothing_else(orders: ModuleType) -> None:
    known = next(each for each in orders.known() if len(each["orders"]) > 1)
    engine, version, last = known["engine"], known["version"], known["orders"][-1]
    asked = {"dtype": known["dtype"], "shapes": [[known["elements"]]] * known["ranks"]}
    said = orders.declared(engine, version, "all_reduce", **asked, element=last["first"])
    assert Tree.from_json(said["tree"]) == Tree.from_text(last["tree"])
    assert said["arithmetic"] == known["arithmetic"]
    others = ({"shapes": [[known["elements"] + 1]] * known["ranks"]}, {"attributes": {"op": "prod"}})
    for other in others:
        with pytest.raises(NotSupported):
            orders.declared(engine, version, "all_reduce", **asked | other)
    with pytest.raises(NotSupported):
        orders.declared(engine, f"{version}.1", "all_reduce", **asked)
    assert not orders.are_known(engine, f"{version}.1")


def test_integers_have_every_order(orders: ModuleType) -> None:
    said = orders.declared("none", "0", "all_reduce", dtype="int32", shapes=[[3]] * 3)
    assert Tree.from_json(said["tree"]).leaves == 3


def test_no_engine_is_asked_for_pairs_that_cannot_meet(requests: ModuleType) -> None:
    assert requests.send_recv_of(PAIR, [[0, 1], [1, 0]], 8).pairs == ((0, 1), (1, 0))
    for pairs in ([[0, 0]], [[0, 2]], [[-1, 0]], [[0, 1], [0, 1]]):
        with pytest.raises(NotSupported):
            requests.send_recv_of(PAIR, pairs, 8)
