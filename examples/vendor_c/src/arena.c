/* Memory that is freed as a whole: of a module, of a launch. */
#include "acme.h"

#include <stdlib.h>
#include <string.h>

typedef struct Chunk {
  struct Chunk* next;
  size_t used, size;
  unsigned char bytes[];
} Chunk;

struct Arena {
  Chunk* chunks;
};

Arena* arena_create(void) { return calloc(1, sizeof(Arena)); }

void arena_destroy(Arena* arena) {
  if (!arena) return;
  for (Chunk *each = arena->chunks, *next; each; each = next) {
    next = each->next;
    free(each);
  }
  free(arena);
}

void* arena_take(Arena* arena, size_t bytes) {
  if (bytes > SIZE_MAX / 4) return NULL;
  bytes = (bytes + 15) / 16 * 16;
  Chunk* chunk = arena->chunks;
  if (!chunk || chunk->size - chunk->used < bytes) {
    size_t size = bytes > 4000 ? bytes : 4000;
    chunk = calloc(1, sizeof *chunk + size + 16);
    if (!chunk) return NULL;
    chunk->size = size;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
  }
  uintptr_t start = ((uintptr_t)chunk->bytes + 15) / 16 * 16;
  void* taken = (void*)(start + chunk->used);
  chunk->used += bytes;
  return taken;
}

char* arena_text(Arena* arena, const char* text, size_t length) {
  char* copy = arena_take(arena, length + 1);
  if (copy) memcpy(copy, text, length);
  return copy;
}
