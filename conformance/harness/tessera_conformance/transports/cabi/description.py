"""What a vendor says of a library that cannot say it itself: a TOML file laid over the Hello (`docs/cabi.md`)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tessera_conformance.schemas import first_problem

__all__ = ["BadDescription", "laid_over", "read_description"]

SCHEMA = "tessera:cabi-description"


class BadDescription(Exception):
    """A description that cannot be read, or that says what no library has; says where."""


def read_description(path: str) -> dict[str, Any]:
    """The members of the Hello, and `devices`, that a file gives. Raises `BadDescription`."""
    try:
        told = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise BadDescription(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise BadDescription(f"{path}: {error}") from None
    problem = first_problem(SCHEMA, "description", told)
    if problem is not None:
        raise BadDescription(f"{path}: {problem}")
    return told


def laid_over(hello: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """A Hello with what is told of it: objects member by member, anything else instead of what was there."""
    merged = dict(hello)
    for name, value in told.items():
        under = merged.get(name)
        merged[name] = {**under, **value} if isinstance(under, dict) and isinstance(value, dict) else value
    return merged
