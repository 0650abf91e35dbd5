/* A library that does little, but as it should: what it was given comes back through what it gives. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int tessStatus_t;
typedef struct { int tp, pp, dp, ep; } tessMeshAxes;
typedef struct { int grid[3]; int block[3]; size_t shmemBytes; unsigned flags; } tessLaunchConfig;
typedef struct { int stableReductions, deterministic, rngStateless, allowFastMath; } tessNumericsPolicy;

enum { OK = 0, INVALID_VALUE = 1 };

static char error[2048];
static tessNumericsPolicy current = {1, 1, 1, 0};
static int contexts, created;

static tessStatus_t refuse(const char* text) {
  snprintf(error, sizeof error, "%s", text);
  return INVALID_VALUE;
}

static tessStatus_t give(const char* text, char* out, size_t capacity, size_t* needed) {
  *needed = strlen(text) + 1;
  if (*needed <= capacity) memcpy(out, text, *needed);
  return OK;
}

tessStatus_t tessInit(void** context) {
  if (!context) return refuse("tessInit: ctx is NULL");
  *context = malloc(1);
  contexts++;
  created++;
  return OK;
}

tessStatus_t tessShutdown(void* context) {
  if (!context) return refuse("tessShutdown: ctx is NULL");
  free(context);
  contexts--;
  return OK;
}

/* The contexts that live, those ever made, and a constant. */
tessStatus_t tessGetVersion(int* major, int* minor, int* patch) {
  *major = contexts;
  *minor = created;
  *patch = 42;
  return OK;
}

/* What it was given, in the text of the error. */
tessStatus_t tessMeshCreate(void* context, const int* ids, int count, tessMeshAxes axes, void** mesh) {
  int length = snprintf(error, sizeof error, "context %d, ids", context != NULL);
  for (int i = 0; ids && i < count && i < 100; i++) length += snprintf(error + length, 16, " %d", ids[i]);
  snprintf(error + length, sizeof error - length, "%s, count %d, axes %d %d %d %d, mesh %d", ids ? "" : " NULL", count,
           axes.tp, axes.pp, axes.dp, axes.ep, mesh != NULL);
  return INVALID_VALUE;
}

tessStatus_t tessLaunch(void* kernel, void* mesh, tessLaunchConfig cfg, const void* buffer, size_t size, void* stream) {
  const unsigned char* bytes = buffer;
  snprintf(error, sizeof error, "grid %d %d %d, block %d %d %d, %zu bytes shared, flags %x, %zu bytes from %s %02x",
           cfg.grid[0], cfg.grid[1], cfg.grid[2], cfg.block[0], cfg.block[1], cfg.block[2], cfg.shmemBytes, cfg.flags,
           size, buffer ? "data" : "NULL", size && buffer ? bytes[size - 1] : 0);
  (void)kernel, (void)mesh, (void)stream;
  return INVALID_VALUE;
}

tessStatus_t tessKernelGet(void* module, const char* name, void** kernel) {
  snprintf(error, sizeof error, "name %s", name ? name : "NULL");
  (void)module, (void)kernel;
  return INVALID_VALUE;
}

tessStatus_t tessHostAlloc(size_t bytes, void** pointer, int kind) {
  if (kind != 1) return refuse("tessHostAlloc: kind");
  *pointer = malloc(bytes);
  return OK;
}

tessStatus_t tessHostFree(void* pointer) {
  free(pointer);
  return OK;
}

tessStatus_t tessMemcpyAsync(void* dst, const void* src, size_t bytes, int kind, void* stream) {
  memcpy(dst, src, bytes);
  (void)kind, (void)stream;
  return OK;
}

tessStatus_t tessSetNumericsPolicy(void* context, const tessNumericsPolicy* policy) {
  if (!policy) return refuse("tessSetNumericsPolicy: policy is NULL");
  current = *policy;
  (void)context;
  return OK;
}

tessStatus_t tessGetNumericsPolicy(void* context, tessNumericsPolicy* policy) {
  if (!policy) return refuse("tessGetNumericsPolicy: policy is NULL");
  *policy = current;
  (void)context;
  return OK;
}

/* Extensions */

tessStatus_t tessxHello(char* out, size_t capacity, size_t* needed) {
  return give("{\"implementation\": {\"version\": \"7.1\"}, \"capabilities\": {\"zero-sizes\": \"enforced\"}}", out,
              capacity, needed);
}

tessStatus_t tessxDevices(char* out, size_t capacity, size_t* needed) {
  return give("{\"devices\": [{\"id\": 0, \"target\": \"sm_90\", \"memory_bytes\": 1024}]}", out, capacity, needed);
}

tessStatus_t tessxLastError(char* out, size_t capacity, size_t* needed) { return give(error, out, capacity, needed); }

tessStatus_t tessxCacheUse(int64_t* hits, int64_t* misses) {
  *hits = INT64_C(1) << 40;
  *misses = 3;
  return OK;
}

/* Nothing that needs reading: `bytes` bytes of 0x5a, also more than any first buffer holds. */
tessStatus_t tessxPeek(void* mesh, int64_t rank, void* pointer, int64_t bytes, void* out, size_t capacity,
                       size_t* needed) {
  *needed = (size_t)bytes;
  if (*needed <= capacity) memset(out, 0x5a, *needed);
  (void)mesh, (void)rank, (void)pointer;
  return OK;
}

tessStatus_t tessxPoke(void* mesh, int64_t rank, void* pointer, const void* data, size_t size) {
  const unsigned char* bytes = data;
  snprintf(error, sizeof error, "rank %d, %zu bytes, the last %02x", (int)rank, size, size ? bytes[size - 1] : 0);
  (void)mesh, (void)pointer;
  return INVALID_VALUE;
}

tessStatus_t tessxSetSchedule(const char* policy, int64_t seed, const char* choices, int untimed) {
  snprintf(error, sizeof error, "%s, seed %s, choices %s, untimed %d", policy, seed == INT64_MIN ? "absent" : "given",
           choices ? choices : "NULL", untimed);
  return INVALID_VALUE;
}

tessStatus_t tessxParameterLayout(const char* signature, char* out, size_t capacity, size_t* needed) {
  (void)signature;
  return give("{\"parameters\": [], \"end_of_last_argument\": 0, \"size\": 0, \"alignment\": 16}", out, capacity, needed);
}
