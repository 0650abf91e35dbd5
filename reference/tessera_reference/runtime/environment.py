"""The environment variables that a context finds when it is made (runtime spec, Appendix C; collectives spec 3.2, 8).

AMB-RT-31, AMB-RT-46, AMB-RT-181. TESSERA_COLL_ALGO, TESSERA_COLL_PATH and TESSERA_COLL_TABLE are those of
`collectives.selection`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..abi.status import Failure, Status
from ..collectives.selection import Overrides, read_overrides

__all__ = ["Environment", "read_environment"]

ALLOWED: Mapping[str, tuple[str, ...]] = {
    "TESS_NUMERICS": ("strict", "promote", "downcast"),
    "TESS_DETERMINISTIC": ("0", "1"),
    "TESS_AUTOTUNE": ("0", "1"),
    "TESS_LOG_LEVEL": ("info", "debug", "trace"),
}


@dataclass(frozen=True)
class Environment:
    """The settings of the variables; None where one is not set."""

    numerics: str | None = None
    deterministic: bool | None = None
    cache_dir: str | None = None
    autotune: bool | None = None
    log_level: str | None = None
    collectives: Overrides = field(default_factory=Overrides)


def read_environment(variables: Mapping[str, str]) -> Environment:
    """The settings of these variables; others are ignored. Raises `Failure` with TESS_ERR_INVALID_VALUE."""
    for name, allowed in ALLOWED.items():
        if name in variables and variables[name] not in allowed:
            given = f"the environment variable {name} is {variables[name]!r}"
            raise Failure(Status.TESS_ERR_INVALID_VALUE, "tessInit", given, " or ".join(allowed))
    directory = variables.get("TESS_CACHE_DIR")
    if directory is not None and (not isinstance(directory, str) or "\0" in directory or not directory.isprintable()):
        given = f"the environment variable TESS_CACHE_DIR is {directory!r:.200}"
        raise Failure(Status.TESS_ERR_INVALID_VALUE, "tessInit", given, "the path of a directory")
    return Environment(
        numerics=variables.get("TESS_NUMERICS"),
        deterministic=_switch(variables.get("TESS_DETERMINISTIC")),
        cache_dir=variables.get("TESS_CACHE_DIR") or None,
        autotune=_switch(variables.get("TESS_AUTOTUNE")),
        log_level=variables.get("TESS_LOG_LEVEL"),
        collectives=read_overrides("tessInit", variables),
    )


def _switch(text: str | None) -> bool | None:
    return None if text is None else text == "1"
