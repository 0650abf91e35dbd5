"""Implementations that follow a listed alternative at the levels below Graph IR."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from tessera_conformance.adapter import NotSupported, Refusal
from tessera_conformance.strength import varies
from tessera_reference.adapter import ReferenceAdapter

from .diagnostics import Tells


@varies("AMB-LANG-251", "names the line of an error in a kernel, and no number", "ir/tile/*", "ir/target/*")
class LineAlone(Tells):
    """Says neither lane nor place."""

    def told(self, refusal: Refusal) -> Refusal:
        """The refusal without numbers, where a kernel was running."""
        told = refusal.outcome
        if told.phase != "execute":
            return refusal
        found = [replace(diagnostic, message="an error of the kernel", operands=()) for diagnostic in told.diagnostics]
        return Refusal(told.code, told.phase, "an error of the kernel", found)


@varies("AMB-LANG-252", "allocates the tile of each operand once, whatever the depth", "ir/tile/*", "ir/levels/*")
class OneTile(ReferenceAdapter):
    """Prints what section 13.1 prints."""

    def language_lower(self, **arguments: Any) -> dict[str, Any]:
        """The IR, whose tiles in shared memory have two dimensions."""
        answer = super().language_lower(**arguments)
        for function in answer["functions"]:
            for operation in function["operations"]:
                if operation["name"] == "tessera.tile.shared.alloc":
                    stages = r"(?<=memref<)\d+x(?=\d+x\d+x)"
                    operation["result_types"] = [re.sub(stages, "", type_) for type_ in operation["result_types"]]
        return answer


@varies("AMB-LANG-266", "lacks the assembly of a vendor for the targets of another", "ir/target/*")
class NoCrossing(ReferenceAdapter):
    """Answers that it does not support the request."""

    def language_lower(self, **arguments: Any) -> dict[str, Any]:
        """The IR, or the text for the tools of the target's vendor."""
        try:
            return super().language_lower(**arguments)
        except Refusal as refusal:
            if refusal.outcome.code == "TESS_ERR_INVALID_VALUE":
                raise NotSupported("crossing") from None
            raise
