"""What is declared is confirmed in few calls; what departs from it is named, with the inputs that show it."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tessera_conformance.arithmetic import FOLD
from tessera_conformance.probe import Finding, Subject
from tessera_conformance.probe.rendering import as_text

SUM = Subject("sum", (64,), "fp32")
PRODUCT = Subject("matmul", (1, 24, 1), "fp32")


def aspects(found: Finding) -> list[str]:
    return [departure.aspect for departure in found.departures]


def test_a_right_order_is_confirmed_in_few_calls(probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(SUM, declared="pairwise", reduce=orders.pairwise)
    assert (found.verdict, found.departures) == ("agrees", ())
    assert found.pattern == "pairwise"
    assert found.calls < 64 + 40
    assert probed(SUM, in_full=True, declared="pairwise", reduce=orders.pairwise).verdict == "agrees"


@pytest.mark.parametrize("declared", ["pairwise", {"ring": 1}, [[*range(32)], *range(32, 64)]])
def test_a_wrong_order_is_caught(declared: Any, probed: Callable[..., Finding]) -> None:
    found = probed(SUM, declared=declared)
    assert found.verdict == "differs"
    assert aspects(found) == ["order"]
    witness = found.departures[0].witness
    assert witness["declared"] != witness["found"]
    assert len(witness["inputs"]["terms"]) == 64
    assert found.tree == FOLD.over(64)
    assert found.arithmetic is not None


def test_two_leaves_exchanged(probed: Callable[..., Finding], orders: ModuleType) -> None:
    tree = FOLD.over(24).to_json()
    text = str(tree).replace("20", "x").replace("21", "20").replace("x", "21")
    found = probed(Subject("sum", (24,), "fp32"), declared=_nested(text))
    assert aspects(found) == ["order"]
    assert set(found.departures[0].witness["pair"]) & {20, 21}


def _nested(text: str) -> Any:
    import json

    return json.loads(text)


@pytest.mark.parametrize(
    ("products", "arithmetic", "aspect"),
    [
        ("fused_products", {}, "fusion"),
        ("rounded_products", {"product": "fused"}, "fusion"),
        ("wide_products", {}, "accumulator"),
        ("rounded_products", {"accumulator": "fp64"}, "accumulator"),
        ("rounded_products", {"rounding": "toward_zero"}, "rounding"),
        ("rounded_products", {"rounding": "nearest_away"}, "rounding"),
        ("flushed_products", {}, "subnormals"),
        ("rounded_products", {"subnormals": "flushed"}, "subnormals"),
    ],
)
def test_a_wrong_arithmetic_is_named(
    products: str, arithmetic: dict[str, Any], aspect: str, probed: Callable[..., Finding], orders: ModuleType
) -> None:
    found = probed(PRODUCT, declared="fold", arithmetic=arithmetic, products=getattr(orders, products))
    assert found.verdict == "differs"
    assert aspect in aspects(found)
    assert "order" not in aspects(found)
    assert found.departures[0].witness


def test_a_wrong_number_of_alignment_bits(probed: Callable[..., Finding], orders: ModuleType) -> None:
    tree: Any = list(range(4))
    for first in range(4, 64, 4):
        tree = [tree, *range(first, first + 4)]
    right = probed(SUM, declared=tree, arithmetic={"alignment_bits": 24}, reduce=orders.blocks(4, 24))
    assert right.verdict == "agrees"
    wrong = probed(SUM, declared=tree, arithmetic={"alignment_bits": 25}, reduce=orders.blocks(4, 24))
    assert aspects(wrong) == ["alignment"]


def test_an_order_that_varies_departs_from_any_declaration(probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(SUM, declared="fold", reduce=orders.Varying())
    assert (found.verdict, found.kind) == ("differs", "no fixed tree")


def test_kahan_departs_from_a_declared_fold(probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(SUM, declared="fold", reduce=orders.kahan)
    assert (found.verdict, found.kind) == ("differs", "no fixed tree")


def test_a_tree_in_the_hello_counts_as_declared(probed: Callable[..., Finding], orders: ModuleType) -> None:
    right = probed(SUM, trees={"sum": "pairwise"}, reduce=orders.pairwise)
    assert right.verdict == "agrees"
    assert right.declared is not None
    assert right.declared.source.startswith("Hello")
    assert probed(SUM, trees={"sum": "fold"}, reduce=orders.pairwise).verdict == "differs"
    assert probed(SUM, trees={"matmul": "fold"}, reduce=orders.pairwise).verdict == "nothing declared"


def test_a_start_value_that_is_declared_and_missing(probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(PRODUCT, declared="fold", products=lambda a, b: orders.fold(a * b))
    assert aspects(found) == ["start"]


def test_a_product_that_starts_from_its_first_term_is_declared_so(
    probed: Callable[..., Finding], orders: ModuleType
) -> None:
    started = {"start": "none"}
    assert (
        probed(PRODUCT, declared="fold", arithmetic=started, products=lambda a, b: orders.fold(a * b)).verdict
        == "agrees"
    )
    wrong = probed(PRODUCT, declared="fold", arithmetic=started, products=orders.rounded_products)
    assert aspects(wrong) == ["start"]


@pytest.mark.parametrize(("operation", "shape"), [("sum", (40,)), ("all_reduce", (8, 2))])
def test_an_order_that_leaves_no_trace_agrees_with_any_declared(
    operation: Any, shape: tuple[int, ...], probed: Callable[..., Finding], orders: ModuleType
) -> None:
    """Sums of fp8_e4m3 are exact in fp32, so that every order gives the same bits."""
    reduce = orders.in_type("float32", orders.fold)
    for declared in ("fold", "pairwise", [*range(shape[0])]):
        found = probed(Subject(operation, shape, "fp8_e4m3"), declared=declared, reduce=reduce)
        assert (found.verdict, found.departures, found.kind) == ("agrees", (), "exact sum")
        assert found.calls < 300
        assert ("no input tells the orders apart" in as_text(found)) == isinstance(declared, str)


def test_an_order_that_leaves_a_trace_in_rounded_sums_departs(
    probed: Callable[..., Finding], orders: ModuleType
) -> None:
    subject = Subject("sum", (40,), "fp8_e4m3")
    assert aspects(probed(subject, declared="pairwise", reduce=orders.fold)) == ["order"]
    exact = probed(SUM, declared="pairwise", reduce=orders.exact)
    assert (exact.kind, aspects(exact)) == ("exact sum", ["order"])
    assert exact.departures[0].witness["inputs"]


def test_noise_is_shown_with_two_runs_on_the_same_terms(probed: Callable[..., Finding]) -> None:
    chance = random.Random(3)
    found = probed(SUM, declared="fold", reduce=lambda x: x.dtype.type(chance.random()))
    assert (found.verdict, found.kind) == ("differs", "no fixed tree")
    assert found.evidence is not None
    assert found.evidence.witness["first"] != found.evidence.witness["again"]
    assert len(found.evidence.witness["inputs"]["terms"]) == 64
