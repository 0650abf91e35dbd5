"""The names of the C interface in the order of the specification (runtime specification, section 4 and 6)."""

from __future__ import annotations

__all__ = ["COLLECTIVE_OPERATORS", "COPY_KINDS", "LAUNCH_FLAGS", "MEMORY_KINDS", "PROTOTYPES", "STATUSES"]

STATUSES = (
    "TESS_OK",
    "TESS_ERR_INVALID_VALUE",
    "TESS_ERR_OUT_OF_MEMORY",
    "TESS_ERR_NOT_INITIALIZED",
    "TESS_ERR_LAUNCH_FAILED",
    "TESS_ERR_ARCH_MISMATCH",
    "TESS_ERR_UNSUPPORTED",
    "TESS_ERR_COLLECTIVE_MISMATCH",
    "TESS_ERR_DETERMINISM_VIOLATION",
    "TESS_ERR_TIMEOUT",
    "TESS_ERR_ABI_VERSION_MISMATCH",
    "TESS_ERR_CACHE_CORRUPT",
)
MEMORY_KINDS = ("TESS_MEM_GLOBAL", "TESS_MEM_PINNED_HOST")
COPY_KINDS = ("TESS_COPY_H2D", "TESS_COPY_D2H", "TESS_COPY_D2D")
COLLECTIVE_OPERATORS = ("TESS_COLL_SUM", "TESS_COLL_MAX", "TESS_COLL_MIN")
LAUNCH_FLAGS = (
    "TESS_LAUNCH_DEFAULT",
    "TESS_LAUNCH_DETERMINISTIC",
    "TESS_LAUNCH_CAPTURE",
    "TESS_LAUNCH_PERSISTENT",
    "TESS_LAUNCH_LOW_LATENCY",
)

PROTOTYPES = {
    "tessInit": ("RT-04.1-16", "(tessContext_t*)"),
    "tessShutdown": ("RT-04.1-17", "(tessContext_t)"),
    "tessGetVersion": ("RT-04.1-18", "(int*, int*, int*)"),
    "tessMeshCreate": ("RT-04.2-02", "(tessContext_t, const int*, int, tessMeshAxes, tessMesh_t*)"),
    "tessMeshDestroy": ("RT-04.2-03", "(tessMesh_t)"),
    "tessStreamCreate": ("RT-04.3-03", "(tessMesh_t, int, tessStream_t*)"),
    "tessStreamDestroy": ("RT-04.3-04", "(tessStream_t)"),
    "tessEventCreate": ("RT-04.3-05", "(tessEvent_t*)"),
    "tessEventDestroy": ("RT-04.3-06", "(tessEvent_t)"),
    "tessEventRecord": ("RT-04.3-07", "(tessEvent_t, tessStream_t)"),
    "tessStreamWaitEvent": ("RT-04.3-08", "(tessStream_t, tessEvent_t)"),
    "tessStreamSynchronize": ("RT-04.3-09", "(tessStream_t)"),
    "tessMalloc": ("RT-04.4-03", "(tessMesh_t, size_t, void**)"),
    "tessFree": ("RT-04.4-04", "(tessMesh_t, void*)"),
    "tessHostAlloc": ("RT-04.4-05", "(size_t, void**, tessMemKind)"),
    "tessHostFree": ("RT-04.4-06", "(void*)"),
    "tessMemcpyAsync": ("RT-04.4-10", "(void*, const void*, size_t, tessCopyKind, tessStream_t)"),
    "tessModuleLoad": ("RT-04.5-03", "(tessContext_t, const void*, size_t, tessModule_t*)"),
    "tessModuleUnload": ("RT-04.5-05", "(tessModule_t)"),
    "tessKernelGet": ("RT-04.5-06", "(tessModule_t, const char*, tessKernel_t*)"),
    "tessLaunch": ("RT-04.5-13", "(tessKernel_t, tessMesh_t, tessLaunchConfig, const void*, size_t, tessStream_t)"),
    "tessAllReduce": ("RT-04.6-04", "(tessMesh_t, void*, size_t, int, tessCollOp, const char*, tessStream_t)"),
    "tessReduceScatter": ("RT-04.6-05", "(tessMesh_t, void*, size_t, int, tessCollOp, const char*, tessStream_t)"),
    "tessAllGather": ("RT-04.6-06", "(tessMesh_t, void*, size_t, int, const char*, tessStream_t)"),
    "tessBroadcast": ("RT-04.6-07", "(tessMesh_t, void*, size_t, int, int, tessStream_t)"),
    "tessSetNumericsPolicy": ("RT-04.7-07", "(tessContext_t, const tessNumericsPolicy*)"),
    "tessGetNumericsPolicy": ("RT-04.7-09", "(tessContext_t, tessNumericsPolicy*)"),
    "tessProfilerStart": ("RT-04.8-02", "(tessContext_t, tessProfiler_t*)"),
    "tessProfilerStop": ("RT-04.8-03", "(tessProfiler_t, const char*)"),
}
"""Every function of the host interface: the clause of its prototype, and its parameters."""
