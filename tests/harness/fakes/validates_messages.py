"""A pytest plugin that holds every message of a run against the published schemas; problems go to MESSAGE_PROBLEMS."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tessera_conformance.protocol import Observation, Returned
from tessera_conformance.schemas import first_problem
from tessera_conformance.session import Session
from tessera_conformance.tensors import to_wire

_call = Session.call


def _validated(session: Session, method: str, params: Mapping[str, Any]) -> Observation:
    observation = _call(session, method, params)
    area, _, name = method.partition(".")
    problems = [first_problem(f"tessera:protocol/{area}", f"{name}.params", to_wire(params))]
    if isinstance(observation, Returned):
        problems.append(first_problem(f"tessera:protocol/{area}", f"{name}.result", to_wire(observation.value)))
    with Path(os.environ["MESSAGE_PROBLEMS"]).open("a", encoding="utf-8") as log:
        log.write("".join(f"{method}: {problem}\n" for problem in problems if problem) + "checked\n")
    return observation


Session.call = _validated  # type: ignore[method-assign]
