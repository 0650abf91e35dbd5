"""Kernels that break the calling convention (runtime specification, 2, 9, 10.2, 10.3, 18)."""

import re

from tessera_conformance.adapter import NotSupported
from tessera_conformance.strength import violates
from tessera_reference.adapter import ReferenceAdapter

from ...ir.violators.changes import changed, nothing, wrapped
from .images import said


def table(clause, name, description, change):
    return said(clause, name, description, lambda found, _: {"kernels": [*map(change, found["kernels"])]})


def renamed(clause, name, description, rename):
    return table(clause, name, description, lambda kernel: kernel | {"name": rename(kernel["name"])})


def results_dropped(usual, self, *, source, **options):
    if "kernel" in source and "func" not in source:
        source = re.sub(r"return \w+;", "return;", re.sub(r"\) -> [^{]*\{", ") {", source))
    return usual(self, source=source, **options)


def arguments_written(usual, self, **given):
    answer = usual(self, **given)
    if isinstance(given["argBuffer"], int):
        self.runtime_tessxHostWrite(hostPtr=given["argBuffer"], data="00" * 8)
    return answer


def pointers_first(usual, self, *, argBuffer, **given):  # noqa: N803, the name of the C function
    turned = isinstance(argBuffer, str) and len(argBuffer) == 48
    buffer = argBuffer[16:32] + argBuffer[:16] + argBuffer[32:] if turned else argBuffer
    return usual(self, argBuffer=buffer, **given)


LAUNCH = "adapter.ReferenceAdapter.runtime_tessLaunch"


@violates("RT-10.2-02", "writes to the first pointer that it was ever given")
class FirstPointerKept(ReferenceAdapter):
    kept = ""

    def runtime_tessLaunch(self, *, argBuffer, **given):  # noqa: N802, N803, the names of the C function
        if not isinstance(argBuffer, str) or len(argBuffer) != 32:
            return super().runtime_tessLaunch(argBuffer=argBuffer, **given)
        self.kept = self.kept or argBuffer[16:]
        return super().runtime_tessLaunch(argBuffer=argBuffer[:16] + self.kept, **given)

    def session_reset(self):
        self.kept = ""
        return super().session_reset()


def without(function):
    def absent(self, **arguments):
        raise NotSupported(function)

    description = f"does not have {function}"
    return changed("RT-02-08", f"no_{function}", description, (ReferenceAdapter, f"runtime_{function}", absent))


PLACE, MALLOC = "kernel_machine.block.BlockState.require_aligned", "adapter.ReferenceAdapter.runtime_tessMalloc"


VIOLATORS = [
    changed("RT-09-08", "rows_of_ldmatrix_anywhere", "loads matrices from any address", (PLACE, nothing)),
    wrapped("RT-09-08", "MemoryOfEight", "gives device memory at odd multiples of 8", MALLOC,
        lambda usual, self, *, bytes, **others: {"devPtr": usual(self, bytes=bytes + 8, **others)["devPtr"] + 8}),
    renamed("RT-10.3-02", "lower_case", "writes names in lower case", str.lower),
    table("RT-10.2-01", "result_of_copies", "has kernels with two pointers return one",
        lambda kernel: kernel | {"returns": ["ptr"] * ([p["type"] for p in kernel["parameters"]].count("ptr") > 1)}),
    wrapped("RT-10.2-01", "ResultsDropped", "drops the results of kernels", "adapter.ReferenceAdapter.abi_compile",
        results_dropped),
    wrapped("RT-10.2-02", "ArgumentsWritten", "writes into the arguments in host memory", LAUNCH, arguments_written),
    wrapped("RT-10.1-13", "PointersOfLaunchesFirst", "wants the pointers of a launch first", LAUNCH, pointers_first),
    *(without(name) for name in ("tessBroadcast", "tessReduceScatter", "tessAllGather", "tessAllReduce")),
]  # fmt: skip
