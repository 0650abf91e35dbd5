"""Runs of programs through the protocol, and the parts of their results that cases read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .programs import elements

SEEDS = range(19)
"""The seeds of every case about order and time: twenty runs with the one without seed; `test_seeds.py` has 200."""


class Members(dict[str, Any]):
    """An object of an answer; a case fails if it reads a missing member."""

    def __init__(self, members: Mapping[str, Any], check: Any) -> None:
        super().__init__(members)
        self.check = check

    def __missing__(self, name: str) -> Any:
        self.check.true(False, f"the answer has the member {name}", sorted(self))


def read_by(check: Any, answer: Any) -> Any:
    """Return an answer whose missing members fail the case that reads them."""
    if isinstance(answer, Mapping):
        return Members({name: read_by(check, member) for name, member in answer.items()}, check)
    return [read_by(check, element) for element in answer] if isinstance(answer, list) else answer


def compiled(impl: Any, check: Any, program: Mapping[str, Any], target: str = "cpu_sim") -> str:
    """Return the package of a legal program."""
    package: str = check.accepts(impl.wsp.compile(program=program, target=target))["package"]
    return package


def ran(impl: Any, check: Any, program: Mapping[str, Any] | str, **arguments: Any) -> dict[str, Any]:
    """Return the result of a program, or of a package, whatever its outcome."""
    package = program if isinstance(program, str) else compiled(impl, check, program)
    result: dict[str, Any] = read_by(check, check.returns(impl.wsp.run(package=package, **arguments)))
    return result


def statistics(impl: Any, check: Any, program: Mapping[str, Any] | str, **arguments: Any) -> dict[str, Any]:
    """Return the statistics of a program, or of a package, that completes."""
    result = ran(impl, check, program, **arguments)
    check.equal(result["outcome"], "completed", f"the outcome, with {reason(result)}")
    found: dict[str, Any] = result["statistics"]
    return found


def under_seeds(
    impl: Any, check: Any, program: Mapping[str, Any], seeds: Iterable[int] = SEEDS, **arguments: Any
) -> dict[str, Any]:
    """Return the statistics of a program that completes; check that they are the same under every seed."""
    package = compiled(impl, check, program)
    first = statistics(impl, check, package, **arguments)
    different = [seed for seed in seeds if statistics(impl, check, package, seed=seed, **arguments) != first]
    check.equal(different, [], "the seeds with another result")
    return first


def reason(result: Mapping[str, Any]) -> str:
    """Return the reason for which a run did not complete, in a few words."""
    error = result.get("error")
    return f"{error['code']}: {error['message']}" if error else json.dumps(result.get("deadlock", {}))[:300]


def ends_with_error(check: Any, result: Mapping[str, Any], code: str, process: str | None = None) -> None:
    """Check that a run ends with an error of this code, which names its process."""
    check.equal(result["outcome"], "error", f"the outcome, with {reason(result)}")
    check.equal(result["error"]["code"], code, "the code of the error")
    if process is not None:
        check.equal(result["error"]["process"], process, "the process of the error")
    check.true(bool(result["error"]["message"]), "the error has a message")


def instants(impl: Any, check: Any, package: str, **arguments: Any) -> Iterator[dict[str, Any]]:
    """Yield the statistics after each instant of a run, up to its end."""
    number = check.returns(impl.wsp.start(package=package, **arguments))["run"]
    outcome = "running"
    while outcome == "running":
        result = read_by(check, check.returns(impl.wsp.step(run=number, instants=1)))
        outcome = result["outcome"]
        yield result["statistics"]


def noted(found: Mapping[str, Any], log: str = "log") -> str:
    """Return the digits that the program noted, in their order."""
    (digits,) = elements("u64", found["tensors"][log])
    return f"{digits:x}" if digits else ""


def stalls(found: Mapping[str, Any], *reasons: str) -> dict[str, tuple[int, int]]:
    """Counts and cycles of the stalls for these reasons."""
    return {reason: (found["stalls"][reason]["count"], found["stalls"][reason]["cycles"]) for reason in reasons}
