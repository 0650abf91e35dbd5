"""Contexts: what tessInit hands out and tessShutdown takes back, each with a policy (runtime spec 4.1, 4.7)."""

from __future__ import annotations

from ..abi.policy import NumericsPolicy
from ..abi.status import Failure, Status

__all__ = ["Contexts"]


class Contexts:
    """The live contexts of a process, by handle. A handle is never given out twice."""

    def __init__(self) -> None:
        self._policies: dict[int, NumericsPolicy] = {}
        self._given_out = 0

    def init(self) -> int:
        """tessInit: the handle of a new context under the default policy."""
        self._given_out += 1
        self._policies[self._given_out] = NumericsPolicy()
        return self._given_out

    def shutdown(self, context: int) -> None:
        """tessShutdown: end a context. Raises `Failure` for a handle that is not live."""
        self._live("tessShutdown", context)
        del self._policies[context]

    def policy(self, context: int, function: str = "tessGetNumericsPolicy") -> NumericsPolicy:
        """The policy last set (RT-04.7-08). Raises `Failure` for a handle that is not live."""
        return self._live(function, context)

    def set_policy(self, context: int, policy: NumericsPolicy) -> None:
        """tessSetNumericsPolicy: govern the work submitted from now on (RT-04.7-10)."""
        self._live("tessSetNumericsPolicy", context)
        self._policies[context] = policy

    def _live(self, function: str, context: int) -> NumericsPolicy:
        if context not in self._policies:
            raise Failure(
                Status.TESS_ERR_NOT_INITIALIZED,
                function,
                f"context {context} is not live",
                "a handle that tessInit gave and tessShutdown has not taken back",
            )
        return self._policies[context]
