/* Sixteen threads on one runtime, for a sanitizer to watch: each has streams, events, memory, copies, launches and
 * collectives of its own on meshes that all share, and some destroy what others wait for.
 *
 * usage: threads IMAGE, a fatbin with a kernel `digit(int32 v, int32 x[2])`
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tessera.h"
#include "tessera_ext.h"

enum { THREADS = 16, ROUNDS = 6, COUNT = 2 };

static tessContext_t context;
static tessMesh_t mesh;
static tessKernel_t kernel;
static tessStream_t shared[THREADS];

#define REQUIRE(call)                                                                   \
  do {                                                                                  \
    tessStatus_t status = (call);                                                       \
    if (status != TESS_OK) fprintf(stderr, "%s: status %d\n", #call, status), exit(1);  \
  } while (0)

static void work(tessStream_t stream, tessStream_t other) {
  int zeros[COUNT] = {0}, found[COUNT];
  void *memory, *pinned;
  tessEvent_t event;
  REQUIRE(tessMalloc(mesh, sizeof zeros, &memory));
  REQUIRE(tessHostAlloc(sizeof zeros, &pinned, TESS_MEM_PINNED_HOST));
  REQUIRE(tessEventCreate(&event));
  REQUIRE(tessMemcpyAsync(memory, zeros, sizeof zeros, TESS_COPY_H2D, stream));
  struct {
    int v, padding;
    void* x;
  } arguments = {3, 0, memory};
  tessLaunchConfig cfg = {.grid = {1, 1, 1}};
  REQUIRE(tessLaunch(kernel, mesh, cfg, &arguments, sizeof arguments, stream));
  REQUIRE(tessAllReduce(mesh, memory, COUNT, 9, TESS_COLL_SUM, "dp", stream));
  REQUIRE(tessEventRecord(event, stream));
  REQUIRE(tessStreamWaitEvent(other, event));
  REQUIRE(tessMemcpyAsync(pinned, memory, sizeof zeros, TESS_COPY_D2H, other));
  REQUIRE(tessEventDestroy(event));
  REQUIRE(tessStreamSynchronize(other));
  memcpy(found, pinned, sizeof found);
  if (found[0] != 12 || found[1] != 12) fprintf(stderr, "found %d and %d, not 12\n", found[0], found[1]), exit(1);
  REQUIRE(tessFree(mesh, memory));
  REQUIRE(tessHostFree(pinned));
}

static void* run(void* argument) {
  size_t number = (size_t)argument;
  for (int round = 0; round < ROUNDS; round++) {
    tessStream_t stream, other;
    REQUIRE(tessStreamCreate(mesh, (int)number, &stream));
    REQUIRE(tessStreamCreate(mesh, 0, &other));
    work(stream, other);
    tessStreamSynchronize(shared[(number + 1) % THREADS]); /* which its owner may have destroyed: any status will do */
    if (round == ROUNDS / 2) REQUIRE(tessStreamDestroy(shared[number]));
    tessNumericsPolicy policy = {.deterministic = 1, .stableReductions = round % 2};
    REQUIRE(tessSetNumericsPolicy(context, &policy));
    REQUIRE(tessStreamDestroy(stream));
    REQUIRE(tessStreamDestroy(other));
    tessMesh_t own;
    int device = (int)number % 8;
    REQUIRE(tessMeshCreate(context, &device, 1, (tessMeshAxes){.dp = 1}, &own));
    REQUIRE(tessMeshDestroy(own));
  }
  return NULL;
}

static void* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  void* image = malloc(1 << 20);
  if (!file || !image) exit(2);
  *size = fread(image, 1, 1 << 20, file);
  fclose(file);
  return image;
}

int main(int count, char** words) {
  pthread_t threads[THREADS];
  tessModule_t module;
  size_t size;
  void* image = count == 2 ? read_file(words[1], &size) : NULL;
  if (!image) return 2;
  REQUIRE(tessInit(&context));
  REQUIRE(tessMeshCreate(context, (const int[]){0, 1, 2, 3}, 4, (tessMeshAxes){.dp = 4}, &mesh));
  REQUIRE(tessModuleLoad(context, image, size, &module));
  REQUIRE(tessKernelGet(module, "digit", &kernel));
  free(image);
  for (size_t i = 0; i < THREADS; i++) REQUIRE(tessStreamCreate(mesh, 0, &shared[i]));
  for (size_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, run, (void*)i);
  for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  REQUIRE(tessxReset());
  puts("done");
  return 0;
}
