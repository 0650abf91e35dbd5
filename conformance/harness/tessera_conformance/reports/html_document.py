"""A self-contained HTML document: a template of `assets` with its style, its script and its data put in.

A content policy allows exactly this style and this script, by their hashes. Data are compressed and in base64: no text
inside can end its island, and the same data give the same bytes.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_ASSETS = Path(__file__).resolve().parent / "assets"
_PLACE = re.compile(r"@@([A-Z]+)@@")


def document(
    template: str,
    styles: Sequence[str],
    scripts: Sequence[str],
    places: Mapping[str, str],
    details: Iterable[str] = (),
) -> Iterator[str]:
    """Yield the document piece by piece; the details stand where the template says so and are never joined."""
    style, script = "".join(map(_asset, styles)), "".join(map(_asset, scripts))
    filled = {**places, "POLICY": _policy(script, style), "STYLE": style, "SCRIPT": script}
    before, _, after = _asset(template).partition("@@DETAILS@@")
    yield _PLACE.sub(lambda place: filled[place[1]], before)
    yield from details
    yield _PLACE.sub(lambda place: filled[place[1]], after)


def packed(text: str) -> str:
    """A gzip stream in base64."""
    return base64.b64encode(gzip.compress(text.encode("utf-8", errors="backslashreplace"), 9, mtime=0)).decode()


def as_json(value: Any) -> str:
    """JSON without blanks."""
    return json.dumps(value, separators=(",", ":"))


def cut(text: str, longest: int) -> str:
    """A text, or its beginning and how many characters follow."""
    return text if len(text) <= longest else f"{text[:longest]} ... ({len(text) - longest} more characters)"


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _policy(script: str, style: str) -> str:
    """Nothing from anywhere, but this very script and this very style."""
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
