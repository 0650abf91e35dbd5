"""The C headers `tessera.h` and `tessera_ext.h`, which are beside this file."""

from __future__ import annotations

from importlib.resources import files


def header() -> str:
    """The text of the header of the specification (runtime spec 4)."""
    return _text("tessera.h")


def extension_header() -> str:
    """The text of the header of the extensions."""
    return _text("tessera_ext.h")


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
