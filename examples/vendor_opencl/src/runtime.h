/* What the files of this library share: objects, and the lock that every call holds. */
#ifndef RUNTIME_H
#define RUNTIME_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#include "tessera.h"
#include "tessera_ext.h"
#pragma GCC visibility pop

#ifndef CHECKS
#define CHECKS 1 /* 0: what the engine can find out itself is left to it */
#endif

enum { MOST_RANKS = 16 };
#define DEVICE_MEMORY_BYTES ((size_t)1 << 28) /* of each device */

typedef enum { CONTEXT = 1, MESH, STREAM, EVENT, DEVICE_MEMORY, HOST_MEMORY, MODULE, KERNEL, PROFILER } Kind;

/* A recording of an event: a marker in the queue of each rank. */
typedef struct {
  int users, ranks;
  int devices[MOST_RANKS];
  cl_event markers[MOST_RANKS];
} Recording;

/* Everything that lives; a handle is the address of its object. */
typedef struct Object {
  struct Object *next, *owner;
  Kind kind;
  tessNumericsPolicy policy;
  int ranks, extents[4], devices[MOST_RANKS];                       /* of a mesh */
  cl_command_queue queues[MOST_RANKS];                              /* of a stream, one a rank */
  cl_mem failures;                                                  /* of a stream: what its kernels report */
  Recording* recording;                                             /* of an event */
  char* address;                                                    /* of memory: for a device, of pages never mapped */
  size_t bytes;
  cl_mem buffers[MOST_RANKS];                                       /* of device memory, one a rank */
  const void* program;                                              /* of a kernel, one of those in kernels.c */
  char* graph_ir;                                                   /* of a module */
} Object;

extern cl_context the_context;
extern cl_device_id the_devices[MOST_RANKS];
extern int device_count;

void enter(void);
tessStatus_t leave(tessStatus_t status);
Object* living(const void* handle, Kind kind);
Object* any_living(Kind kind);
Object* create(Kind kind, Object* owner);
void end(Object* object);
tessStatus_t status_of(cl_int error);
void finish_all(void);
cl_kernel kernel_named(const char* name);
tessStatus_t read_image(const void* image, size_t size, char** graph_ir); /* image.c */

/* The device memory with these bytes in it, and where in it they begin; NULL elsewhere. */
Object* device_memory_at(const void* address, size_t bytes, size_t* offset);
bool is_device_address(const void* address);

#define INVALID TESS_ERR_INVALID_VALUE
#define REQUIRE(condition, status) \
  if (!(condition)) return leave(status)
#define ENTER(name, handle, kind)      \
  enter();                             \
  Object* name = living(handle, kind); \
  REQUIRE(name, (kind) <= MESH ? TESS_ERR_NOT_INITIALIZED : INVALID)
#define CREATE(name, ...)             \
  Object* name = create(__VA_ARGS__); \
  REQUIRE(name, TESS_ERR_OUT_OF_MEMORY)

#endif
