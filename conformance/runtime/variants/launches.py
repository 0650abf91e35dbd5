"""Launches whose blocks, shared memory and flags are taken otherwise (runtime specification, 4.5 and 6)."""

from __future__ import annotations

from typing import Any

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import altered, varies
from tessera_reference.abi.status import invalid
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.compilation.executable import Executable, Extents

REACH = (
    "runtime/captured*",
    "runtime/graph*",
    "runtime/kernel-arguments/*",
    "runtime/launch*",
    "runtime/persistent*",
    "runtime/sample-program/*",
)
"""The cases of launches."""
INVALID, UNSUPPORTED = "TESS_ERR_INVALID_VALUE", "TESS_ERR_UNSUPPORTED"
CAPTURED_AND_PERSISTENT = 0b110
REQUIRE = Executable.require_configuration


@varies("AMB-RT-08", "takes a block of zeros or one without any", *REACH)
class WholeBlocks(ReferenceAdapter):
    """The compiler chooses all extents of a block, or none."""

    def runtime_tessLaunch(self, *, cfg: Any, **given: Any) -> dict[str, Any]:  # noqa: N802
        """Launch."""
        if any(cfg["block"]) and not all(cfg["block"]):
            raise Refusal(INVALID, "call", "tessLaunch: block")
        return super().runtime_tessLaunch(cfg=cfg, **given)


@varies("AMB-RT-145", "captures no persistent launch", *REACH)
class NoPersistentCapture(ReferenceAdapter):
    """What stays resident cannot be replayed."""

    def runtime_tessLaunch(self, *, cfg: Any, **given: Any) -> dict[str, Any]:  # noqa: N802
        """Launch."""
        if cfg["flags"] <= 0b1111 and cfg["flags"] & CAPTURED_AND_PERSISTENT == CAPTURED_AND_PERSISTENT:
            raise Refusal(UNSUPPORTED, "call", "tessLaunch: flags")
        return super().runtime_tessLaunch(cfg=cfg, **given)


def in_place_of_the_declaration(executable: Executable, grid: Extents, block: Extents, shared_bytes: int = 0) -> None:
    """A size that is stated is all the shared memory that there is."""
    if 0 < shared_bytes < executable.entry.shared_bytes:
        raise invalid("tessLaunch", f"shmemBytes is {shared_bytes}", f"at least {executable.entry.shared_bytes}")
    REQUIRE(executable, grid, block, max(0, shared_bytes - executable.entry.shared_bytes))


SHARED = altered(
    "AMB-RT-09",
    "takes shmemBytes in the place of what a kernel declares",
    REACH,
    ReferenceAdapter,
    (Executable, "require_configuration", in_place_of_the_declaration),
    name="stated_shared_memory",
)
