"""The numerics policy of a context (runtime spec 4.7)."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..numerics.errors import shown
from .status import invalid

__all__ = ["NumericsPolicy"]


@dataclass(frozen=True)
class NumericsPolicy:
    """tessNumericsPolicy: four switches of 0 or 1, by default those of the strict profile (AMB-LANG-43).

    Raises `Failure` with TESS_ERR_INVALID_VALUE for anything else (AMB-RT-47).
    """

    stableReductions: int = 1  # noqa: N815, the names of the C structure
    deterministic: int = 1
    rngStateless: int = 1  # noqa: N815
    allowFastMath: int = 0  # noqa: N815

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if type(value) is not int or value not in (0, 1):
                raise invalid("tessSetNumericsPolicy", f"{field.name} is {shown(value)}", "0 or 1")
