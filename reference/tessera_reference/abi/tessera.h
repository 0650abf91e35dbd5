/*
 * The C interface of the Tessera runtime (runtime specification, section 4), in the specification's order and under
 * its names; the clauses behind each function are those of the conformance suite's registry.
 *
 * Plain C99, and C++ from C++11 on. Every function but tessGetApi returns a tessStatus_t; what a call gives back goes
 * through its out pointers, which are written only if it returns TESS_OK. What all functions share:
 *
 *   TESS_ERR_NOT_INITIALIZED  a context or a mesh that is NULL or was ended, no context where one has to be live, or a
 *                             library that could not start at all
 *   TESS_ERR_INVALID_VALUE    a handle of another kind, or of a stream, event, module, kernel or profiler that is NULL
 *                             or was ended; an out pointer or another pointer that is NULL and must not be; a number
 *                             outside of its enumeration or range
 *   TESS_ERR_OUT_OF_MEMORY    no memory is left for what the call needs
 *
 * Work that is queued on a stream fails later: its first error is returned once, by the next tessStreamSynchronize
 * (section 7). Functions may be called from several threads at a time.
 */
#ifndef TESSERA_H
#define TESSERA_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface: a runtime of the same major and of no smaller minor serves it (section 16) */
#define TESS_ABI_MAJOR 1
#define TESS_ABI_MINOR 0

/* 4.1 Initialization and context */

typedef struct tessContext* tessContext_t;
typedef struct tessMesh* tessMesh_t;

/*
 * What every call reports (Appendix A), in this order: success; an invalid argument or configuration; an allocation
 * failed; a context or mesh is not initialized; a kernel failed; a module has nothing for this device; the device
 * cannot do this; participants disagree about a collective; the numerics policy was violated; work took longer than it
 * may; a module is of another ABI version; the persistent cache is damaged.
 */
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

/*
 * Makes a context, with what the environment variables of Appendix C say now.
 *   ctx  out: the context, to be ended by tessShutdown
 * TESS_ERR_INVALID_VALUE also for an environment variable with a value that it cannot have.
 * RT-04.1-16, RT-04.1-19
 */
tessStatus_t tessInit(tessContext_t* ctx);

/*
 * Ends a context when all its queued work is done; meshes, streams, memory, modules and profilers of it end with it.
 *   ctx  the context
 * RT-04.1-17, RT-04.1-20
 */
tessStatus_t tessShutdown(tessContext_t ctx);

/*
 * The version of the runtime: the pair of its ABI, and a patch number. Needs no context.
 *   major, minor, patch  out
 * RT-04.1-18, RT-04.1-21
 */
tessStatus_t tessGetVersion(int* major, int* minor, int* patch);

/* 4.2 Mesh and devices */

/* The extents of a mesh along its axes, of which one of 0 is absent; the product is the number of devices. */
typedef struct {
  int tp, pp, dp, ep;
} tessMeshAxes;

/*
 * Makes a mesh of devices, one a rank, numbered row-major over the axes tp, pp, dp, ep.
 *   ctx        its context
 *   deviceIds  the ids of the devices, each once; read during the call
 *   nDevices   how many, at least 1
 *   axes       their arrangement
 *   outMesh    out: the mesh, to be ended by tessMeshDestroy
 * TESS_ERR_INVALID_VALUE also for a device that is not there or named twice, and for axes of another product.
 * RT-04.2-01, RT-04.2-02, RT-04.2-04
 */
tessStatus_t tessMeshCreate(tessContext_t ctx, const int* deviceIds, int nDevices, tessMeshAxes axes,
                            tessMesh_t* outMesh);

/*
 * Ends a mesh when all work is done; its streams and its memory end with it.
 *   mesh  the mesh
 * RT-04.2-03, RT-04.2-05
 */
tessStatus_t tessMeshDestroy(tessMesh_t mesh);

/* 4.3 Streams and events */

