"""The environment variables of collectives (collectives spec 3.2 and 8; AMB-COLL-45)."""

from __future__ import annotations

from collections.abc import Mapping

from .argument_checks import require_known

__all__ = ["ALGORITHM_VARIABLE", "PATH_VARIABLE", "TABLE_VARIABLE", "require_variables"]

PREFIX = "TESSERA_COLL_"

ALGORITHM_VARIABLE = "TESSERA_COLL_ALGO"
PATH_VARIABLE = "TESSERA_COLL_PATH"
TABLE_VARIABLE = "TESSERA_COLL_TABLE"

VARIABLES = (ALGORITHM_VARIABLE, PATH_VARIABLE, TABLE_VARIABLE)


def require_variables(function: str, environment: Mapping[str, str]) -> None:
    """Raises `Failure` with TESS_ERR_INVALID_VALUE for a variable that is none of these but begins as they do."""
    for name in environment:
        if name.startswith(PREFIX):
            require_known(function, "variable", name, VARIABLES)
