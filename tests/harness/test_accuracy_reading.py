"""A result beyond four units of a function whose accuracy is declared worse is another reading (AMB-LANG-136)."""

from __future__ import annotations

import struct
from fractions import Fraction

import pytest

from tessera_conformance.check import CheckFailed, OtherReading
from tessera_conformance.locations import clauses_directory
from tessera_conformance.protocol import Hello
from tessera_conformance.registry import load_registry
from tessera_conformance.suite_run import Case, SuiteRun
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports.direct import DirectTransport
from tessera_reference.adapter import ReferenceAdapter


@pytest.mark.parametrize(
    ("declared", "what", "value", "expected"),
    [
        (50.0, "fast: within 4 ulp of exp", 2.0, OtherReading),
        (50.0, "4 units in the last place of exp", 2.0, OtherReading),
        (50.0, "the derivative, within twice the error of its textbook adjoint", 2.0, OtherReading),
        (4.0, "fast: within 4 ulp of exp", 2.0, CheckFailed),
        (50.0, "fast: within the bound (any order of 9 products)", 2.0, CheckFailed),
        (50.0, "fast: within 4 ulp of exp", float("nan"), CheckFailed),
    ],
)
def test_what_is_off_is_read_by_what_is_declared(
    declared: float, what: str, value: float, expected: type[BaseException]
) -> None:
    run = SuiteRun(DirectTransport(ReferenceAdapter, "reference"), load_registry(clauses_directory()))
    run.hello = Hello("far", "1", level="fast", message={"arithmetic": {"functions": {"exp": declared}}})
    case = Case("ir/functions/exp", "", [], ["fast"])
    found = Tensor("fp32", (1,), struct.pack("<f", value))
    with pytest.raises(CheckFailed) as failed:
        case.check.within(found, [Fraction(1)], [Fraction(1, 1000)], what)
    assert type(run._accuracy_reading(case, failed.value)) is expected
