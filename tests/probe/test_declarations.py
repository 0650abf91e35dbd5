"""Declared orders: confirmed in few calls, departures named; algorithms of an all-reduce; adapters, commands, files."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tessera_conformance.adapter import NotSupported
from tessera_conformance.arithmetic import FOLD, Tree, ring
from tessera_conformance.cli import main
from tessera_conformance.operations.table_adapter import BadDeclaration, Declarations
from tessera_conformance.probe import Finding, probe
from tessera_conformance.probe.algorithms import ALGORITHMS, as_table, probe_algorithms
from tessera_conformance.probe.calls import CannotProbe, Subject
from tessera_conformance.probe.rendering import as_text
from tessera_conformance.probe.shapes import as_toml, orders, subjects
from tessera_conformance.protocol import Unsupported
from tessera_conformance.session import Session
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports.locate import DirectTransport, locate
from tessera_reference.adapter import ReferenceAdapter

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


ROOT = Path(__file__).resolve().parents[2]


def test_every_shape_of_the_suite_is_asked() -> None:
    asked = subjects()
    assert len(asked) == len(set(asked)) > 200
    assert {subject.operation for subject in asked} == {"matmul", "sum"}
    assert max(subject.terms for subject in asked) == 4097


def test_what_is_found_is_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    session = Session(locate("ops:conformance.adapters.numpy_adapter:TABLE"))
    try:
        asked = [Subject("sum", (9, 4), "fp32", axis=0), Subject("matmul", (2, 3, 2), "fp64", out="fp64")]
        rows = [row for subject in asked for row in orders(session, subject)]
    finally:
        session.close()
    path = tmp_path / "declared.toml"
    path.write_text(as_toml("numpy", rows), encoding="utf-8")
    assert "# sum of fp32, by the number of terms: fold for 9" in path.read_text(encoding="utf-8")
    declarations = Declarations(path)
    answer = declarations.answer(operation="sum", dtype="fp32", shapes=[[9, 4]], attributes={"axis": -2})
    assert (answer["tree"], answer["arithmetic"]["accumulator"]) == ("fold", "fp32")
    batch = declarations.answer(operation="matmul", dtype="fp64", shapes=[[5, 2, 3], [5, 3, 2]])
    assert batch["arithmetic"]["accumulator"] == "fp64"
    single = declarations.answer(operation="matmul", dtype="fp64", shapes=[[2, 1], [1, 2]])
    assert single["tree"] == "fold"
    with pytest.raises(NotSupported, match="a declared order for this shape"):
        declarations.answer(operation="sum", dtype="fp32", shapes=[[8, 4]], attributes={"axis": 0})


@pytest.mark.parametrize("text", ["format = 2", "format = 1\n[[order]]\nshapes = []", "format ="])
def test_a_malformed_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "declared.toml"
    path.write_text(text)
    with pytest.raises(BadDeclaration, match=r"declared\.toml"):
        Declarations(path)


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
    assert [row.probed for row in rows] == [Tree.from_text(text).canonical() for text in texts]
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


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_every_chunk_is_revealed(dtype: str, probed: Callable[..., Finding]) -> None:
    found = probed(Subject("all_reduce", (8, 16), dtype), chunked=True)
    assert found.tree == ring(1).over(8).canonical()
    assert [(group.first, group.last) for group in found.groups] == [(2 * k, 2 * k + 1) for k in range(8)]
    assert [group.tree for group in found.groups] == [ring(k + 1).over(8).canonical() for k in range(8)]
    assert found.ranks_agree


def test_one_order_for_all_elements(probed: Callable[..., Finding], orders: ModuleType) -> None:
    found = probed(Subject("all_reduce", (6, 4), "fp32", element=(3,)), reduce=orders.halving)
    assert [(group.first, group.last) for group in found.groups] == [(0, 3)]
    assert found.pattern == "recursive halving"


NUMPY = "ops:conformance.adapters.numpy_adapter:TABLE"


def probed(implementation: str, subject: Subject) -> Finding:
    session = Session(locate(implementation), deadline=60.0)
    try:
        return probe(session, subject)
    finally:
        session.close()


def test_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of numbers is added one by one, whatever the processor."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    found = probed(NUMPY, Subject("sum", (24, 40), "fp32"))
    assert found.pattern == "fold"
    assert found.arithmetic is not None
    assert found.others is not None and found.others.first_other is None
    assert probed(NUMPY, Subject("matmul", (8, 16, 8), "fp64")).kind == "tree"


def test_numpy_refuses_what_it_does_not_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    session = Session(locate(NUMPY))
    inputs = [Tensor("fp32", (2,), bytes(8))]
    for operation, attributes in (("erf", {}), ("sum", {"axis": 0, "tree": "fold"})):
        observation = session.call(
            "numerics.evaluate", {"operation": operation, "inputs": inputs, "attributes": attributes}
        )
        assert isinstance(observation, Unsupported)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["jax", "torch"])
def test_libraries_with_an_all_reduce(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of their own, since JAX has the devices that it was first started with."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"pip install {name}")
    monkeypatch.chdir(ROOT)
    served = f"{sys.executable} -m tessera_conformance serve py:conformance.adapters.{name}_adapter:make"
    session = Session(locate(f"rpc:{served}"), deadline=60.0)
    try:
        for subject in (Subject("sum", (32,), "fp32"), Subject("matmul", (8, 16, 8), "fp32")):
            assert probe(session, subject).kind == "tree"
        found = probe(session, Subject("all_reduce", (8, 64), "fp32"))
    finally:
        session.close()
    assert found.ranks_agree
    assert all(group.tree is not None for group in found.groups)


def run(*arguments: str) -> int:
    return main(["probe", "--operation", "sum", "--shape", "24", *arguments])


@pytest.mark.parametrize(("factory", "code"), [("make_fold", 0), ("make_silent", 0), ("make_liar", 1)])
def test_exit_codes(factory: str, code: int, fakes_directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"--impl=py:known_orders:{factory}") == code
    told = capsys.readouterr()
    assert told.out.startswith("known_orders 1: sum 24 fp32 -> fp32\n")
    words = {"make_fold": "agrees", "make_silent": "nothing declared", "make_liar": "differs from the declaration"}
    assert words[factory] in told.out
    assert told.err == ""


def test_files(fakes_directory: Path, tmp_path: Path) -> None:
    options = [f"--json={tmp_path / 'f.json'}", f"--svg={tmp_path / 'f.svg'}", f"--report={tmp_path / 'all'}"]
    assert run("--impl=py:known_orders:make_liar", *options) == 1
    found = json.loads((tmp_path / "f.json").read_text())
    assert (found["verdict"], found["departures"][0]["aspect"]) == ("differs", "order")
    assert found["tree"].startswith("((((")
    assert (tmp_path / "f.svg").read_text().startswith("<svg")
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == [
        "sum-24-fp32.json",
        "sum-24-fp32.md",
        "sum-24-fp32.svg",
    ]


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        ("make_crashing", "ZeroDivisionError"),
        ("make_refusing", "not today"),
        ("make_misshapen", "expected fp32 []"),
        ("make_constant", "nothing can be counted"),
        ("make_nan", "nothing can be counted"),
        ("make_constant", "terms 0 to 23 are 1, all others 0: expected 24, found 0"),
        ("make_nan", "expected 24, found nan"),
        ("Mute", "neither numerics.evaluate nor language.execute is supported"),
        ("make_nobody", "no callable"),
    ],
)
def test_what_cannot_be_probed(
    factory: str, words: str, fakes_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"--impl=py:known_orders:{factory}") == 2
    told = capsys.readouterr()
    assert words in told.err
    assert told.out == ""


def test_a_hang_ends_at_the_deadline(fakes_directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--impl=py:known_orders:make_hanging", "--deadline=0.2") == 2
    assert "no answer within 0.2 s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--operation=matmul", "--shape=8x8"], "MxKxN"),
        (["--operation=all_reduce", "--shape=8"], "RANKSxELEMENTS"),
        (["--shape=1"], "1 terms; expected 2 to"),
        (["--shape=0"], "shape 0: expected extents of at least 1"),
        (["--shape=4x0"], "shape 4x0: expected extents of at least 1"),
        (["--operation=matmul", "--shape=0x3x2"], "shape 0x3x2: expected extents of at least 1"),
        (["--axis=1"], "axis 1"),
        (["--shape=24x2", "--element=2"], "element [2]"),
    ],
)
def test_questions_that_make_no_sense(
    arguments: list[str], words: str, fakes_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--impl=py:known_orders:make_fold", *arguments) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("argument", ["--shape=8y8", "--dtype=int32", "--operation=dot", "--element=x"])
def test_arguments_that_cannot_be_read(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run("--impl=py:known_orders:make_fold", argument)
    assert caught.value.code == 2
    assert argument.partition("=")[0] in capsys.readouterr().err
