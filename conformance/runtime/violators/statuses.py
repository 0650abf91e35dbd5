"""Statuses that differ from the specification (runtime specification, Appendix A)."""

from tessera_reference.abi.status import Failure
from tessera_reference.runtime.launches import LaunchWork

from .changes import INVALID, UNSUPPORTED, answering, executing, refusing, restating

COLLECTIVES = ("tessAllReduce", "tessReduceScatter", "tessAllGather", "tessBroadcast")
REFUSING = ("tessMeshCreate", "tessHostAlloc", "tessMemcpyAsync", "tessKernelGet", "tessLaunch", *COLLECTIVES,
            "tessStreamWaitEvent", "tessProfilerStop")  # fmt: skip
SUCCEEDING = ("tessEventRecord", "tessStreamWaitEvent", "tessGetNumericsPolicy", "tessAllGather", "tessFree",
              "tessStreamSynchronize")  # fmt: skip


def one_more(adapter, call, given):
    whole = adapter.runtime_tessxDevices()["devices"][0]["memory_bytes"]
    return call(**(given | {"bytes": whole} if given["bytes"] == whole + 1 else given))


def unharmed(work, *arguments, right=LaunchWork._executed):
    try:
        return right(work, *arguments)
    except Failure:
        return {}


VIOLATORS = [
    *(restating("RT-19.A-01", f"{function}_invalid", f"{function} calls invalid values unsupported", function, INVALID,
        UNSUPPORTED) for function in REFUSING),
    *(restating("RT-19.A-12", f"{function}_always", f"{function} always succeeds", function, INVALID, "")
        for function in ("tessKernelGet", "tessMalloc")),
    *(refusing("RT-19.A-12", f"{function}_never", f"{function} never succeeds", function) for function in SUCCEEDING),
    *(restating("RT-19.A-06", f"{function}_{name}", description, function, UNSUPPORTED, becomes)
        for function in COLLECTIVES[:2] for name, description, becomes in (
            ("unsupported", "calls what it does not support invalid", INVALID),
            ("anything", "does what is not defined", ""))),
    refusing("RT-19.A-06", "no_complex_sum", "calls the sum of complex numbers invalid", "tessAllReduce",
             lambda given: given["dtype"] in (12, 13) and given["op"] == 0, INVALID),
    restating("RT-19.A-02", "host_memory_invalid", "calls it invalid that the host has no memory", "tessHostAlloc",
        "TESS_ERR_OUT_OF_MEMORY", INVALID),
    answering("RT-19.A-02", "OneMore", "gives out one byte more than there is", "tessMalloc", one_more),
    executing("RT-19.A-04", "unharmed", "ends a kernel quietly where it fails", unharmed),
]  # fmt: skip