typedef struct tessStream* tessStream_t;
typedef struct tessEvent* tessEvent_t;

/*
 * Makes a stream: a queue whose work is done in order, on every rank of a mesh.
 *   mesh       its mesh
 *   priority   a hint; the larger, the more urgent
 *   outStream  out: the stream, to be ended by tessStreamDestroy
 * RT-04.3-03, RT-04.3-11
 */
tessStatus_t tessStreamCreate(tessMesh_t mesh, int priority, tessStream_t* outStream);

/*
 * Ends a stream when its queued work is done; an error that was not yet reported is lost.
 *   stream  the stream
 * RT-04.3-04, RT-04.3-12
 */
tessStatus_t tessStreamDestroy(tessStream_t stream);

/*
 * Makes an event, which nothing has recorded yet. A context must be live.
 *   outEvent  out: the event, to be ended by tessEventDestroy
 * RT-04.3-05, RT-04.3-13
 */
tessStatus_t tessEventCreate(tessEvent_t* outEvent);

/*
 * Ends an event; streams that wait for its recording still do.
 *   event  the event
 * RT-04.3-06, RT-04.3-14
 */
tessStatus_t tessEventDestroy(tessEvent_t event);

/*
 * Records in an event how far the work of a stream has come; this replaces an earlier recording.
 *   event   the event
 *   stream  the stream
 * RT-04.3-07, RT-02-06
 */
tessStatus_t tessEventRecord(tessEvent_t event, tessStream_t stream);

/*
 * Lets the later work of a stream wait until a recording is reached; an event without one is not waited for.
 *   stream  the stream that waits
 *   event   the event, recorded on a stream of the same mesh or of one with common devices
 * TESS_ERR_INVALID_VALUE also for an event of a mesh that shares no device.
 * RT-04.3-08, RT-12-03, RT-12-04
 */
tessStatus_t tessStreamWaitEvent(tessStream_t stream, tessEvent_t event);

/*
 * Returns when all work queued on a stream is done, with the first error among it, which is reported once.
 *   stream  the stream
 * TESS_ERR_LAUNCH_FAILED, TESS_ERR_COLLECTIVE_MISMATCH, TESS_ERR_DETERMINISM_VIOLATION, TESS_ERR_TIMEOUT and any other
 * status of the work.
 * RT-04.3-09, RT-04.3-10, RT-07-04 to RT-07-07
 */
tessStatus_t tessStreamSynchronize(tessStream_t stream);

/* 4.4 Memory */

/* Memory of a device, which tessMalloc makes; memory of the host that copies are fastest with */
typedef enum { TESS_MEM_GLOBAL, TESS_MEM_PINNED_HOST } tessMemKind;

/*
 * Allocates global memory, as much on every rank of a mesh, under one pointer. The host must not follow it.
 *   mesh    the mesh
 *   bytes   how many on each rank; 0 is allowed
 *   devPtr  out: the device pointer, to be freed by tessFree
 * TESS_ERR_OUT_OF_MEMORY where a device has too little left.
 * RT-04.4-03, RT-04.4-14
 */
tessStatus_t tessMalloc(tessMesh_t mesh, size_t bytes, void** devPtr);

/*
 * Frees memory of tessMalloc when all queued work is done.
 *   mesh    the mesh of the memory
 *   devPtr  the pointer that tessMalloc gave
 * RT-04.4-04, RT-04.4-15
 */
tessStatus_t tessFree(tessMesh_t mesh, void* devPtr);

/*
 * Allocates memory of the host, pinned, that the program reads and writes like any other. A context must be live.
 *   bytes    how many
 *   hostPtr  out: the memory, to be freed by tessHostFree
 *   kind     TESS_MEM_PINNED_HOST
 * TESS_ERR_INVALID_VALUE also for TESS_MEM_GLOBAL, which is no memory of the host.
 * RT-04.4-05, RT-04.4-16
 */
tessStatus_t tessHostAlloc(size_t bytes, void** hostPtr, tessMemKind kind);

