"""Other runs: words, default sizes, and the form of reports (WSP specification)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.strength import altered, varies
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.wsp import builder, errors, package
from tessera_reference.wsp import package as parts

WSP = ("runtime/wsp/*",)
SMALLER = {name: size // 2 for name, size in package.RESOURCES.items()}


def in_a_word(problem: Any) -> str:
    """The least that can be said."""
    return "refusé"


def names_alone(problem: errors.UnsupportedDirective) -> str:
    """The target, and what it does not support, without the words around."""
    around = problem.directive.removeprefix("a cyclic stream graph: ").partition(";")[0]
    return f"{problem.target} ⊄ {around}"


def where_alone(problem: Any) -> str:
    """The place that is wrong."""
    return f"ici: {problem.path}"


WORDS = altered(
    "AMB-WSP-33",
    "words its refusals in another language",
    WSP,
    ReferenceAdapter,
    (errors.ProgramRefused, "__str__", where_alone),
    (errors.UnsupportedDirective, "__str__", names_alone),
    (errors.ArgumentRefused, "__str__", in_a_word),
    (errors.DeviceNeeded, "__str__", in_a_word),
    name="words",
)

SIZES = altered(
    "AMB-WSP-51",
    "has half the sizes where a program names none",
    WSP,
    ReferenceAdapter,
    (parts, "RESOURCES", SMALLER),
    (builder, "DEFAULT_WINDOW", builder.DEFAULT_WINDOW | {"size": 32}),
    name="smaller_pools",
)


DEEPER = altered(
    "AMB-WSP-51",
    "has eight times the sizes where a program names none",
    WSP,
    ReferenceAdapter,
    (parts, "RESOURCES", {name: 8 * size for name, size in package.RESOURCES.items()}),
    (builder, "DEFAULT_WINDOW", builder.DEFAULT_WINDOW | {"size": 512}),
    name="larger_pools",
)


@varies("AMB-WSP-33", "numbers its runs downwards from 2**40", *WSP)
class LargeNumbers(ReferenceAdapter):
    """A run is known by the number that `wsp.start` gave."""

    def wsp_start(self, **arguments: Any) -> dict[str, Any]:
        """Begin a run."""
        return {"run": 2**40 - super().wsp_start(**arguments)["run"]}

    def wsp_step(self, *, run: int, **arguments: Any) -> dict[str, Any]:
        """Step a run."""
        return super().wsp_step(run=2**40 - run, **arguments)

    def wsp_statistics(self, *, run: int) -> dict[str, Any]:
        """Return the statistics of a run."""
        return super().wsp_statistics(run=2**40 - run)


@varies("AMB-WSP-33", "tells what waits and which channels are full backwards, with words of its own", *WSP)
class Backwards(ReferenceAdapter):
    """The information is there, in another order."""

    def __getattribute__(self, name: str) -> Any:
        answer = super().__getattribute__(name)
        if name not in ("wsp_run", "wsp_step", "wsp_statistics"):
            return answer
        return lambda **arguments: told_backwards(answer(**arguments))


def told_backwards(result: dict[str, Any]) -> dict[str, Any]:
    """A result whose report of a deadlock is in another order, and whose error has other words."""
    if "error" in result:
        result["error"] = {name: "erreur" if name == "message" else member for name, member in result["error"].items()}
    if "deadlock" in result:
        report = dict(result["deadlock"])
        for part in ("waiting", "channels", "scopes", "mitigations"):
            report[part] = report[part][::-1] if part in report else []
        result["deadlock"] = report
    return result
