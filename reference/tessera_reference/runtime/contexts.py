"""Contexts (runtime spec 4.1, 4.7, 11, Appendix C).

The environment variables, fault plans and policy that one is made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from ..abi.fatbin import CollectivePlan
from ..abi.policy import Descriptor, NumericsPolicy
from ..abi.status import Failure, Status, violation
from ..collectives.schedules import require_known
from ..collectives.selection import Overrides, read_overrides
from ..collectives.travel import Cut
from ..mesh.trace import Profiler
from ..numerics.formats import shown
from .machine import SIZE, integer, invalid

# The environment variables that a context finds when it is made (runtime spec, Appendix C; collectives spec 3.2, 8).
#
# AMB-RT-31, AMB-RT-46, AMB-RT-181. TESSERA_COLL_ALGO, TESSERA_COLL_PATH and TESSERA_COLL_TABLE are those of
# `collectives.selection`.


ALLOWED: Mapping[str, tuple[str, ...]] = {
    "TESS_NUMERICS": ("strict", "promote", "downcast"),
    "TESS_DETERMINISTIC": ("0", "1"),
    "TESS_AUTOTUNE": ("0", "1"),
    "TESS_LOG_LEVEL": ("info", "debug", "trace"),
}


@dataclass(frozen=True)
class Environment:
    """The settings of the environment variables; None where one is not set."""

    numerics: str | None = None
    deterministic: bool | None = None
    cache_dir: str | None = None
    autotune: bool | None = None
    log_level: str | None = None
    collectives: Overrides = field(default_factory=Overrides)


def read_environment(variables: Mapping[str, str]) -> Environment:
    """Return the settings in these variables, ignoring others. Raises `Failure` with TESS_ERR_INVALID_VALUE."""
    for name, allowed in ALLOWED.items():
        if name in variables and variables[name] not in allowed:
            subject = f"the environment variable {name} is {variables[name]!r}"
            raise Failure(Status.TESS_ERR_INVALID_VALUE, "tessInit", subject, " or ".join(allowed))
    directory = variables.get("TESS_CACHE_DIR")
    if directory is not None and (not isinstance(directory, str) or "\0" in directory or not directory.isprintable()):
        subject = f"the environment variable TESS_CACHE_DIR is {directory!r:.200}"
        raise Failure(Status.TESS_ERR_INVALID_VALUE, "tessInit", subject, "the path of a directory")
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


# Fault plans: which launch fails, hangs or is slow, which allocation fails, which link is cut or fails midway.
#
# AMB-RT-81, AMB-RT-182.


Kind = Literal["kernel_trap", "kernel_hang", "kernel_slow", "out_of_memory", "link_down", "link_cut"]

FIELDS: Mapping[str, tuple[str, ...]] = {
    "kernel_trap": ("kernel", "nth", "rank"),
    "kernel_hang": ("kernel", "nth", "rank"),
    "kernel_slow": ("kernel", "nth", "rank", "nanoseconds"),
    "out_of_memory": ("nth",),
    "link_down": ("mesh", "ranks"),
    "link_cut": ("link", "nanoseconds"),
}


@dataclass(frozen=True)
class Fault:
    """A fault of the `nth` launch or allocation from now on; a `rank` of None means every rank.

    A link is cut `nanoseconds` after the plan was set, and stays cut.
    """

    kind: Kind
    kernel: str | None = None
    nth: int = 1
    rank: int | None = None
    nanoseconds: int = 0
    mesh: int = 0
    ranks: tuple[int, ...] = ()
    link: str = ""


@dataclass(eq=False)
class FaultPlan:
    """The faults of a context, and how often each kernel and tessMalloc were called since they were set, at `since`."""

    faults: Sequence[Fault] = ()
    since: int = 0
    launches: dict[str, int] = field(default_factory=dict)
    allocations: int = 0

    def of_launch(self, kernel: str) -> tuple[Fault, ...]:
        """Count a launch, and return its faults."""
        if not self.faults:
            return ()
        self.launches[kernel] = count = self.launches.get(kernel, 0) + 1
        faults = [fault for fault in self.faults if fault.kind.startswith("kernel_") and fault.nth == count]
        return tuple(fault for fault in faults if fault.kernel in (None, kernel))

    def of_allocation(self) -> bool:
        """Count an allocation; return True if it must fail."""
        self.allocations += 1
        return any(fault.kind == "out_of_memory" and fault.nth == self.allocations for fault in self.faults)

    def cut(self, mesh: int) -> tuple[tuple[int, int], ...]:
        """Return the pairs of ranks of a mesh between which nothing passes."""
        return tuple(
            (fault.ranks[0], fault.ranks[1])
            for fault in self.faults
            if fault.kind == "link_down" and fault.mesh == mesh
        )

    def link_cuts(self, now: int) -> tuple[Cut, ...]:
        """Return the cut links, each with the picoseconds until its cut; 0 for a past one."""
        cuts = (fault for fault in self.faults if fault.kind == "link_cut")
        return tuple(Cut(max(0, self.since + 1000 * cut.nanoseconds - now), cut.link) for cut in cuts)


def read_faults(described: Sequence[Mapping[str, Any]], links: Sequence[str] = (), since: int = 0) -> FaultPlan:
    """Return a plan from its description, for a machine with these links, starting at `since`.

    Raises `Failure` with TESS_ERR_INVALID_VALUE.
    """
    if not isinstance(described, Sequence) or not all(isinstance(row, Mapping) for row in described):
        raise invalid(f"faults is {shown(described)}", "a list of faults, each with its kind")
    return FaultPlan(
        tuple(_fault(f"faults[{i}]", description, links) for i, description in enumerate(described)), since
    )


def _fault(name: str, described: Mapping[str, Any], links: Sequence[str]) -> Fault:
    kind: Any = described.get("kind")
    if kind not in get_args(Kind):
        raise invalid(f"{name}.kind is {kind!r}", " or ".join(get_args(Kind)))
    for row in described:
        if row != "kind" and row not in FIELDS[kind]:
            raise invalid(f"{name} has {row!r}", f"{', '.join(FIELDS[kind])} of a {kind}")
    kernel = described.get("kernel")
    if kernel is not None and not isinstance(kernel, str):
        raise invalid(f"{name}.kernel is {kernel!r}", "the name of a kernel")
    link = described.get("link", "")
    if kind == "link_cut":
        require_known("tessxSetFaults", f"{name}.link", link, links)
    ranks = described.get("ranks", ())
    if kind == "link_down" and (not isinstance(ranks, list | tuple) or len(ranks) != 2):
        raise invalid(f"{name}.ranks is {ranks!r}", "a list of two ranks")
    numbers = {
        member: integer(f"{name}.{member}", described[member], SIZE)
        for member in ("nth", "nanoseconds", "mesh")
        if member in described
    }
    rank = None if described.get("rank") is None else integer(f"{name}.rank", described["rank"], SIZE)
    pair = tuple(integer(f"{name}.ranks[{i}]", member, SIZE) for i, member in enumerate(ranks))
    return Fault(kind, kernel=kernel, rank=rank, ranks=pair, link=link, **numbers)


# Contexts as tessInit creates them, with policy and settings (runtime spec 4.1, 4.7, 11; AMB-RT-46).


@dataclass(frozen=True)
class ModulePolicy:
    """The permissions of a context's modules and work (runtime spec 15)."""

    forbid_fast_math: bool = False
    enforce_determinism: bool = False
    trusted_keys: tuple[bytes, ...] | None = None