/*
 * Frees memory of tessHostAlloc when all queued work is done.
 *   hostPtr  the pointer that tessHostAlloc gave
 * RT-04.4-06, RT-04.4-17
 */
tessStatus_t tessHostFree(void* hostPtr);

/* From the host to every rank; from rank 0 to the host; on every rank */
typedef enum { TESS_COPY_H2D, TESS_COPY_D2H, TESS_COPY_D2D } tessCopyKind;

/*
 * Queues a copy. Memory of the host, whether of tessHostAlloc or not, is read or written when the copy runs: until the
 * stream is synchronized the program leaves it alone.
 *   dst, src  where to and where from: device pointers, or addresses of the host as the kind says
 *   bytes     how many; of 0 nothing is copied, and dst and src may be anything
 *   kind      the direction
 *   stream    the stream
 * TESS_ERR_INVALID_VALUE also for memory that was not allocated, was freed, is too short or is on the wrong side.
 * RT-04.4-10, RT-04.4-11, RT-04.4-18 to RT-04.4-20
 */
tessStatus_t tessMemcpyAsync(void* dst, const void* src, size_t bytes, tessCopyKind kind, tessStream_t stream);

/* 4.5 Modules and kernels */

typedef struct tessModule* tessModule_t;
typedef struct tessKernel* tessKernel_t;

/*
 * Loads a module.
 *   ctx        its context
 *   image      a fatbin, or an IR-pack without binaries; read during the call
 *   size       its size in bytes
 *   outModule  out: the module, to be ended by tessModuleUnload
 * TESS_ERR_INVALID_VALUE for what is no image, TESS_ERR_ABI_VERSION_MISMATCH for one of another ABI version,
 * TESS_ERR_ARCH_MISMATCH for one without a target for a device of the machine, TESS_ERR_DETERMINISM_VIOLATION for one
 * that the context's policy forbids.
 * RT-04.5-03, RT-04.5-04, RT-04.5-14, RT-16-02, RT-16-03
 */
tessStatus_t tessModuleLoad(tessContext_t ctx, const void* image, size_t size, tessModule_t* outModule);

/*
 * Ends a module, and its kernels, when all queued work of its context is done.
 *   module  the module
 * RT-04.5-05, RT-04.5-15
 */
tessStatus_t tessModuleUnload(tessModule_t module);

/*
 * Finds a kernel of a module by its public name.
 *   module  the module
 *   name    a C identifier, NUL-terminated
 *   out     out: the kernel, which lives as long as its module
 * TESS_ERR_INVALID_VALUE also for a name that the module does not have.
 * RT-04.5-06, RT-04.5-16, RT-10.3-01
 */
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

/*
 * Queues a launch on every rank of a mesh, and returns at once; what goes wrong while it runs is reported by
 * tessStreamSynchronize.
 *   kernel     the kernel
 *   mesh       the mesh
 *   cfg        its configuration
 *   argBuffer  the arguments as section 10.1 lays them out; read during the call
 *   argSize    their size in bytes, a multiple of 8
 *   stream     a stream of the mesh
 * TESS_ERR_INVALID_VALUE also for arguments, a configuration or flags that do not fit the kernel,
 * TESS_ERR_ARCH_MISMATCH for a device that the module has nothing for, TESS_ERR_UNSUPPORTED for one that cannot do it,
 * TESS_ERR_DETERMINISM_VIOLATION for what the context's policy forbids, TESS_ERR_CACHE_CORRUPT for a damaged cache.
 * RT-04.5-13, RT-04.5-17, RT-06-01 to RT-06-14, RT-10.1-01 to RT-10.1-05
 */
tessStatus_t tessLaunch(tessKernel_t kernel, tessMesh_t mesh, tessLaunchConfig cfg, const void* argBuffer,
                        size_t argSize, tessStream_t stream);

/* 4.6 Collectives; dtype is an id of Appendix B */

