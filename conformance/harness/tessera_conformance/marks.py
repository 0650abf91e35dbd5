"""The marks of the suite's tests."""

from __future__ import annotations

import pytest

clause = pytest.mark.clause
"""`@clause("LANG-05.4-01", ...)`: the clauses that the test judges."""

level = pytest.mark.level
"""`@level("strict")`: the numerics levels at which the test applies; without it, all."""

feature = pytest.mark.feature
"""`@feature("tensor-ops")`: what the implementation must claim beyond the features of the clauses."""

title = pytest.mark.title
"""`title("...")`: what one case of a parametrized test is about, where its docstring cannot say."""
