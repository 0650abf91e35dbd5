"""The marks of the suite's tests, and pairs of texts as the parameters of one case."""

from __future__ import annotations

from typing import Any

import pytest

clause = pytest.mark.clause
"""`@clause("LANG-05.4-01", ...)`: the clauses that the test judges."""

level = pytest.mark.level
"""`@level("strict")`: the numerics levels at which the test applies; without it, all."""

feature = pytest.mark.feature
"""`@feature("tensor-ops")`: the feature that the implementation must claim beyond the features of the clauses."""

judges = pytest.mark.judges
"""`@judges("refusal")`: the part of its clauses that a test judges, if checks do not show it; see `registry.judged`."""

title = pytest.mark.title
"""`title("...")`: the title of one case of a parametrized test, where its docstring cannot give it."""


def pair(name: str, legal: str, illegal: str) -> Any:
    """Return a legal text and an illegal one, as parameters of a case with this name."""
    return pytest.param(legal, illegal, id=name)
