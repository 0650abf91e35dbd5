"""The methods of the WSP runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import Any

from tessera_conformance.adapter import NotSupported, Refusal

from .. import __version__
from ..numerics.errors import InvalidArgument
from ..wsp.builder import compile_program
from ..wsp.errors import ArgumentRefused, DeviceNeeded, PackageRefused, ProgramRefused, UnsupportedDirective, WspFailure
from ..wsp.native import NativeRun, prepared
from ..wsp.networks import execute
from ..wsp.package import Inputs, Package, decimal, load, package_bytes
from ..wsp.run import RUNS, Run
from ..wsp.targets import target as target_of
from .messages import checked
from .session_state import SessionState


class WspMethods(SessionState):
    """The methods of packages, and of the runs of a session."""

    native = False
    """True if packages for cpu_sim are executed by their native programs."""

    @cached_property
    def _load(self) -> Callable[[bytes], Package]:
        """A cached reader of packages: one runs under many seeds, and reading it takes longer than a short run."""
        return lru_cache(16)(load)

    @checked
    def wsp_execute(self, *, program: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outcome of a program of processes, channels and kernels by name."""
        with _refusals():
            return execute(program, NativeRun if self.native else Run)

    @checked
    def wsp_compile(self, *, program: Mapping[str, Any], target: str) -> dict[str, Any]:
        """Return the package of a program."""
        with _refusals():
            package, diagnostics = compile_program(program, target_of(target))
        return {"package": package_bytes(package).decode(), "diagnostics": diagnostics}

    @checked
    def wsp_load(self, *, package: str) -> dict[str, Any]:
        """Return the contents of a package."""
        with _refusals():
            loaded = load(_bytes(package))
        parts = vars(loaded) | vars(loaded.csp)
        tables = ("kernels", "channels", "processes", "slots", "symbols", "tensors")
        names = {table: [entry.name for entry in parts[table]] for table in tables}
        return {"name": loaded.name, "target": loaded.target, "phase": loaded.phase, **names}

    @checked
    def wsp_run(self, *, package: str, **inputs: Any) -> dict[str, Any]:
        """Run a package to its end."""
        return self._prepared(package, **inputs).finish().result()

    @checked
    def wsp_start(self, *, package: str, **inputs: Any) -> dict[str, Any]:
        """Return a run that has not begun."""
        number = len(self._runs) + 1
        self._runs[number] = self._prepared(package, **inputs)
        return {"run": number}

    @checked
    def wsp_step(self, *, run: int, instants: int) -> dict[str, Any]:
        """Advance a run by some instants."""
        progress = self._run("step", run)
        for _ in range(instants):
            if not progress.step():
                break
        return progress.result()

    @checked
    def wsp_statistics(self, *, run: int) -> dict[str, Any]:
        """Return the statistics of a run in its current state."""
        return self._run("statistics", run).result()

    @checked
    def wsp_capabilities(self, *, target: str) -> dict[str, Any]:
        """Return the matrix of a target."""
        with _refusals():
            matrix = target_of(target)
        tables = {name: dict(getattr(matrix, name)) for name in ("directives", "csp", "predicates")}
        return {"phase": matrix.phase, **tables}

    @checked
    def wsp_architecture(self, *, target: str) -> dict[str, Any]:
        """Return the architecture model of a target."""
        with _refusals():
            return dict(target_of(target).architecture)

    def _prepared(
        self, package: str, symbols: Any = None, tensors: Any = None, resources: Any = None, seed: Any = None
    ) -> Run | NativeRun:
        with _refusals():
            numbers = {name: decimal(f"symbol {name}", digits) for name, digits in (symbols or {}).items()}
            inputs: Inputs = {"symbols": numbers, "tensors": tensors or {}, "resources": resources or {}, "seed": seed}
            loaded = self._load(_bytes(package))
            if self.native and loaded.target in RUNS and loaded.target != "cpu_sim":
                raise NotSupported("backend-a2a3sim")
            return prepared(loaded, self.native, **inputs)

    def _run(self, method: str, number: int) -> Run | NativeRun:
        if number not in self._runs:
            raise InvalidArgument(f"wsp.{method}", "run", number, "a run that wsp.start gave")
        return self._runs[number]


class NativeWsp(WspMethods):
    """The document's native programs as an implementation; the packages are the reference's."""

    native = True

    def hello(self) -> dict[str, Any]:
        """Return identity and claims: packages, and the features that native programs of cpu_sim show."""
        from . import FEATURES

        features = [name for name in FEATURES if name.startswith("wsp-")]
        return {
            "protocol": {"minimum": 1, "maximum": 1},
            "implementation": {"name": "tessera-reference-native", "version": __version__},
            "documents": ["wsp"],
            "capabilities": dict.fromkeys([*features, "arch-model", "backend-aie", "backend-cpu-sim"], "enforced"),
        }


def _bytes(package: str) -> bytes:
    """Return the bytes of a package as it was written; refuse a text that has no bytes as one."""
    try:
        return package.encode()
    except UnicodeEncodeError:
        raise Refusal("MALFORMED", "parse", "package refused: it holds half of a surrogate pair") from None


REFUSALS: Mapping[type[WspFailure], tuple[str, str]] = {
    UnsupportedDirective: ("UNSUPPORTED_DIRECTIVE", "lower"),
    ProgramRefused: ("INVALID_PROGRAM", "verify"),
    DeviceNeeded: ("DEVICE_NEEDED", "call"),
    ArgumentRefused: ("TESS_ERR_INVALID_VALUE", "call"),
}


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn errors of programs, packages and arguments into rejections."""
    try:
        yield
    except PackageRefused as problem:
        raise Refusal(problem.code, "parse", str(problem)) from None
    except tuple(REFUSALS) as problem:
        raise Refusal(*REFUSALS[type(problem)], str(problem)) from None
