"""Which lines a case executes: those of interest, in this thread, and not those of branches that it does not take."""

from __future__ import annotations

import inspect

from tessera_conformance.strength.mutants import _Trace


def larger(first: int, second: int) -> int:
    if first > second:
        return first
    return max(other for other in [second])


def test_a_branch_that_is_not_taken_is_not_executed() -> None:
    start = inspect.getsourcelines(larger)[1]
    with _Trace({__file__: {start + 1, start + 2}}) as seen:
        larger(1, 2)
    assert list(seen) == [(__file__, start + 1)]


def test_lines_of_other_functions_are_left_alone() -> None:
    with _Trace({__file__: {1}}) as seen:
        larger(2, 1)
    assert not seen