typedef enum { TESS_COLL_SUM, TESS_COLL_MAX, TESS_COLL_MIN } tessCollOp;

/*
 * Queues an all-reduce: every rank of a group gets the combination of the buffers of all.
 *   mesh    the mesh
 *   buffer  the device pointer of the elements, on each rank
 *   count   how many elements
 *   dtype   their dtype
 *   op      how they are combined
 *   axis    "tp", "pp", "dp" or "ep": a group are the ranks along it
 *   stream  a stream of the mesh
 * TESS_ERR_INVALID_VALUE also for a dtype or an axis that is none, and a buffer that is too short or not aligned,
 * TESS_ERR_UNSUPPORTED for an operator that the dtype does not have,
 * TESS_ERR_DETERMINISM_VIOLATION for what the context's policy forbids. Disagreement of the participants is reported by
 * tessStreamSynchronize: TESS_ERR_COLLECTIVE_MISMATCH.
 * RT-04.6-04, RT-04.6-08 to RT-04.6-10, RT-13-01
 */
tessStatus_t tessAllReduce(tessMesh_t mesh, void* buffer, size_t count, int dtype, tessCollOp op, const char* axis,
                           tessStream_t stream);

/*
 * Queues a reduce-scatter: of the combination of all buffers, each rank of a group gets its share.
 *   inout  the device pointer of all elements, on each rank; the r-th of n ranks gets the elements from r * count / n
 *          to before (r + 1) * count / n in their place, what is left elsewhere is not specified
 *   count  how many elements there are in all, a multiple of the number of ranks
 * The rest, and the statuses, as for tessAllReduce.
 * RT-04.6-05, RT-04.6-11
 */
tessStatus_t tessReduceScatter(tessMesh_t mesh, void* inout, size_t count, int dtype, tessCollOp op, const char* axis,
                               tessStream_t stream);

/*
 * Queues an all-gather: every rank of a group gets the shares of all, in order of rank.
 *   inout  the device pointer of all elements, on each rank, where the r-th of n ranks brings those from
 *          r * count / n to before (r + 1) * count / n in their place
 *   count  how many elements there are in all, a multiple of the number of ranks
 * The rest, and the statuses, as for tessAllReduce.
 * RT-04.6-06, RT-04.6-12
 */
tessStatus_t tessAllGather(tessMesh_t mesh, void* inout, size_t count, int dtype, const char* axis,
                           tessStream_t stream);

/*
 * Queues a broadcast: every rank of the mesh gets the buffer of one.
 *   root  the rank that has it
 * The rest, and the statuses, as for tessAllReduce; TESS_ERR_INVALID_VALUE also for a root that is no rank.
 * RT-04.6-07, RT-04.6-13
 */
tessStatus_t tessBroadcast(tessMesh_t mesh, void* buffer, size_t count, int dtype, int root, tessStream_t stream);

/* 4.7 Numerics and determinism */

typedef struct {
  int stableReductions; /* 1: pairwise or Kahan */
  int deterministic;    /* 1: a fixed order of collectives and reductions */
  int rngStateless;     /* 1: random numbers without state */
  int allowFastMath;    /* 0: strict; 1: opt-in */
} tessNumericsPolicy;

/*
 * Governs the work that is queued from now on.
 *   ctx     the context
 *   policy  four switches, each 0 or 1; read during the call
 * RT-04.7-01, RT-04.7-07, RT-04.7-10
 */
tessStatus_t tessSetNumericsPolicy(tessContext_t ctx, const tessNumericsPolicy* policy);

/*
 * The policy in force: the one last set, or what holds without one.
 *   ctx     the context
 *   policy  out
 * RT-04.7-08, RT-04.7-09
 */
tessStatus_t tessGetNumericsPolicy(tessContext_t ctx, tessNumericsPolicy* policy);

/* 4.8 Profiling */

typedef struct tessProfiler* tessProfiler_t;

