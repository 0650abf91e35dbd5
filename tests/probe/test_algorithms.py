"""Each algorithm of an all-reduce: its declared order beside the probed one, share by share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tessera_conformance.adapter import NotSupported
from tessera_conformance.arithmetic import Tree
from tessera_conformance.cli import main
from tessera_conformance.probe.algorithms import ALGORITHMS, as_table, probe_algorithms
from tessera_conformance.probe.calls import CannotProbe
from tessera_conformance.session import Session
from tessera_conformance.transports.direct import DirectTransport
from tessera_reference.adapter import ReferenceAdapter


class AnotherOrder(ReferenceAdapter):
    """Declares the order of `tree` for a ring."""

    def numerics_declared(self, *, attributes: Mapping[str, Any] | None = None, **given: Any) -> Any:
        named = dict(attributes or {})
        if named.get("algorithm") == "ring":
            named["algorithm"] = "tree"
        return super().numerics_declared(attributes=named or None, **given)


class Doubling(ReferenceAdapter):
    """A rank that is alone gets twice what it brings."""

    def collectives_run(self, *, inputs: Any, **given: Any) -> Any:
        return super().collectives_run(inputs=inputs * 2 if len(inputs) == 1 else inputs, **given) | (
            {} if len(inputs) > 1 else {"outputs": [self.twice(inputs[0])]}
        )

    def twice(self, brought: Any) -> Any:
        return super().collectives_run(operation="all_reduce", op="sum", inputs=[brought, brought])["outputs"][0]


class Silent(ReferenceAdapter):
    """Declares nothing."""

    def numerics_declared(self, **given: Any) -> Any:
        raise NotSupported("numerics.declared")


def rows_of(make: Callable[[], Any], ranks: tuple[int, ...]) -> list[Any]:
    session = Session(DirectTransport(make, "py:fake"), deadline=20.0)
    try:
        return probe_algorithms(session, "fp32", ranks)
    finally:
        session.close()


def test_every_share_of_a_ring_of_a_prime_number_of_ranks_has_its_own_order() -> None:
    """Of five ranks and eleven elements, shares of two and one of three; by hand: share s begins at rank s + 1."""
    rows = [row for row in rows_of(ReferenceAdapter, (5,)) if (row.algorithm, row.level) == ("ring", "deterministic")]
    texts = ["((((1 2) 3) 4) 0)", "((((2 3) 4) 0) 1)", "((((3 4) 0) 1) 2)", "((((4 0) 1) 2) 3)", "((((0 1) 2) 3) 4)"]
    assert [row.probed for row in rows] == [Tree.from_text(each).canonical() for each in texts]
    assert [(row.first, row.last) for row in rows] == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 10)]
    assert {row.verdict for row in rows} == {"agrees"}


def test_every_algorithm_has_the_canonical_order_at_strict() -> None:
    rows = [row for row in rows_of(ReferenceAdapter, (6,)) if row.level == "strict"]
    assert [row.algorithm for row in rows] == list(ALGORITHMS)
    assert {row.probed for row in rows} == {Tree.from_text("(((0 1) (2 3)) (4 5))").canonical()}


def test_nodes_of_a_hierarchy() -> None:
    """Two ranks on a node where that divides; a prime number of ranks is one node."""
    rows = rows_of(ReferenceAdapter, (3, 4))
    assert {row.ranks: row.per_node for row in rows if row.algorithm == "hierarchical"} == {3: None, 4: 2}
    assert {row.per_node for row in rows if row.algorithm != "hierarchical"} == {None}


def test_a_declaration_that_is_another_algorithm_s_differs() -> None:
    rows = rows_of(AnotherOrder, (1, 7))
    wrong = {(row.algorithm, row.level, row.ranks) for row in rows if row.verdict == "differs"}
    assert wrong == {("ring", "deterministic", 7)}


def test_what_is_not_declared_is_probed_all_the_same() -> None:
    rows = rows_of(Silent, (4,))
    assert {row.verdict for row in rows} == {"nothing declared"}
    assert all(row.probed is not None for row in rows)


def test_a_rank_that_is_alone_keeps_what_it_brings() -> None:
    assert {row.verdict for row in rows_of(ReferenceAdapter, (1,))} == {"agrees"}
    rows = rows_of(Doubling, (1,))
    assert {row.verdict for row in rows} == {"differs"}
    assert "| no tree | differs |" in "\n".join(as_table(rows))


@pytest.mark.parametrize("ranks", [0, 17])
def test_numbers_of_ranks_that_cannot_be_probed(ranks: int) -> None:
    with pytest.raises(CannotProbe, match=f"{ranks} ranks: expected 1 to 16"):
        rows_of(ReferenceAdapter, (ranks,))


def test_the_command_prints_the_table_and_writes_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", "--algorithms", "--ranks=1,3", "--dtype=bf16", f"--report={tmp_path}"]) == 0
    told = capsys.readouterr().out
    assert "| 3 | `ring` | deterministic | 0 to 1 | `(0 (1 2))` | ring(1): `(0 (1 2))` | agrees |" in told
    assert (tmp_path / "algorithms.md").read_text() == told
    rows = json.loads((tmp_path / "algorithms.json").read_text())
    assert {row["algorithm"] for row in rows} == set(ALGORITHMS)
    assert {row["verdict"] for row in rows} == {"agrees"}
