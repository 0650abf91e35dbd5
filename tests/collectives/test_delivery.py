"""Messages delivered in any order give one set of bits; orders that are not legal would not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.collectives import delivery
from tessera_reference.collectives.delivery import Move, deliver
from tessera_reference.collectives.operations import OPERATIONS, OPERATORS, run
from tessera_reference.collectives.schedules import ALGORITHMS
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

NAMES = sorted(ALGORITHMS)
LEVELS = ["strict", "deterministic"]
SEEDS = {2: 100, 3: 250, 5: 300, 7: 350}
"""How many for so many ranks: a thousand together."""


def cancelling(ranks: int, count: int, kind: str = "fp32") -> list[Array]:
    """Contributions of many binades and both signs, whose sum depends on its order."""
    random = np.random.default_rng(17)
    scales = np.exp2(random.integers(-20, 20, size=(ranks, count)))
    rows = random.choice([-1.0, 1.0], size=(ranks, count)) * scales * random.uniform(1, 2, size=(ranks, count))
    return [Array(dtype(kind), row.astype(dtype(kind).carrier)) for row in rows]


def bits(arrays: list[Array]) -> list[bytes]:
    return [each.values.tobytes() for each in arrays]


def orders_found(name: str, seeds: int, ranks: int = 7, **changes: Any) -> int:
    """How many sets of bits the seeds give, with that of no seed among them."""
    rows = cancelling(ranks, 4 * ranks + 1)
    given_to: dict[str, Any] = {"op": "sum", "name": name, "level": "deterministic", "chunk": 11, **changes}
    found = {tuple(bits(run("all_reduce", rows, seed=seed, **given_to).outputs)) for seed in range(seeds)}
    return len(found | {tuple(bits(run("all_reduce", rows, **given_to).outputs))})


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_thousand_seeds_give_one_set_of_bits(name: str) -> None:
    """Under strict; the suite has a thousand under deterministic."""
    for ranks, seeds in SEEDS.items():
        assert orders_found(name, seeds, ranks, level="strict") == 1


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", NAMES)
def test_some_seeds_give_one_set_of_bits(name: str, level: str) -> None:
    assert orders_found(name, 30, level=level) == 1


@pytest.mark.parametrize(("name", "rule"), [
    ("direct", "_combines_after"),
    ("ring", "_leaves_after"),
    ("tree", "_leaves_after"),
    ("tree", "_combines_after"),
    ("halving_doubling", "_leaves_after"),
])  # fmt: skip
def test_without_one_of_the_rules_bits_differ(monkeypatch: pytest.MonkeyPatch, name: str, rule: str) -> None:
    monkeypatch.setattr(delivery, rule, lambda move, each: False)
    monkeypatch.setattr(delivery, "_order", delivery._order.__wrapped__)
    assert orders_found(name, 30) > 1


@given(
    operation=st.sampled_from(OPERATIONS),
    op=st.sampled_from(sorted(OPERATORS)),
    name=st.sampled_from(NAMES),
    kind=st.sampled_from(["fp32", "fp64", "bf16", "int16", "complex64"]),
    level=st.sampled_from([*LEVELS, "fast"]),
    nodes=st.integers(1, 3),
    per_node=st.integers(1, 3),
    size=st.integers(0, 9),
    chunk=st.one_of(st.none(), st.integers(1, 20)),
    seed=st.integers(0, 1 << 70),
)
def test_every_operation_has_the_bits_that_it_has_without_a_seed(
    operation: str, op: str, name: str, kind: str, level: str,
    nodes: int, per_node: int, size: int, chunk: int | None, seed: int,
) -> None:  # fmt: skip
    ranks = nodes * per_node
    combines = operation in ("all_reduce", "reduce_scatter")
    if (operation == "all_to_all" and name not in ("ring", "direct")) or (
        combines and dtype(kind).kind not in OPERATORS[op][0]
    ):
        return
    count = size * ranks if operation in ("all_to_all", "all_gather") else size
    rows = [Array(each.dtype, each.values[:size]) if operation == "all_gather" else each
            for each in cancelling(ranks, count, kind)]  # fmt: skip
    asked: dict[str, Any] = {"op": op} if combines else {}
    asked |= {"root": ranks - 1} if operation == "broadcast" else {}
    asked |= {"name": name, "level": level, "per_node": per_node, "chunk": chunk}
    found, wanted = run(operation, rows, seed=seed, **asked), run(operation, rows, **asked)
    assert bits(found.outputs) == bits(wanted.outputs)
    assert [each.shape for each in found.outputs] == [each.shape for each in wanted.outputs]
    assert found.sent == wanted.sent


@pytest.mark.parametrize("name", NAMES)
def test_groups_and_wires_are_delivered_too(name: str) -> None:
    rows = cancelling(6, 13)
    asked: dict[str, Any] = {
        "op": "sum",
        "name": name,
        "level": "fast",
        "wire": "bf16",
        "groups": [[4, 0, 2], [5, 3, 1]],
    }
    wanted = bits(run("all_reduce", rows, **asked).outputs)
    for seed in range(10):
        assert bits(run("all_reduce", rows, seed=seed, **asked).outputs) == wanted


def test_seeds_choose_when_messages_arrive_and_not_in_which_order_they_are_combined() -> None:
    """Names are joined: those of three ranks on a fourth, and one on each of three ranks."""
    together = [Move(0, source, 0, 0, 0, 1, True) for source in (1, 2, 3)]
    apart = [Move(0, 0, target, 0, 0, 1, True) for target in (1, 2, 3)]
    orders = set()
    for seed in range(20):
        held = np.array([["a"], ["b"], ["c"], ["d"]], dtype=object)
        deliver(together, held, lambda own, value: own + value, seed)
        assert held[:, 0].tolist() == ["abcd", "b", "c", "d"]
        seen: list[str] = []

        def combine(own: Any, value: Any, seen: list[str] = seen) -> Any:
            seen.append(own[0])
            return own + value

        held = np.array([["a"], ["b"], ["c"], ["d"]], dtype=object)
        deliver(apart, held, combine, seed)
        assert held[:, 0].tolist() == ["a", "ba", "ca", "da"]
        orders.add("".join(seen))
    assert orders == {"bcd", "bdc", "cbd", "cdb", "dbc", "dcb"}


def test_what_a_rank_has_yet_to_send_is_not_overwritten() -> None:
    """Two ranks that exchange what they hold, in one step."""
    moves = [Move(0, 0, 1, 0, 0, 2, False), Move(0, 1, 0, 0, 0, 2, False)]
    for seed in range(20):
        held = np.array([[1, 2], [3, 4]])
        deliver(moves, held, lambda own, value: value, seed)
        assert held.tolist() == [[3, 4], [1, 2]]
