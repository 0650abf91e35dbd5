"""The adapters of well-known libraries answer the probe; those of libraries that are not installed are left out."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tessera_conformance.observations import Unsupported
from tessera_conformance.probe import Finding, Subject, probe
from tessera_conformance.session import Session
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports.locate import locate

ROOT = Path(__file__).resolve().parents[2]


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
