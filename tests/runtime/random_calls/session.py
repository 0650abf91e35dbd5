"""One runtime and the model of it: makes calls and judges what they answer."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from tessera_reference.abi.policy import NumericsPolicy
from tessera_reference.abi.status import Status
from tessera_reference.compilation.executables import executables_of
from tessera_reference.compilation.images import compile_module
from tessera_reference.mesh.engine import FirstCome, Seeded
from tessera_reference.mesh.memory import Region
from tessera_reference.mesh.topology import named
from tessera_reference.runtime.api import Runtime

from .model import SOURCE, Block, Choose, Place, World, bad_handle, bad_pointer, bad_value, chance, pick

OK = Status.TESS_OK
TOPOLOGIES = ("eight-sm90", "mixed", "two-nodes", "single")
ENVIRONMENTS: Sequence[Mapping[str, str]] = (
    {},
    {"TESS_DETERMINISTIC": "0"},
    {"TESS_DETERMINISTIC": "1", "TESS_LOG_LEVEL": "trace"},
    {"TESS_AUTOTUNE": "1", "TESS_NUMERICS": "promote"},
    {"TESS_AUTOTUNE": "yes"},
)
HANDLES = ("context", "mesh", "stream", "event", "module", "kernel", "graph", "profiler")
FAST = NumericsPolicy(stableReductions=0, deterministic=0, rngStateless=1, allowFastMath=1)
IMAGES: Mapping[str, tuple[tuple[str, ...], NumericsPolicy | None, tuple[int, int] | None]] = {
    "both": (("sm_90", "gfx942"), None, None),
    "sm_90": (("sm_90",), None, None),
    "gfx942": (("gfx942",), None, None),
    "fast": (("sm_90", "gfx942"), FAST, None),
    "newer": (("sm_90",), None, (1, 1)),
    "other": (("sm_90",), None, (2, 0)),
    "foreign": (("gfx90a",), None, None),
}
"""By name: targets, policy and ABI version of a module image."""
SAID_OF: Mapping[str, tuple[str, ...]] = {
    "tessStreamSynchronize": ("tess",),
    "tessxIssue": ("tessxIssue", "tessAllReduce", "tessReduceScatter", "tessAllGather", "tessBroadcast"),
    "tessxHostMemory": ("tessxHostMemory", "tessHostAlloc"),
}
"""The functions of whom the text of a failure may speak; else the one that was called."""


class Wrong(AssertionError):
    """The runtime did what it must not."""


@cache
def image(name: str) -> bytes:
    """A module image."""
    targets, policy, version = IMAGES[name]
    return compile_module(SOURCE, targets, policy=policy, abi_version=version)


@lru_cache(maxsize=4096)
def prepared(hash_: bytes, fatbin: Any, kernel: str, target: str, extents: tuple[tuple[str, int], ...]) -> Any:
    """A kernel made ready once for all sessions: it keeps no state."""
    return executables_of(fatbin, kernel, target, dict(extents))


class Session:
    """A runtime in use, and what it should be like."""

    def __init__(self, choose: Choose, scratch: Path | None = None, tally: Counter[str] | None = None) -> None:
        self.choose = choose
        self.scratch = scratch
        self.tally: Counter[str] = Counter() if tally is None else tally
        self.world = World()
        self.history: list[str] = []
        self.corrupted = False
        self.begun = False
        self.topology = named(pick(choose, TOPOLOGIES))
        self.timed = not chance(choose, 50)
        self.seed = choose.below(1000)
        policy = FirstCome() if chance(choose, 50) else Seeded(self.seed)
        variables = {} if scratch is None else {"TESS_CACHE_DIR": str(scratch / "cache0")}
        self.runtime = Runtime(self.topology, variables, choices=policy, timed=self.timed)
        drawn = f"choices=Seeded({self.seed})" if isinstance(policy, Seeded) else "choices=FirstCome()"
        self.history.append(f"Runtime(named({self.topology.name!r}), {variables}, {drawn}, timed={self.timed})")
        self._share_executables()

    def _share_executables(self) -> None:
        """Without a cache directory, take kernels that earlier sessions prepared."""
        code, made = self.runtime.code, self.runtime.code._made

        def shared(module: Any, entry: Any, target: str, extents: Mapping[str, int], policy: Any) -> Any:
            if module.context.environment.cache_dir is not None:
                return made(module, entry, target, extents, policy)
            return prepared(module.fatbin.ir_hash, module.fatbin, entry.name, target, tuple(sorted(extents.items())))

        code._made = shared  # type: ignore[method-assign]

    # Choices

    def pick(self, options: Sequence[Any]) -> Any:
        return pick(self.choose, options)

    def chance(self, percent: int) -> bool:
        return chance(self.choose, percent)

    def below(self, count: int) -> int:
        return self.choose.below(count)

    def bytes(self, count: int) -> bytes:
        """Data that is easy to tell apart."""
        first, step = self.below(256), self.below(8)
        return bytes((first + step * i) % 256 for i in range(count))

    def any(self, kind: str) -> Any:
        """A live handle, or 0."""
        live = list(self.world.kinds()[kind])
        return self.pick(live) if live else 0

    def place(self, size: int, *, devices: Sequence[int] | None, step: int = 1, quiet: bool = False) -> Place | None:
        """So many bytes of memory of these devices, or of the host where that is None."""
        fit = [each for each in self.world.blocks if each.size >= size and self._is_of(each, devices)]
        if quiet:
            fit = [each for each in fit if self.world.order.is_quiet(each)]
        if not fit:
            return None
        block = self.pick(fit)
        return Place(block, step * self.below((block.size - size) // step + 1), size)

    @staticmethod
    def _is_of(block: Block, devices: Sequence[int] | None) -> bool:
        return not block.of_device if devices is None else block.of_device and set(devices) <= set(block.devices)

    # Calls

    def call(
        self,
        function: str,
        arguments: Mapping[str, Any],
        kinds: Mapping[str, str],
        wrong: Collection[Status] = (),
        *,
        maybe: Collection[Status] = (),
        outputs: Sequence[str] = (),
        named: Mapping[str, Any] | None = None,
        unspoilt: Collection[str] = (),
    ) -> tuple[Status, Any]:
        """Make a call whose arguments are as good as `wrong` says; in some cases one of them is spoilt first.

        `wrong` are statuses one of which it must then answer with, `maybe` others that it may.
        """
        allowed = frozenset(wrong)
        arguments, null = dict(arguments), ()
        spoilt = bool(kinds) and self.begun and self.chance(15)
        if spoilt:
            name = self.pick([each for each in kinds if each not in unspoilt] or [""])
            if name:
                arguments[name], statuses = self._spoilt(kinds[name])
                allowed |= statuses
        elif outputs and self.begun and self.chance(3):
            null = (self.pick(outputs),)
            allowed |= {Status.TESS_ERR_INVALID_VALUE}
        allowed = (allowed or {OK}) | frozenset(maybe)
        return self.judged(function, arguments, allowed, null=null, named=named or {})

    def _spoilt(self, kind: str) -> tuple[Any, frozenset[Status]]:
        if kind in HANDLES:
            return bad_handle(self.choose, kind, self.world)
        invalid = frozenset({Status.TESS_ERR_INVALID_VALUE})
        if kind in ("device pointer", "host pointer"):
            return bad_pointer(self.choose, self.world, kind == "device pointer"), invalid
        return bad_value(self.choose, kind), invalid

    def judged(
        self,
        function: str,
        arguments: Mapping[str, Any],
        allowed: Collection[Status],
        *,
        null: Sequence[str] = (),
        named: Mapping[str, Any] | None = None,
    ) -> tuple[Status, Any]:
        """Make a call, whose status has to be one of those allowed."""
        shown = ", ".join(
            [f"{each!r:.120}" for each in arguments.values()] + [f"{k}={v!r}" for k, v in (named or {}).items()]
        )
        self.history.append(f"{function}({shown})" + (f" with {null} NULL" if null else ""))
        before = self.runtime.machine.engine.events
        more: dict[str, Any] = dict(named or {}) | ({"null": null} if null else {})
        try:
            answer = getattr(self.runtime, function)(*arguments.values(), **more)
        except Exception:
            raise self.wrong(f"{function} raised\n{traceback.format_exc(limit=-4)}") from None
        status, value = answer if isinstance(answer, tuple) else (answer, None)
        if not isinstance(status, Status):
            raise self.wrong(f"{function} answered {answer!r}")
        self.history[-1] += f" -> {status.name} {'' if value is None else repr(value)[:60]}"
        self.tally[function] += 1
        self.tally[status.name] += 1
        self.tally[f"{function} succeeds"] += status is OK
        if status not in allowed:
            said = self.runtime.tessxLastError()
            raise self.wrong(f"{status.name} ({said}), allowed is {sorted(each.name for each in allowed)}")
        if status is not OK:
            self._judge_text(function, value)
        if self.runtime.machine.engine.events - before > 20_000:
            raise self.wrong(f"{function} took {self.runtime.machine.engine.events - before} events of the engine")
        return status, value

    def _judge_text(self, function: str, value: Any) -> None:
        text = self.runtime.tessxLastError()
        if value is not None:
            raise self.wrong(f"a failed call gave {value!r}")
        if not text.startswith(SAID_OF.get(function, (function,))) or (
            "; expected " not in text and "tree" not in text
        ):
            raise self.wrong(f"the last error is {text!r}")

    def wrong(self, what: str) -> Wrong:
        return Wrong("after\n  " + "\n  ".join(self.history[-400:]) + "\n" + what)

    # Comparison

    def adopt(self, block: Block) -> Block:
        """Take in a new allocation."""
        memory = self.runtime.machine.memory
        space = "device" if block.of_device else "host"
        block.actual = memory.find(block.address, 0, "test", "pointer", space).allocation  # type: ignore[arg-type]
        if block.address % 256 or not block.address:
            raise self.wrong(f"a pointer {block.address:#x} is not aligned")
        for other in self.world.blocks:
            if block.address < other.address + other.size and other.address < block.address + block.size:
                raise self.wrong(f"memory at {block.address:#x} is given out twice")
        self.world.blocks.append(block)
        return block

    def compare(self) -> None:
        """Compare live objects, and all memory that no queued work writes, with the model."""
        for kind, held in self.world.kinds().items():
            found = [handle for handle, _ in self.runtime.handles.live(kind)]
            if found != list(held):
                raise self.wrong(f"live of kind {kind} is {found}, not {list(held)}")
        memory, order = self.runtime.machine.memory, self.world.order
        if {each.address for each in memory.live()} != {each.address for each in self.world.blocks}:
            raise self.wrong("other memory is allocated than should be")
        written = {each.use.place.block for each in order.noted if each.use.write}
        for block in self.world.blocks:
            if block in written or not block.size:
                continue
            for copy in range(len(block.copies)):
                found_bytes = memory.peek(Region(block.actual, 0), copy, block.size)
                place = block.differs(copy, found_bytes)
                if place is not None:
                    expected = bytes(block.copies[copy][place : place + 8]).hex()
                    what = f"byte {place} of copy {copy} of {block.actual} is {found_bytes[place : place + 8].hex()}"
                    raise self.wrong(f"{what}, not {expected}")
        self._compare_findings()

    def _compare_findings(self) -> None:
        found = any(each.kind == "unordered_access" for each in self.runtime.tessxFindings())
        if found and not self.world.order.possible_races:
            raise self.wrong("an unordered access is reported, and there was none")
        if self.world.order.races and not found and not self.runtime.machine.memory.findings.left_out:
            raise self.wrong("an unordered access is not reported")
