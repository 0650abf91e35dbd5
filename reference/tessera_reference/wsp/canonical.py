"""The canonical bytes of a package and its content hash (section 7.2)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

__all__ = ["canonical_bytes", "content_hash"]


def canonical_bytes(document: Mapping[str, Any]) -> bytes:
    """JSON with sorted members and no blanks, UTF-8, ended by one line feed."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def content_hash(document: Mapping[str, Any]) -> str:
    """`sha256:` and the digest of the canonical bytes without the member `hash`."""
    content = {name: each for name, each in document.items() if name != "hash"}
    return f"sha256:{hashlib.sha256(canonical_bytes(content)).hexdigest()}"
