"""Declared orders: confirmed in few calls, departures named; adapters, commands, files."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tessera_conformance.adapter import NotSupported
from tessera_conformance.cli import main
from tessera_conformance.documents import NoDocument
from tessera_conformance.operations.table_adapter import Declarations
from tessera_conformance.oracle.trees import FOLD
from tessera_conformance.probe import Finding, probe
from tessera_conformance.probe.calls import Subject
from tessera_conformance.probe.commands import ALGORITHMS, as_toml, orders
from tessera_conformance.protocol import Unsupported
from tessera_conformance.session import Session
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports.locate import locate

SUM = Subject("sum", (64,), "fp32")
PRODUCT = Subject("matmul", (1, 24, 1), "fp32")


def aspects(found: Finding) -> list[str]:
    return [departure.aspect for departure in found.departures]


def test_a_right_order_is_confirmed_in_few_calls(probed: Callable[..., Finding], orders: ModuleType) -> None:
    actual = probed(SUM, declared="pairwise", reduce=orders.pairwise)
    assert (actual.verdict, actual.departures) == ("agrees", ())
    assert actual.pattern == "pairwise"
    assert actual.calls < 64 + 40
    assert probed(SUM, in_full=True, declared="pairwise", reduce=orders.pairwise).verdict == "agrees"


def test_a_declaration_of_nodes_that_add_exactly_agrees(probed: Callable[..., Finding], orders: ModuleType) -> None:
    """Units survive in such a node beside the large term, so that a pair alone does not prove another order."""
    subject, nested = Subject("sum", (8,), "fp32"), ((0, 1, 2, 3), 4, 5, 6, 7)
    actual = probed(subject, declared=[[0, 1, 2, 3], 4, 5, 6, 7], reduce=orders.nested(nested, None))
    assert (actual.verdict, actual.departures) == ("agrees", ())


@pytest.mark.parametrize("declared", ["pairwise", {"ring": 1}, [[*range(32)], *range(32, 64)]])
def test_a_wrong_order_is_caught(declared: Any, probed: Callable[..., Finding]) -> None:
    actual = probed(SUM, declared=declared)
    assert actual.verdict == "differs"
    assert aspects(actual) == ["order"]
    witness = actual.departures[0].witness
    assert witness["declared"] != witness["found"]
    assert len(witness["inputs"]["terms"]) == 64
    assert actual.tree == FOLD.over(64)
    assert actual.arithmetic is not None


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
    actual = probed(PRODUCT, declared="fold", arithmetic=arithmetic, products=getattr(orders, products))
    assert actual.verdict == "differs"
    assert aspect in aspects(actual)
    assert "order" not in aspects(actual)
    assert actual.departures[0].witness


def test_a_hello_declares_order_and_subnormals(probed: Callable[..., Finding], orders: ModuleType) -> None:
    hello = {"trees": {"matmul": "fold"}, "subnormals": "flushed"}
    assert aspects(probed(PRODUCT, hello=hello, products=orders.flushed_products)) == []
    assert aspects(probed(PRODUCT, hello=hello, products=orders.rounded_products)) == ["subnormals"]


ROOT = Path(__file__).resolve().parents[2]


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
    with pytest.raises(NoDocument, match=r"declared\.toml"):
        Declarations(path)


def test_the_command_prints_the_table_and_writes_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", "--algorithms", "--ranks=2,3", "--dtype=bf16", f"--report={tmp_path}"]) == 0
    told = capsys.readouterr().out
    assert "| 3 | `ring` | deterministic | 0 to 1 | `(0 (1 2))` | ring(1): `(0 (1 2))` | agrees |" in told
    assert (tmp_path / "algorithms.md").read_text() == told
    rows = json.loads((tmp_path / "algorithms.json").read_text())
    assert {row["algorithm"] for row in rows} == set(ALGORITHMS)
    assert {row["verdict"] for row in rows} == {"agrees"}


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
    actual = probed(NUMPY, Subject("sum", (24, 40), "fp32"))
    assert actual.pattern == "fold"
    assert actual.arithmetic is not None
    assert actual.others is not None and actual.others.first_other is None
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
        actual = probe(session, Subject("all_reduce", (8, 64), "fp32"))
    finally:
        session.close()
    assert actual.ranks_agree
    assert all(group.tree is not None for group in actual.groups)


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
    actual = json.loads((tmp_path / "f.json").read_text())
    assert (actual["verdict"], actual["departures"][0]["aspect"]) == ("differs", "order")
    assert actual["tree"].startswith("((((")
    assert (tmp_path / "f.svg").read_text().startswith("<svg")
    assert sorted(path.suffix for path in (tmp_path / "all").glob("sum-24-fp32.*")) == [".json", ".md", ".svg"]


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        ("make_crashing", "ZeroDivisionError"),
        ("make_refusing", "not today"),
        ("make_misshapen", "expected fp32 []"),
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


def test_a_declaration_needs_an_implementation_that_starts(fakes_directory: Path, tmp_path: Path) -> None:
    assert run("--impl=py:known_orders:Dead", f"--write={tmp_path / 'declared.toml'}") == 2
    assert not list(tmp_path.iterdir())


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
