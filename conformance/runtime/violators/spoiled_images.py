"""Images with some bytes changed (runtime specification, 4.5 and 8.1; AMB-RT-43)."""

from tessera_conformance.adapter import Refusal

from .changes import INVALID, answering

SHORT = 64
"""Images of no more bytes are refused as they should be."""


def refused_afterwards(adapter, call, given):
    if getattr(adapter.runtime, "spoiled", False):
        raise Refusal(INVALID, "call", "tessModuleLoad: out of order")
    try:
        return call(**given)
    except Refusal as refusal:
        adapter.runtime.spoiled = refusal.outcome.code == INVALID and given.get("size", SHORT) > SHORT
        raise


BROKEN = answering("RT-07-02", "BrokenAfterwards", "refuses every image after one with some bytes changed",
                   "tessModuleLoad", refused_afterwards)  # fmt: skip
