/* Device memory (section 4.4): an address stands for a copy on each rank of the mesh (AMB-RT-05).
 *
 * Addresses come from a range that is reserved and never mapped, so that no host pointer is one of them and the host
 * cannot reach through them. The lowest gap that is wide enough is taken.
 */
#include "acme.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 256 };
#define RESERVED ((size_t)1 << 38)

static Allocation* allocations; /* by address */
static size_t taken[DEVICES];   /* bytes of each device */
static uintptr_t range;

static bool reserve(void) {
  if (range) return true;
  void* found = mmap(NULL, RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return false;
  range = (uintptr_t)found;
  return true;
}

bool is_device_address(const void* address) {
  return range && (uintptr_t)address >= range && (uintptr_t)address - range < RESERVED;
}

/* A mesh may use what was allocated on another one of its context, where each of its devices has a copy. */
static bool is_on_every_device(const Allocation* allocation, const Mesh* mesh) {
  return mesh->context == allocation->mesh->context && (mesh->device_mask & ~allocation->device_mask) == 0;
}

Allocation* memory_of(const Mesh* mesh, const void* address, size_t bytes, size_t* offset) {
  for (Allocation* each = allocations; each; each = each->next) {
    uintptr_t place = (uintptr_t)address - each->address;
    if ((uintptr_t)address < each->address || place >= (each->bytes ? each->bytes : 1)) continue;
    *offset = place;
    return bytes <= each->bytes - place && is_on_every_device(each, mesh) ? each : NULL;
  }
  return NULL;
}

unsigned char* memory_copy(const Allocation* allocation, const Mesh* mesh, int rank) {
  for (int copy = 0; copy < allocation->ranks; copy++)
    if (allocation->devices[copy] == mesh->devices[rank]) return allocation->copies[copy];
  return allocation->copies[0]; /* not of any mesh that `memory_of` found it for */
}

static bool has_room(const Mesh* mesh, size_t bytes) {
  if (bytes > DEVICE_MEMORY) return false;
  for (int rank = 0; rank < mesh->ranks; rank++)
    if (taken[mesh->devices[rank]] > DEVICE_MEMORY - bytes) return false;
  return true;
}

static void free_copies(Allocation* allocation) {
  for (int rank = 0; rank < allocation->ranks; rank++) free(allocation->copies[rank]);
  free(allocation);
}

static Allocation* with_copies(Mesh* mesh, size_t bytes) {
  Allocation* made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->bytes = bytes;
  made->mesh = mesh;
  made->ranks = mesh->ranks;
  made->device_mask = mesh->device_mask;
  memcpy(made->devices, mesh->devices, sizeof made->devices);
  for (int rank = 0; rank < mesh->ranks; rank++) {
    bool shared = rank > 0 && defect("ranks_share_memory");
    made->copies[rank] = shared ? made->copies[0] : calloc(1, bytes ? bytes : 1);
    if (!made->copies[rank]) {
      free_copies(made);
      return NULL;
    }
  }
  if (defect("ranks_share_memory")) made->ranks = 1;
  return made;
}

/* Links an allocation in at the lowest address with room for it. */
static bool place(Allocation* made) {
  size_t alignment = defect("memory_misaligned") ? 4 : ALIGNMENT;
  size_t room = (made->bytes + alignment) / alignment * alignment; /* at least a byte apart from the next */
  if (defect("allocations_overlap")) room = (made->bytes + 1) / 2 / alignment * alignment + alignment;
  uintptr_t address = range + ALIGNMENT + (alignment == 4 ? 4 : 0);
  Allocation** link = &allocations;
  for (; *link && (*link)->address - address < room; link = &(*link)->next) {
    size_t width = ((*link)->bytes + alignment) / alignment * alignment;
    if (defect("allocations_overlap")) width = ((*link)->bytes + 1) / 2 / alignment * alignment + alignment;
    address = (*link)->address + width;
  }
  if (address + room > range + RESERVED) return false;
  made->address = address;
  made->next = *link;
  *link = made;
  return true;
}

static void unlink_allocation(Allocation* allocation) {
  Allocation** link = &allocations;
  while (*link != allocation) link = &(*link)->next;
  *link = allocation->next;
}

static void account(const Allocation* allocation, bool more) {
  for (int rank = 0; rank < allocation->ranks; rank++) {
    if (more) taken[allocation->devices[rank]] += allocation->bytes;
    else taken[allocation->devices[rank]] -= allocation->bytes;
  }
}

tessStatus_t memory_allocate(Mesh* mesh, size_t bytes, void** out) {
  if (!has_room(mesh, bytes)) {
    tessStatus_t status = defect("no_memory_is_invalid") ? TESS_ERR_INVALID_VALUE : TESS_ERR_OUT_OF_MEMORY;
    return refuse(status, "tessMalloc: bytes is %zu, more than a device of the mesh has left", bytes);
  }
  Allocation* made = reserve() ? with_copies(mesh, bytes) : NULL;
  if (!made) return refuse(TESS_ERR_OUT_OF_MEMORY, "tessMalloc: no memory on the host for %zu bytes", bytes);
  if (!place(made)) {
    free_copies(made);
    return refuse(TESS_ERR_OUT_OF_MEMORY, "tessMalloc: no addresses are left");
  }
  account(made, true);
  *out = (void*)made->address;
  return TESS_OK;
}

tessStatus_t tessMalloc(tessMesh_t mesh, size_t bytes, void** devPtr) {
  Mesh* found;
  runtime_lock();
  tessStatus_t status = mesh_of(mesh, "tessMalloc", &found);
  if (!status && !devPtr) status = invalid("tessMalloc: devPtr is NULL");
  if (!status) status = memory_allocate(found, bytes, devPtr);
  runtime_unlock();
  return status;
}

/* Frees an allocation once the work that may use it is done; nothing that is queued meanwhile finds it. */
static void release(Allocation* allocation, bool waits) {
  unlink_allocation(allocation);
  if (waits) streams_drain(allocation->mesh->context, NULL);
  if (!defect("freed_memory_stays_taken")) account(allocation, false);
  free_copies(allocation);
}

tessStatus_t tessFree(tessMesh_t mesh, void* devPtr) {
  Mesh* found;
  size_t offset = 1;
  runtime_lock();
  tessStatus_t status = mesh_of(mesh, "tessFree", &found);
  Allocation* allocation = status ? NULL : memory_of(found, devPtr, 0, &offset);
  if (!status && (!allocation || offset || allocation->mesh != found))
    status = invalid("tessFree: devPtr is %p, which is no allocation of this mesh", devPtr);
  if (!status && defect("free_touches_neighbours") && allocation->next && allocation->next->mesh == found)
    memset(allocation->next->copies[0], 0xDD, allocation->next->bytes);
  if (!status && defect("free_does_not_wait"))
    memset(allocation->copies[0], 0xDD, allocation->bytes);  // as its next owner would
  else if (!status)
    release(allocation, true);
  runtime_unlock();
  return status;
}

void memory_free_of(const Mesh* mesh) {
  for (Allocation *each = allocations, *next; each; each = next) {
    next = each->next;
    if (each->mesh == mesh) release(each, false);
  }
}

/* The copy of one rank, once all work of the mesh is done (feature rank-memory) */

static tessStatus_t copy_of_rank(tessMesh_t mesh, int64_t rank, void* devPtr, size_t bytes, const char* function,
                                 unsigned char** out) {
  Mesh* found;
  size_t offset;
  tessStatus_t status = mesh_of(mesh, function, &found);
  if (status) return status;
  streams_drain(NULL, found);
  status = mesh_of(mesh, function, &found);
  if (status) return status;
  if (rank < 0 || rank >= found->ranks) return invalid("%s: rank is %lld", function, (long long)rank);
  Allocation* allocation = memory_of(found, devPtr, bytes, &offset);
  if (!allocation) return invalid("%s: devPtr is %p, where there are no %zu bytes", function, devPtr, bytes);
  *out = memory_copy(allocation, found, (int)rank) + offset;
  return TESS_OK;
}

tessStatus_t tessxPeek(tessMesh_t mesh, int64_t rank, void* devPtr, int64_t bytes, void* out, size_t capacity,
                       size_t* needed) {
  unsigned char* copy = NULL;
  if (bytes < 0 || !needed) return invalid("tessxPeek: bytes is %lld, or needed is NULL", (long long)bytes);
  runtime_lock();
  tessStatus_t status = copy_of_rank(mesh, rank, devPtr, (size_t)bytes, "tessxPeek", &copy);
  if (!status) {
    *needed = (size_t)bytes;
    if (*needed <= capacity && out && bytes) memcpy(out, copy, (size_t)bytes);
  }
  runtime_unlock();
  return status;
}

tessStatus_t tessxPoke(tessMesh_t mesh, int64_t rank, void* devPtr, const void* data, size_t dataSize) {
  unsigned char* copy = NULL;
  runtime_lock();
  tessStatus_t status = copy_of_rank(mesh, rank, devPtr, dataSize, "tessxPoke", &copy);
  if (!status && dataSize) memcpy(copy, data, dataSize);
  runtime_unlock();
  return status;
}
