"""Environment variables that are misread, read late, or ignored (runtime spec, Appendix C; AMB-RT-46)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tessera_conformance.strength import Violation, replaced
from tessera_reference.abi.policy import NumericsPolicy
from tessera_reference.adapter import make
from tessera_reference.runtime import contexts
from tessera_reference.runtime.contexts import Context, Environment
from tessera_reference.runtime.launches import CodeCache
from tessera_reference.runtime.state import Line, Log

from .changes import Call, Given, answering

READ, STORE = contexts.read_environment, CodeCache.store


def reading(clause: str, name: str, description: str, change: Callable[[Environment], Environment]) -> Violation:
    """Return a violation that changes the environment that a context has read."""

    def read(variables: Mapping[str, str]) -> Environment:
        return change(READ(variables))

    return replaced(clause, description, make, ("runtime.calls.read_environment", read), name=name)


def finding(
    clause: str, name: str, description: str, change: Callable[[Mapping[str, str]], Mapping[str, str]]
) -> Violation:
    """Return a violation that changes the variables before they are read."""

    def read(variables: Mapping[str, str]) -> Environment:
        return READ(change(variables))

    return replaced(clause, description, make, ("runtime.calls.read_environment", read), name=name)


def without(name: str) -> Callable[[Mapping[str, str]], Mapping[str, str]]:
    """Return a change that removes a variable."""
    return lambda variables: {key: value for key, value in variables.items() if key != name}


def instead(name: str, values: Mapping[str, str]) -> Callable[[Mapping[str, str]], Mapping[str, str]]:
    """Return a change that replaces values of a variable."""
    return lambda variables: {
        key: values.get(value, value) if key == name else value for key, value in variables.items()
    }


VARIABLES = {
    "TESS_NUMERICS": ("RT-19.C-01", {"exact": "strict"}),
    "TESS_AUTOTUNE": ("RT-19.C-04", {"2": "1"}),
    "TESS_LOG_LEVEL": ("RT-19.C-05", {"everything": "trace"}),
}
"""For each variable its clause, and a value that is unknown for one that is known."""

FOUND = [
    *(
        violation
        for name, (clause, unknown) in VARIABLES.items()
        for violation in (
            finding(clause, f"no_{name}", f"does not read {name}", without(name)),
            finding(clause, f"any_{name}", f"takes an unknown value of {name} for a known one", instead(name, unknown)),
        )
    ),
    finding("RT-19.C-05", "other_TESS_LOG_LEVEL", "takes a value of TESS_LOG_LEVEL for another",
            instead("TESS_LOG_LEVEL", {"trace": "debug"})),
    finding("RT-19.C-02", "no_TESS_DETERMINISTIC", "does not read TESS_DETERMINISTIC",
        lambda variables: {**without("TESS_DETERMINISTIC")(variables), "TESS_DETERMINISTIC": "0"}),
]  # fmt: skip


def chosen(name: str, description: str, change: Callable[[Context], NumericsPolicy]) -> Violation:
    """Return a violation that changes the policy that a context gets from the environment."""
    return replaced("RT-19.C-01", description, make, ("runtime.contexts.Context.default", change), name=name)


DEFAULT = Context.default

CHOSEN = [
    chosen("numerics_told_alone", "tells TESS_NUMERICS and changes no policy by it",
           lambda self: replace(NumericsPolicy(), deterministic=DEFAULT(self).deterministic)),
    chosen("fast_beside_determinism", "lets TESS_DETERMINISTIC take fast math away", lambda self: replace(
        DEFAULT(self), allowFastMath=DEFAULT(self).allowFastMath if self.environment.deterministic is None else 0
    )),
]  # fmt: skip


def not_kept(adapter: Any, call: Call, given: Given) -> dict[str, Any]:
    answer = call(**given)
    for _, context in adapter.runtime.handles.live("context"):
        context.environment = READ(given["variables"])
    return answer


NOT_KEPT = answering("RT-19.C-01", "NotKept", "tells what the environment says now", "tessxSetEnvironment", not_kept)


def never_stored(self: CodeCache, context: Context) -> None:
    """Store nothing in the reported directory."""


_directories: dict[int, Any] = {}


def last_store(self: CodeCache, context: Context) -> Any:
    found = STORE(self, context)
    if found is not None:
        _directories[id(self)] = found
    return found or _directories.get(id(self))


# Precedence


def governing(name: str, description: str, govern: Callable[..., NumericsPolicy]) -> Violation:
    """Return a violation with another order of precedence of policy sources."""
    return replaced("RT-19.C-02", description, make, ("runtime.contexts.Context.governing", govern), name=name)


def _with(policy: NumericsPolicy, flag: bool) -> NumericsPolicy:
    return replace(policy, deterministic=1) if flag else policy


def module_first(self: Context, module: NumericsPolicy | None = None, flag: bool = False) -> NumericsPolicy:
    return _with(module or self.policy or self.default(), flag)


def environment_over_modules(self: Context, module: NumericsPolicy | None = None, flag: bool = False) -> NumericsPolicy:
    chosen = self.environment.deterministic
    return _with(self.policy or (self.default() if chosen is not None else module) or self.default(), flag)


def flag_last(self: Context, module: NumericsPolicy | None = None, flag: bool = False) -> NumericsPolicy:
    return self.policy or _with(module or self.default(), flag)


def merged(self: Context, module: NumericsPolicy | None = None, flag: bool = False) -> NumericsPolicy:
    sources = [policy for policy in (self.policy, module) if policy is not None]
    deterministic = any(source.deterministic for source in sources) or bool(self.environment.deterministic)
    return replace((sources or [self.default()])[0], deterministic=int(deterministic or flag))


PRECEDENCE = [
    governing("module_first", "lets a module's policy win over the context's", module_first),
    governing("environment_over_modules", "lets the environment win over modules", environment_over_modules),
    governing("flag_last", "lets the context's policy win over the flag", flag_last),
    governing("merged", "is deterministic where any source asks for it", merged),
    replaced("RT-19.C-03", "writes nothing to the directory", make, ("runtime.launches.CodeCache.store", never_stored),
             name="never_stored"),
    replaced("RT-19.C-03", "goes on with a directory that is unset", make,
        ("runtime.launches.CodeCache.store", last_store), name="last_store"),
]  # fmt: skip


# The log, and the autotuner


def all_levels(self: Log, level: str, text: str) -> None:
    self.lines.append(Line(level, text))


LOGGED = [
    replaced("RT-19.C-05", "logs everything always", make, ("runtime.state.Log.note", all_levels), name="all_levels"),
    reading("RT-19.C-04", "always_tuned", "tunes although it is told not to", lambda found: found if found.autotune
            is None else replace(found, autotune=True)),
    reading("RT-19.C-04", "never_tuned", "does not tune although it is told to", lambda found: found if found.autotune
            is None else replace(found, autotune=False)),
]  # fmt: skip
