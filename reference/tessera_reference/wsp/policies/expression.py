"""A user's policy: a ScalarExpr over constants, symbols, `task` (the issue number) and `key` (AMB-WSP-49)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import RunError
from ..statements import compiled

ID = "expression"
PARAMETERS = {"workers": "number", "worker": "expression"}


def place(parameters: Mapping[str, Any], symbols: list[int]) -> Callable[[int, int], int]:
    """By the value of the expression. The function raises `RunError`."""
    workers: int = parameters["workers"]
    inputs: dict[str, int] = {}
    evaluate = compiled(parameters["worker"], symbols, (), inputs)

    def placed(issue: int, key: int) -> int:
        inputs.update(task=issue, key=key)
        worker = evaluate()
        if worker >= workers:
            raise RunError("WORKER_OUT_OF_RANGE", f"the policy places task {issue} on worker {worker} of {workers}")
        return worker

    return placed
