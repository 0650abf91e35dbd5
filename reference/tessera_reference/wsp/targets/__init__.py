"""The targets: for each a file with its capability matrix and its architecture (sections 1.3 and 5)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from .. import policies
from ..errors import ArgumentRefused

NAMES = ("cpu_sim", "pto_runtime_a2a3sim", "pto_runtime_a2a3sim_host_graph", "pto_runtime_a2a3", "aie")
"""The targets of the document; the host graph is phase 1 of a2a3sim, which has a matrix of its own (AMB-WSP-73)."""


@dataclass(frozen=True)
class Target:
    """A target: its treatment of each directive, and the machine that it models."""

    name: str
    phase: int
    directives: Mapping[str, str]
    csp: Mapping[str, str]
    predicates: Mapping[str, str]
    architecture: Mapping[str, Any]

    def state(self, feature: str, table: str = "directives") -> str:
        """Return the state of an entry of a table; `unsupported` if the matrix does not list it (AMB-WSP-29)."""
        state: str = getattr(self, table).get(feature, "unsupported")
        return state


@cache
def target(name: str) -> Target:
    """A target by name; `dispatch.*` is every policy. Raises `ArgumentRefused` for one that there is not."""
    if name not in NAMES:
        raise ArgumentRefused("target", f"is {name!r:.120}, expected one of {', '.join(NAMES)}")
    matrix = stated(name)
    state = matrix["directives"].pop("dispatch.*")
    matrix["directives"] |= {f"dispatch.{policy}": state for policy in policies.found()}
    return Target(name, **matrix)


def stated(name: str) -> dict[str, Any]:
    """Return what the file of a target states; what it leaves out is as of the target that it is `like`.

    What the other target enforces has the state `enforced_as` here.
    """
    own = tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))
    if "like" not in own:
        return own
    base, enforced = stated(own.pop("like")), own.pop("enforced_as", "enforced")
    for table in ("directives", "csp", "predicates"):
        base[table] = {name: enforced if state == "enforced" else state for name, state in base[table].items()}
    return _over(base, own)


def _over(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with other values, and what its base has beside them."""
    tables = {name: _over(base[name], table) for name, table in own.items() if isinstance(table, dict) and name in base}
    return {**base, **own, **tables}
