/*
 * The C interface of the Tessera runtime (runtime specification, section 4).
 *
 * Declarations only, in the specification's order and under its names. Every function reports a tessStatus_t; what a
 * call gives back goes through its out pointers.
 */
#ifndef TESSERA_H
#define TESSERA_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 4.1 Initialization and context */

typedef struct tessContext* tessContext_t;
typedef struct tessMesh* tessMesh_t;

typedef enum {
  TESS_OK = 0,
  TESS_ERR_INVALID_VALUE,
  TESS_ERR_OUT_OF_MEMORY,
  TESS_ERR_NOT_INITIALIZED,
  TESS_ERR_LAUNCH_FAILED,
  TESS_ERR_ARCH_MISMATCH,
  TESS_ERR_UNSUPPORTED,
  TESS_ERR_COLLECTIVE_MISMATCH,
  TESS_ERR_DETERMINISM_VIOLATION,
  TESS_ERR_TIMEOUT,
  TESS_ERR_ABI_VERSION_MISMATCH,
  TESS_ERR_CACHE_CORRUPT
} tessStatus_t;

tessStatus_t tessInit(tessContext_t* ctx);
tessStatus_t tessShutdown(tessContext_t ctx);
tessStatus_t tessGetVersion(int* major, int* minor, int* patch);

/* 4.2 Mesh and devices */

typedef struct {
  int tp, pp, dp, ep;
} tessMeshAxes;

tessStatus_t tessMeshCreate(tessContext_t ctx, const int* deviceIds, int nDevices, tessMeshAxes axes,
                            tessMesh_t* outMesh);
tessStatus_t tessMeshDestroy(tessMesh_t mesh);

/* 4.3 Streams and events */

typedef struct tessStream* tessStream_t;
typedef struct tessEvent* tessEvent_t;

tessStatus_t tessStreamCreate(tessMesh_t mesh, int priority, tessStream_t* outStream);
tessStatus_t tessStreamDestroy(tessStream_t stream);
tessStatus_t tessEventCreate(tessEvent_t* outEvent);
tessStatus_t tessEventDestroy(tessEvent_t event);
tessStatus_t tessEventRecord(tessEvent_t event, tessStream_t stream);
tessStatus_t tessStreamWaitEvent(tessStream_t stream, tessEvent_t event);
tessStatus_t tessStreamSynchronize(tessStream_t stream);

/* 4.4 Memory */

typedef enum { TESS_MEM_GLOBAL, TESS_MEM_PINNED_HOST } tessMemKind;

tessStatus_t tessMalloc(tessMesh_t mesh, size_t bytes, void** devPtr);
tessStatus_t tessFree(tessMesh_t mesh, void* devPtr);
tessStatus_t tessHostAlloc(size_t bytes, void** hostPtr, tessMemKind kind);
tessStatus_t tessHostFree(void* hostPtr);

typedef enum { TESS_COPY_H2D, TESS_COPY_D2H, TESS_COPY_D2D } tessCopyKind;

tessStatus_t tessMemcpyAsync(void* dst, const void* src, size_t bytes, tessCopyKind kind, tessStream_t stream);

/* 4.5 Modules and kernels */

typedef struct tessModule* tessModule_t;
typedef struct tessKernel* tessKernel_t;

tessStatus_t tessModuleLoad(tessContext_t ctx, const void* image, size_t size, tessModule_t* outModule);
tessStatus_t tessModuleUnload(tessModule_t module);
tessStatus_t tessKernelGet(tessModule_t module, const char* name, tessKernel_t* out);

/* Launch flags (section 6), a bit field */
#define TESS_LAUNCH_DEFAULT 0u
#define TESS_LAUNCH_DETERMINISTIC (1u << 0) /* determinism, whatever the numerics policy says */
#define TESS_LAUNCH_CAPTURE (1u << 1)       /* belongs to a graph of the stream, to be replayed */
#define TESS_LAUNCH_PERSISTENT (1u << 2)    /* a long-lived, cooperative kernel */
#define TESS_LAUNCH_LOW_LATENCY (1u << 3)   /* launch latency before throughput */

typedef struct {
  int grid[3];       /* blocks */
  int block[3];      /* threads; the compiler chooses for a zero */
  size_t shmemBytes; /* a hint for dynamic shared memory */
  unsigned flags;    /* TESS_LAUNCH_... */
} tessLaunchConfig;

tessStatus_t tessLaunch(tessKernel_t kernel, tessMesh_t mesh, tessLaunchConfig cfg, const void* argBuffer,
                        size_t argSize, tessStream_t stream);

/* 4.6 Collectives; dtype is an id of Appendix B */

typedef enum { TESS_COLL_SUM, TESS_COLL_MAX, TESS_COLL_MIN } tessCollOp;

tessStatus_t tessAllReduce(tessMesh_t mesh, void* buffer, size_t count, int dtype, tessCollOp op, const char* axis,
                           tessStream_t stream);
tessStatus_t tessReduceScatter(tessMesh_t mesh, void* inout, size_t count, int dtype, tessCollOp op, const char* axis,
                               tessStream_t stream);
tessStatus_t tessAllGather(tessMesh_t mesh, void* inout, size_t count, int dtype, const char* axis,
                           tessStream_t stream);
tessStatus_t tessBroadcast(tessMesh_t mesh, void* buffer, size_t count, int dtype, int root, tessStream_t stream);

/* 4.7 Numerics and determinism */

typedef struct {
  int stableReductions; /* 1: pairwise or Kahan */
  int deterministic;    /* 1: a fixed order of collectives and reductions */
  int rngStateless;     /* 1: random numbers without state */
  int allowFastMath;    /* 0: strict; 1: opt-in */
} tessNumericsPolicy;

tessStatus_t tessSetNumericsPolicy(tessContext_t ctx, const tessNumericsPolicy* policy);
tessStatus_t tessGetNumericsPolicy(tessContext_t ctx, tessNumericsPolicy* policy);

/* 4.8 Profiling */

typedef struct tessProfiler* tessProfiler_t;

tessStatus_t tessProfilerStart(tessContext_t ctx, tessProfiler_t* outProfiler);
tessStatus_t tessProfilerStop(tessProfiler_t profiler, const char* outJsonPath);

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_H */