POLICIES = {
    None: NumericsPolicy(),
    "strict": NumericsPolicy(),
    "promote": NumericsPolicy(stableReductions=0),
    "downcast": NumericsPolicy(stableReductions=0, deterministic=0, allowFastMath=1),
}
"""By the value of TESS_NUMERICS, the policy of a context for which nothing closer sets one (AMB-RT-31)."""


@dataclass(eq=False)
class Context:
    """One context. While `policy` is None, the policy of the module or of the environment is in force."""

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
        """Return the policy in force: of flag, context, module, environment or the default, in turn (AMB-RT-46)."""
        policy = self.policy or module or self.default()
        return replace(policy, deterministic=1) if deterministic_launch else policy

    def require_policy(self, function: str, policy: NumericsPolicy) -> None:
        """Require that the context allows work under this policy (AMB-RT-88). Raises `Failure`."""
        if self.module_policy.enforce_determinism and not policy.deterministic:
            raise violation(function, "work without determinism", "deterministic work, as the context demands")
        if self.module_policy.forbid_fast_math and policy.allowFastMath:
            raise violation(function, "work with fast math", "work without, as the context demands")

    def require_no_fast_math(self, subject: str, allowed: str, policy: NumericsPolicy | None) -> None:
        """Require a policy without fast math where the context forbids it (AMB-RT-88). Raises `Failure`."""
        if self.module_policy.forbid_fast_math and policy is not None and policy.allowFastMath:
            raise violation("", subject, allowed)

    def default(self) -> NumericsPolicy:
        """Return the policy of the environment, or else the strict one."""
        policy = POLICIES[self.environment.numerics]
        deterministic = self.environment.deterministic
        return policy if deterministic is None else replace(policy, deterministic=int(deterministic))
