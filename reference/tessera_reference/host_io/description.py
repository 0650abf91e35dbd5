"""What an endpoint has, as `host_io.describe` answers it and as files of `hostio:` describe it."""

from __future__ import annotations

from typing import Any

from .kernels import BUILTINS
from .machine import Machine

__all__ = ["description"]


def description(machine: Machine) -> dict[str, Any]:
    """Devices, PEs, memories, kernels, and how many requests may be unanswered."""
    return {
        "devices": [{"name": name, "sip": sip} for name, sip in machine.devices().items()],
        "places": [each._asdict() for each in machine.places()],
        "memories": [{"kind": each.kind, "base": each.base, "bytes": each.bytes} for each in machine.memories],
        "builtins": [{"name": name, "parameters": list(each.parameters or ())} for name, each in BUILTINS.items()],
        "queue_depth": machine.size.queue_depth,
    }
