"""Kernels that break the calling convention (runtime specification, 2, 9, 10.2, 10.3, 18)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tessera_conformance.adapter import NotSupported
from tessera_conformance.strength import Violation, violates
from tessera_reference.adapter import ReferenceAdapter

from ...ir.violators.changes import changed

Entry = dict[str, Any]


def table(clause: str, name: str, description: str, change: Callable[[Entry], Entry]) -> Violation:
    """Return a violation that applies `change` to each entry of every image's kernel table."""
    original = ReferenceAdapter.abi_inspect

    def inspect(self: ReferenceAdapter, *, image: str) -> dict[str, Any]:
        found = original(self, image=image)
        return found | {"kernels": [change(kernel) for kernel in found["kernels"]]}

    return changed(clause, name, description, ("adapter.ReferenceAdapter.abi_inspect", inspect))


def renamed(clause: str, name: str, description: str, rename: Callable[[str], str]) -> Violation:
    """Return a violation that gives kernels other public names."""
    return table(clause, name, description, lambda kernel: kernel | {"name": rename(kernel["name"])})


TABLES = [
    renamed("RT-10.3-02", "lower_case", "writes names in lower case", str.lower),
    table("RT-10.2-01", "result_of_copies", "has kernels with two pointers return one",
        lambda kernel: kernel | {"returns": ["ptr"] * ([p["type"] for p in kernel["parameters"]].count("ptr") > 1)}),
]  # fmt: skip


@violates("RT-10.2-01", "drops the results of kernels")
class ResultsDropped(ReferenceAdapter):
    def abi_compile(self, *, source: str, **options: Any) -> dict[str, Any]:
        if "kernel" in source and "func" not in source:
            source = re.sub(r"return \w+;", "return;", re.sub(r"\) -> [^{]*\{", ") {", source))
        return super().abi_compile(source=source, **options)


class Launches(ReferenceAdapter):
    """The reference with an action before and after each launch."""

    def runtime_tessLaunch(self, **arguments: Any) -> dict[str, Any]:  # noqa: N802, the name of the C function
        """Launch between `before` and `after`."""
        answer = super().runtime_tessLaunch(**(arguments | self.before(arguments)))
        self.after(arguments)
        return answer

    def before(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the changed parameters of the launch."""
        return {}

    def after(self, given: dict[str, Any]) -> None:
        """Act after the launch was queued."""


@violates("RT-10.2-02", "writes into the arguments in host memory")
class ArgumentsWritten(Launches):
    def after(self, given: dict[str, Any]) -> None:
        if isinstance(given["argBuffer"], int):
            self.runtime_tessxHostWrite(hostPtr=given["argBuffer"], data="00" * 8)


@violates("RT-10.2-02", "writes to the first pointer that it was ever given")
class FirstPointerKept(Launches):
    kept = ""

    def before(self, given: dict[str, Any]) -> dict[str, Any]:
        buffer = given["argBuffer"]
        if not isinstance(buffer, str) or len(buffer) != 32:
            return {}
        self.kept = self.kept or buffer[16:]
        return {"argBuffer": buffer[:16] + self.kept}

    def session_reset(self) -> dict[str, Any]:
        self.kept = ""
        return super().session_reset()


@violates("RT-10.1-13", "wants the pointers of a launch first")
class PointersOfLaunchesFirst(Launches):
    def before(self, given: dict[str, Any]) -> dict[str, Any]:
        buffer = given["argBuffer"]
        if not isinstance(buffer, str) or len(buffer) != 48:
            return {}
        return {"argBuffer": buffer[16:32] + buffer[:16] + buffer[32:]}


def without(function: str) -> Violation:
    """Return a violation that does not implement a collective."""

    def absent(self: ReferenceAdapter, **arguments: Any) -> dict[str, Any]:
        raise NotSupported(function)

    description = f"does not have {function}"
    return changed("RT-02-08", f"no_{function}", description, (ReferenceAdapter, f"runtime_{function}", absent))


COLLECTIVES = [without(name) for name in ("tessBroadcast", "tessReduceScatter", "tessAllGather", "tessAllReduce")]

ALIGNMENT = [
    changed("RT-09-08", "rows_of_ldmatrix_anywhere", "loads matrices from any address",
        ("kernel_machine.block.BlockState.require_aligned", lambda *ignored: None)),
]  # fmt: skip


@violates("RT-09-08", "gives device memory at odd multiples of 8")
class MemoryOfEight(ReferenceAdapter):
    def runtime_tessMalloc(self, *, mesh: int, bytes: int, **others: Any) -> dict[str, Any]:  # noqa: N802
        given = super().runtime_tessMalloc(mesh=mesh, bytes=bytes + 8, **others)
        return {"devPtr": given["devPtr"] + 8}
