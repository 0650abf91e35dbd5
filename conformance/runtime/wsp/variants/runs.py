"""Other runs: words, default sizes, and the form of reports (WSP specification)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tessera_conformance.strength import altered, varies
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.wsp import errors
from tessera_reference.wsp.package import Resources, Schedule, TaskWindow

from ....ir.variants.features import Without
from ..kit.packages import content_hash, published, sealed
from ..violators.changes import defaulting

WSP = ("runtime/wsp/*",)
USUAL = vars(Resources())
SMALLER = {name: size // 2 for name, size in USUAL.items()}
LARGER = {name: 8 * size for name, size in USUAL.items()}


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
    defaulting(Resources, **SMALLER),
    defaulting(Schedule, resources=Resources(**SMALLER), task_window=TaskWindow(32)),
    name="smaller_pools",
)


DEEPER = altered(
    "AMB-WSP-51",
    "has eight times the sizes where a program names none",
    WSP,
    ReferenceAdapter,
    defaulting(Resources, **LARGER),
    defaulting(Schedule, resources=Resources(**LARGER), task_window=TaskWindow(512)),
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


@varies("WSP-07-01", "has packages of a form of its own", *WSP)
class OwnPackages(ReferenceAdapter):
    """A package is the digits of its bytes behind a line that says what it is."""

    def wsp_compile(self, **arguments: Any) -> dict[str, Any]:
        """The package, wrapped."""
        found = super().wsp_compile(**arguments)
        return found | {"package": FIRST_LINE + found["package"].encode().hex() + "\n"}

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in ("wsp_load", "wsp_run", "wsp_start"):
            return found
        return lambda *, package, **arguments: found(package=unwrapped(package), **arguments)


FIRST_LINE = "wsp_runtime_abi v10.0, as digits\n"


def unwrapped(package: str) -> str:
    """The text within a package; what is none stays as it is, and one that is cut off ends within its text."""
    if not package.startswith(FIRST_LINE):
        return "" if FIRST_LINE.startswith(package) else package
    digits = package.removeprefix(FIRST_LINE)
    if digits.endswith("\n"):
        return bytes.fromhex(digits[:-1]).decode(errors="replace")
    return bytes.fromhex(digits[: len(digits) // 2 * 2]).decode(errors="replace")[:-1]


@varies("AMB-WSP-42", "lets the last of several processes act first at one time", *WSP)
class LastProcessFirst(Without):
    """The order among equals is that of the processes in reverse."""

    absent = frozenset({"wsp-seeds"})

    def wsp_compile(self, *, program: Mapping[str, Any], **arguments: Any) -> dict[str, Any]:
        """The package of a program whose processes are turned round."""
        csp = program.get("csp")
        if isinstance(csp, Mapping) and isinstance(csp.get("processes"), list):
            program = {**program, "csp": {**csp, "processes": csp["processes"][::-1]}}
        return dict(super().wsp_compile(program=program, **arguments))


MORE: Mapping[str, Any] = {"vendor": {"built_by": "acmec 3.1", "notes": [1, None, "x"]}, "debug": []}
"""Members that the document asks for nowhere."""


@varies("WSP-07.2-01", "has packages that carry more than the document asks for", *WSP)
class CarriesMore(ReferenceAdapter):
    """Members of its own stand in the package, in each kernel and in the schedule; it leaves them out to run it."""

    def wsp_compile(self, **arguments: Any) -> dict[str, Any]:
        """Return the package with more in it."""
        answer = super().wsp_compile(**arguments)
        document = json.loads(answer["package"])
        for part in (document, *document["kernels"], document["schedule"]):
            part.update(MORE)
        return answer | {"package": sealed(document)}

    def wsp_load(self, *, package: str) -> dict[str, Any]:
        """Load the rest of a package."""
        return super().wsp_load(package=rest_of(package))

    def wsp_run(self, *, package: str, **arguments: Any) -> dict[str, Any]:
        """Run the rest of a package."""
        return super().wsp_run(package=rest_of(package), **arguments)

    def wsp_start(self, *, package: str, **arguments: Any) -> dict[str, Any]:
        """Start the rest of a package."""
        return super().wsp_start(package=rest_of(package), **arguments)


def rest_of(package: str) -> str:
    """Return a package without what it carries beside; one that is cut off, altered or none stays as it is."""
    document = published(package)
    if document is None or document.get("hash") != content_hash(document) or not package.endswith("\n"):
        return package
    for part in (document, *document.get("kernels", ()), document.get("schedule")):
        for name in MORE if isinstance(part, dict) else ():
            part.pop(name, None)
    return sealed(document)
