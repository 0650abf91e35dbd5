"""The numerics policy of a context and the determinism descriptor of a launch (runtime spec 4.7, 11)."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..numerics.formats import shown
from ..numerics.trees import Tree
from .status import Failure, Status, invalid

# The numerics policy of a context (runtime spec 4.7).


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


# The determinism descriptor of a launch (runtime spec 11; AMB-RT-23, AMB-RT-75, AMB-RT-76).


@dataclass(frozen=True)
class StableMath:
    """The stable-math toggles (RT-11-05 to -07); off is refused, since every launch here is strict (AMB-RT-76).

    Raises `Failure` with TESS_ERR_DETERMINISM_VIOLATION; with TESS_ERR_INVALID_VALUE for neither on nor off.
    """

    softmax: bool = True
    log_sum_exp: bool = True
    clamp: bool = True

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, bool):
                raise invalid("tessLaunch", f"stable {field.name} is {shown(value)}", "true or false")
            if not value:
                raise Failure(Status.TESS_ERR_DETERMINISM_VIOLATION, "tessLaunch", f"stable {field.name} is off", "on")


@dataclass(frozen=True)
class Descriptor:
    """The descriptor that fixes the bits of a launch: its orders of reductions, random numbers and stable math.

    `reduction_order` None is the canonical order of each operation (RT-11-02); seed and stream determine the random
    numbers (RT-11-03, RT-11-04). Raises `Failure` with TESS_ERR_INVALID_VALUE for a seed or stream beyond 64 bits.
    """

    reduction_order: Tree | None = None
    seed: int = 0
    stream: int = 0
    stable: StableMath = StableMath()

    def __post_init__(self) -> None:
        for name, value in (("seed", self.seed), ("stream", self.stream)):
            if type(value) is not int or not 0 <= value < 1 << 64:
                raise invalid("tessLaunch", f"{name} is {shown(value)}", "a whole number from 0 to 2**64 - 1")
