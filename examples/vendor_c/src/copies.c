/* Asynchronous copies (section 4.4): H2D writes every rank, D2H reads rank 0, D2D copies within each (AMB-RT-05). */
#include "acme.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  int count;
  size_t bytes;
  unsigned char* to[DEVICES];
  const unsigned char* from[DEVICES];
} Copy;

static tessStatus_t run_copy(void* arguments, char* text, size_t text_size) {
  const Copy* copy = arguments;
  size_t bytes = copy->bytes;
  (void)text, (void)text_size;
  if (defect("copy_tail_lost") && bytes > 256) bytes -= bytes % 64;
  if (defect("copy_reads_one_byte_more") && copy->count) (void)*(const volatile unsigned char*)(copy->from[0] + bytes);
  for (int rank = 0; rank < copy->count; rank++) memmove(copy->to[rank], copy->from[rank], bytes);
  if (defect("copy_writes_one_byte_more") && copy->count && bytes > 1000) copy->to[0][bytes] ^= 0xFF;
  return TESS_OK;
}

/* Both sides of each rank's copy; NULL where an address is not one of the side that it should be of. */
static bool sides(Copy* copy, const Mesh* mesh, void* dst, const void* src, tessCopyKind kind) {
  size_t to = 0, from = 0;
  Allocation* target = kind == TESS_COPY_D2H ? NULL : memory_of(mesh, dst, copy->bytes, &to);
  Allocation* source = kind == TESS_COPY_H2D ? NULL : memory_of(mesh, src, copy->bytes, &from);
  if (kind == TESS_COPY_D2H ? is_device_address(dst) : !target) return false;
  if (kind == TESS_COPY_H2D ? is_device_address(src) : !source) return false;
  copy->count = kind == TESS_COPY_D2H ? 1 : mesh->ranks;
  if (kind == TESS_COPY_H2D && defect("h2d_writes_rank_0_alone")) copy->count = 1;
  for (int rank = 0; rank < copy->count; rank++) {
    int read = defect("copies_read_the_next_rank") ? (rank + 1) % mesh->ranks : rank;
    copy->to[rank] = target ? memory_copy(target, mesh, rank) + to : dst;
    copy->from[rank] = source ? memory_copy(source, mesh, read) + from : src;
  }
  return true;
}

static tessStatus_t enqueue(Stream* stream, void* dst, const void* src, size_t bytes, tessCopyKind kind) {
  static const char* const names[] = {"copy h2d", "copy d2h", "copy d2d"};
  Copy* copy = calloc(1, sizeof *copy);
  if (!copy) return refuse(TESS_ERR_OUT_OF_MEMORY, "tessMemcpyAsync: no memory on the host");
  copy->bytes = bytes;
  if (!sides(copy, stream->mesh, dst, src, kind)) {
    free(copy);
    return invalid("tessMemcpyAsync: dst %p or src %p has no %zu bytes on the side that kind %d names", dst, src, bytes,
                   (int)kind);
  }
  if (defect("copies_overtake_work")) { /* done by the call, whatever is queued before it */
    run_copy(copy, NULL, 0);
    copy->count = 0;
  }
  return stream_submit(stream, names[kind], "copy", run_copy, copy, NULL, bytes, 0);
}

tessStatus_t tessMemcpyAsync(void* dst, const void* src, size_t bytes, tessCopyKind kind, tessStream_t stream) {
  Stream* on;
  runtime_lock();
  tessStatus_t status = stream_of(stream, "tessMemcpyAsync", &on);
  if (!status && ((int)kind < 0 || kind > TESS_COPY_D2D)) {
    status = invalid("tessMemcpyAsync: kind is %d", (int)kind);
    if (defect("unknown_copy_kind_is_d2d")) status = TESS_OK, kind = TESS_COPY_D2D;
  }
  if (!status && bytes == 0 && defect("empty_copy_refused")) status = invalid("tessMemcpyAsync: bytes is 0");
  else if (!status && bytes) {
    if (!dst || !src) status = invalid("tessMemcpyAsync: %s is NULL", dst ? "src" : "dst");
    else status = enqueue(on, dst, src, bytes, kind);
  }
  runtime_unlock();
  return status;
}
