"""Orders of all shapes of the suite are written as a declaration, and a table of operations is judged by it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tessera_conformance.adapter import NotSupported
from tessera_conformance.operations.table_adapter import BadDeclaration, Declarations
from tessera_conformance.probe.calls import Subject
from tessera_conformance.probe.shapes import as_toml, orders, subjects
from tessera_conformance.session import Session
from tessera_conformance.transports.locate import locate

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
