"""The marks of the suite's tests, and how a pair of texts becomes the parameters of one case."""

from __future__ import annotations

from typing import Any

import pytest

clause = pytest.mark.clause
"""`@clause("LANG-05.4-01", ...)`: the clauses that the test judges."""

level = pytest.mark.level
"""`@level("strict")`: the numerics levels at which the test applies; without it, all."""

feature = pytest.mark.feature
"""`@feature("tensor-ops")`: what the implementation must claim beyond the features of the clauses."""

judges = pytest.mark.judges
"""`@judges("refusal")`: what the test judges of its clauses, if its checks do not show it; see `registry.judged`."""

title = pytest.mark.title
"""`title("...")`: what one case of a parametrized test is about, where its docstring cannot say."""


def pair(name: str, legal: str, illegal: str) -> Any:
    """A legal text and one that is not, as parameters of a case with this name."""
    return pytest.param(legal, illegal, id=name)
