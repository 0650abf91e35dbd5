/* Pinned host memory (section 4.4): a list, so that only what was given out is freed. */
#include "acme.h"

#include <stdlib.h>

typedef struct HostMemory {
  struct HostMemory* next;
  void* pointer;
} HostMemory;

static HostMemory* given_out;

void host_memory_free_all(void) {
  while (given_out) {
    HostMemory* each = given_out;
    given_out = each->next;
    free(each->pointer);
    free(each);
  }
}

static tessStatus_t allocate(size_t bytes, void** hostPtr) {
  HostMemory* entry = malloc(sizeof *entry);
  void* memory = entry ? calloc(1, bytes ? bytes : 1) : NULL;
  if (!memory) {
    free(entry);
    return refuse(TESS_ERR_OUT_OF_MEMORY, "tessHostAlloc: no memory for %zu bytes", bytes);
  }
  *entry = (HostMemory){.next = given_out, .pointer = memory};
  given_out = entry;
  *hostPtr = memory;
  return TESS_OK;
}

tessStatus_t tessHostAlloc(size_t bytes, void** hostPtr, tessMemKind kind) {
  if (!hostPtr) return invalid("tessHostAlloc: hostPtr is NULL");
  runtime_lock();
  tessStatus_t status = TESS_OK;
  if (!runtime_is_initialized()) status = refuse(TESS_ERR_NOT_INITIALIZED, "tessHostAlloc: tessInit comes first");
  else if (kind != TESS_MEM_PINNED_HOST && !(kind == TESS_MEM_GLOBAL && defect("global_memory_of_the_host")))
    status = invalid("tessHostAlloc: kind is %d; TESS_MEM_PINNED_HOST is memory of the host", (int)kind);
  if (!status && given_out && defect("host_memory_given_twice")) *hostPtr = given_out->pointer;
  else if (!status) status = allocate(bytes, hostPtr);
  runtime_unlock();
  return status;
}

tessStatus_t tessHostFree(void* hostPtr) {
  runtime_lock();
  HostMemory** link = &given_out;
  while (*link && (*link)->pointer != hostPtr) link = &(*link)->next;
  HostMemory* found = *link;
  if (found) {
    streams_drain(NULL, NULL); /* a copy may still use it */
    for (link = &given_out; *link && *link != found;) link = &(*link)->next;
    found = *link;
  }
  if (found) {
    *link = found->next;
    free(found->pointer);
    free(found);
  }
  runtime_unlock();
  return found ? TESS_OK : invalid("tessHostFree: hostPtr is %p, which tessHostAlloc did not give", hostPtr);
}