/*
 * Records from now on what the work of a context does.
 *   ctx          the context
 *   outProfiler  out: the profiler, to be ended by tessProfilerStop
 * RT-04.8-02, RT-04.8-05
 */
tessStatus_t tessProfilerStart(tessContext_t ctx, tessProfiler_t* outProfiler);

/*
 * Waits for the queued work of the context, writes a trace in the Chrome format and ends the profiler.
 *   profiler     the profiler
 *   outJsonPath  the file, NUL-terminated
 * TESS_ERR_INVALID_VALUE also for a file that cannot be written; the profiler then lives on.
 * RT-04.8-03, RT-04.8-04, RT-17-01, RT-17-02
 */
tessStatus_t tessProfilerStop(tessProfiler_t profiler, const char* outJsonPath);

/* The functions above as a table; extensions are in tessera_ext.h */

/*
 * Later versions add entries at the end only: an entry beyond struct_size does not exist, and one that is NULL is not
 * supported.
 */
typedef struct tessApi {
  size_t struct_size; /* of the table, in bytes */
  int major, minor;   /* TESS_ABI_MAJOR and TESS_ABI_MINOR of the library */
  tessStatus_t (*tessInit)(tessContext_t* ctx);
  tessStatus_t (*tessShutdown)(tessContext_t ctx);
  tessStatus_t (*tessGetVersion)(int* major, int* minor, int* patch);
  tessStatus_t (*tessMeshCreate)(tessContext_t ctx, const int* deviceIds, int nDevices, tessMeshAxes axes,
                                 tessMesh_t* outMesh);
  tessStatus_t (*tessMeshDestroy)(tessMesh_t mesh);
  tessStatus_t (*tessStreamCreate)(tessMesh_t mesh, int priority, tessStream_t* outStream);
  tessStatus_t (*tessStreamDestroy)(tessStream_t stream);
  tessStatus_t (*tessEventCreate)(tessEvent_t* outEvent);
  tessStatus_t (*tessEventDestroy)(tessEvent_t event);
  tessStatus_t (*tessEventRecord)(tessEvent_t event, tessStream_t stream);
  tessStatus_t (*tessStreamWaitEvent)(tessStream_t stream, tessEvent_t event);
  tessStatus_t (*tessStreamSynchronize)(tessStream_t stream);
  tessStatus_t (*tessMalloc)(tessMesh_t mesh, size_t bytes, void** devPtr);
  tessStatus_t (*tessFree)(tessMesh_t mesh, void* devPtr);
  tessStatus_t (*tessHostAlloc)(size_t bytes, void** hostPtr, tessMemKind kind);
  tessStatus_t (*tessHostFree)(void* hostPtr);
  tessStatus_t (*tessMemcpyAsync)(void* dst, const void* src, size_t bytes, tessCopyKind kind, tessStream_t stream);
  tessStatus_t (*tessModuleLoad)(tessContext_t ctx, const void* image, size_t size, tessModule_t* outModule);
  tessStatus_t (*tessModuleUnload)(tessModule_t module);
  tessStatus_t (*tessKernelGet)(tessModule_t module, const char* name, tessKernel_t* out);
  tessStatus_t (*tessLaunch)(tessKernel_t kernel, tessMesh_t mesh, tessLaunchConfig cfg, const void* argBuffer,
                             size_t argSize, tessStream_t stream);
  tessStatus_t (*tessAllReduce)(tessMesh_t mesh, void* buffer, size_t count, int dtype, tessCollOp op,
                                const char* axis, tessStream_t stream);
  tessStatus_t (*tessReduceScatter)(tessMesh_t mesh, void* inout, size_t count, int dtype, tessCollOp op,
                                    const char* axis, tessStream_t stream);
  tessStatus_t (*tessAllGather)(tessMesh_t mesh, void* inout, size_t count, int dtype, const char* axis,
                                tessStream_t stream);
  tessStatus_t (*tessBroadcast)(tessMesh_t mesh, void* buffer, size_t count, int dtype, int root,
                                tessStream_t stream);
  tessStatus_t (*tessSetNumericsPolicy)(tessContext_t ctx, const tessNumericsPolicy* policy);
  tessStatus_t (*tessGetNumericsPolicy)(tessContext_t ctx, tessNumericsPolicy* policy);
  tessStatus_t (*tessProfilerStart)(tessContext_t ctx, tessProfiler_t* outProfiler);
  tessStatus_t (*tessProfilerStop)(tessProfiler_t profiler, const char* outJsonPath);
} tessApi;

