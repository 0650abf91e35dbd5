"""The cases that call the runtime, and so can show how it goes about its work."""

from __future__ import annotations

RUNTIME = ("runtime/[!w]*", "abi/module-images/*")
"""`runtime/wsp` is a chapter of its own."""
