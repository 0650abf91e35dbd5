"""A suite of one file with a case for each verdict, for an implementation that echoes its inputs."""

from __future__ import annotations

import pytest

from tessera_conformance.marks import clause, level
from tessera_conformance.tensors import Tensor

ONES = Tensor.from_words("bf16", (2, 2), [0x3F80] * 4)
ODD = Tensor.from_words("bf16", (2, 2), [0x3F80, 0x3F80, 0x3F81, 0x3F80])


@clause("LANG-02-01")
@pytest.mark.parametrize("times", [1, 2])
def test_passes(impl, check, times):
    """The implementation echoes its input."""
    for _ in range(times):
        value = check.returns(impl.language.execute(source="", function="f", inputs={"A": ONES}))
        check.equal(len(value["outputs"]), 1, "the number of results")
        check.bits(value["outputs"][0], ONES)


@clause("LANG-02-01", "LANG-10-02")
def test_differs_in_one_bit(impl, check):
    """The echo is compared with something else."""
    value = check.returns(impl.language.execute(source="", function="f", inputs={"A": ODD}))
    check.equal(len(value["outputs"]), 1, "the number of results")
    check.bits(value["outputs"][0], ONES)


@clause("LANG-02-01")
def test_makes_no_check(impl):
    """Calls the implementation and judges nothing."""
    impl.language.execute(source="", function="f", inputs={})


@clause("LANG-02-01")
def test_is_broken(check):
    """Has a defect of its own."""
    raise KeyError("typo")


@clause("LANG-02-01")
def test_is_skipped_by_hand(check):
    """Skips itself, which only the harness may decide."""
    pytest.skip("not today")


@clause("LANG-02-01")
def test_needs_a_core_feature(impl, check):
    """The implementation says that it lacks what it claims."""
    check.returns(impl.language.execute(source="", function="missing", inputs={}))


@clause("LANG-04-06")
def test_needs_an_unclaimed_feature(impl, check):
    """Random operators are a feature of their own."""
    check.true(False, "never run")


@clause("RT-19.B-01")
def test_belongs_to_an_unclaimed_document(impl, check):
    """The runtime document is not claimed."""
    check.true(False, "never run")


@clause("LANG-02-01")
@level("fast")
def test_judges_another_level(impl, check):
    """Only for the level fast."""
    check.true(False, "never run")


@clause("LANG-03.1-01")
def test_is_refused(impl, check):
    """A refusal for the right reason passes."""
    check.rejects(impl.language.execute(source="", function="refused", inputs={}), category="types", phase="verify")


@clause("LANG-03.1-01")
def test_is_refused_for_the_wrong_reason(impl, check):
    """A refusal for another reason fails."""
    check.rejects(impl.language.execute(source="", function="refused", inputs={}), category="shapes")
