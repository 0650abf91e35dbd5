"""Contexts: what tessInit makes, with its policy and its settings (runtime spec 4.1, 4.7, 11; AMB-RT-46)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..abi.descriptor import Descriptor
from ..abi.fatbin import CollectivePlan
from ..abi.policy import NumericsPolicy
from ..abi.status import Failure, Status
from ..mesh.profiler import Profiler
from .environment import Environment
from .faults import FaultPlan

__all__ = ["Context", "ModulePolicy"]


@dataclass(frozen=True)
class ModulePolicy:
    """What a context lets modules and work do (runtime spec 15)."""

    forbid_fast_math: bool = False
    enforce_determinism: bool = False
    trusted_keys: tuple[bytes, ...] | None = None


POLICIES = {
    None: NumericsPolicy(),
    "strict": NumericsPolicy(),
    "promote": NumericsPolicy(stableReductions=0),
    "downcast": NumericsPolicy(stableReductions=0, deterministic=0, allowFastMath=1),
}
"""By the value of TESS_NUMERICS, the policy of a context that nothing nearer gives one (AMB-RT-31)."""


@dataclass(eq=False)
class Context:
    """One context. `policy` is None until it is set: then that of the module or of the environment is in force."""

    handle: int
    environment: Environment
    policy: NumericsPolicy | None = None
    descriptor: Descriptor = field(default_factory=Descriptor)
    module_policy: ModulePolicy = field(default_factory=ModulePolicy)
    timeout: int | None = None
    faults: FaultPlan = field(default_factory=FaultPlan)
    profilers: dict[int, Profiler] = field(default_factory=dict)
    hints: dict[str, str] = field(default_factory=dict)
    tuned: dict[str, str] = field(default_factory=dict)
    plans: dict[int, tuple[CollectivePlan, ...]] = field(default_factory=dict)

    def governing(self, module: NumericsPolicy | None = None, deterministic_launch: bool = False) -> NumericsPolicy:
        """The policy in force: flag, then context, then module, then environment, then our own (AMB-RT-46)."""
        policy = self.policy or module or self.default()
        return replace(policy, deterministic=1) if deterministic_launch else policy

    def require_policy(self, function: str, policy: NumericsPolicy) -> None:
        """Work under this policy is allowed in the context (AMB-RT-88). Raises `Failure`."""
        if self.module_policy.enforce_determinism and not policy.deterministic:
            raise _violation(function, "work without determinism", "deterministic work, as the context demands")
        if self.module_policy.forbid_fast_math and policy.allowFastMath:
            raise _violation(function, "work with fast math", "work without, as the context demands")

    def require_no_fast_math(self, given: str, allowed: str, policy: NumericsPolicy | None) -> None:
        """A policy does not allow fast math where the context forbids it (AMB-RT-88). Raises `Failure`."""
        if self.module_policy.forbid_fast_math and policy is not None and policy.allowFastMath:
            raise _violation("", given, allowed)

    def default(self) -> NumericsPolicy:
        """The policy of the environment, or else the strict one."""
        policy = POLICIES[self.environment.numerics]
        deterministic = self.environment.deterministic
        return policy if deterministic is None else replace(policy, deterministic=int(deterministic))


def _violation(function: str, given: str, allowed: str) -> Failure:
    return Failure(Status.TESS_ERR_DETERMINISM_VIOLATION, function, given, allowed)