/*
 * The table of a library, which lives as long as the library; NULL from one that cannot serve this interface. A library
 * need not export this function: who uses a library that does not have it looks the functions up by name.
 */
const tessApi* tessGetApi(void);

/* What the structures and enumerations look like in memory: pointers have 8 bytes (section 10.1) */

#if defined(__cplusplus) && __cplusplus >= 201103L
#define TESS_ASSERT static_assert
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define TESS_ASSERT _Static_assert
#endif

#ifdef TESS_ASSERT
TESS_ASSERT(sizeof(void*) == 8, "a pointer has 8 bytes");
TESS_ASSERT(sizeof(int) == 4, "an int has 4 bytes");
TESS_ASSERT(sizeof(size_t) == 8, "a size_t has 8 bytes");
TESS_ASSERT(sizeof(tessContext_t) == 8, "a handle has 8 bytes");
TESS_ASSERT(sizeof(tessStatus_t) == 4, "a status has 4 bytes");
TESS_ASSERT(sizeof(tessMemKind) == 4, "a kind of memory has 4 bytes");
TESS_ASSERT(sizeof(tessCopyKind) == 4, "a kind of copy has 4 bytes");
TESS_ASSERT(sizeof(tessCollOp) == 4, "an operator has 4 bytes");
TESS_ASSERT(sizeof(tessMeshAxes) == 16, "tessMeshAxes has 16 bytes");
TESS_ASSERT(offsetof(tessMeshAxes, tp) == 0, "tp is at 0");
TESS_ASSERT(offsetof(tessMeshAxes, pp) == 4, "pp is at 4");
TESS_ASSERT(offsetof(tessMeshAxes, dp) == 8, "dp is at 8");
TESS_ASSERT(offsetof(tessMeshAxes, ep) == 12, "ep is at 12");
TESS_ASSERT(sizeof(tessLaunchConfig) == 40, "tessLaunchConfig has 40 bytes");
TESS_ASSERT(offsetof(tessLaunchConfig, grid) == 0, "grid is at 0");
TESS_ASSERT(offsetof(tessLaunchConfig, block) == 12, "block is at 12");
TESS_ASSERT(offsetof(tessLaunchConfig, shmemBytes) == 24, "shmemBytes is at 24");
TESS_ASSERT(offsetof(tessLaunchConfig, flags) == 32, "flags is at 32");
TESS_ASSERT(sizeof(tessNumericsPolicy) == 16, "tessNumericsPolicy has 16 bytes");
TESS_ASSERT(offsetof(tessNumericsPolicy, stableReductions) == 0, "stableReductions is at 0");
TESS_ASSERT(offsetof(tessNumericsPolicy, deterministic) == 4, "deterministic is at 4");
TESS_ASSERT(offsetof(tessNumericsPolicy, rngStateless) == 8, "rngStateless is at 8");
TESS_ASSERT(offsetof(tessNumericsPolicy, allowFastMath) == 12, "allowFastMath is at 12");
TESS_ASSERT(offsetof(tessApi, struct_size) == 0, "struct_size is at 0");
TESS_ASSERT(offsetof(tessApi, tessInit) == 16, "the first function is at 16");
TESS_ASSERT(offsetof(tessApi, tessProfilerStop) == 16 + 28 * 8, "the last function is the 29th");
#undef TESS_ASSERT
#endif

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_H */
