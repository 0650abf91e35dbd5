"""The C header `tessera.h`, which stands beside this file."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["header"]


def header() -> str:
    """The text of the header (runtime spec 4)."""
    return files(__package__).joinpath("tessera.h").read_text(encoding="utf-8")
