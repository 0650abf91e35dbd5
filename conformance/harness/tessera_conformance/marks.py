"""The two marks a test of the suite carries."""

from __future__ import annotations

import pytest

clause = pytest.mark.clause
"""`@clause("LANG-05.4-01", ...)`: the clauses that the test judges."""

level = pytest.mark.level
"""`@level("strict")`: the numerics levels at which the test applies; without it, all."""
