"""Values of SSA form: each defined once, with a name and a type (LANG-05-01)."""

from __future__ import annotations

from dataclasses import dataclass

from .types import Type


@dataclass(frozen=True, eq=False)
class Value:
    """An argument of a block or a result of an instruction. Two values are the same only when they are one object."""

    name: str
    type: Type
