/* Memory of a run: every block is in one list, and all are freed together. */
#include "runtime.h"

static void *block(Machine *m, size_t bytes) {
    Block *found = calloc(1, sizeof(Block) + bytes);
    if (found == NULL) {
        fprintf(stderr, "error: no memory for %zu bytes\n", bytes);
        exit(70);
    }
    found->before = &m->blocks;
    found->after = m->blocks.after;
    if (found->after != NULL) found->after->before = found;
    m->blocks.after = found;
    return found + 1;
}

void *wsp_allocate(Machine *m, size_t count, size_t size) {
    if (size != 0 && count > (SIZE_MAX / 2) / size) {
        fprintf(stderr, "error: no memory for %zu times %zu bytes\n", count, size);
        exit(70);
    }
    return block(m, count * size);
}

void wsp_release(void *block) {
    if (block == NULL) return;
    Block *header = (Block *)block - 1;
    header->before->after = header->after;
    if (header->after != NULL) header->after->before = header->before;
    free(header);
}

/* A larger place for `used` elements; the old one is freed. */
void *wsp_grow(Machine *m, void *old, size_t used, size_t room, size_t size) {
    void *found = wsp_allocate(m, room, size);
    if (old != NULL) memcpy(found, old, used * size);
    wsp_release(old);
    return found;
}

void wsp_release_all(Machine *m) {
    Block *each = m->blocks.after;
    while (each != NULL) {
        Block *next = each->after;
        free(each);
        each = next;
    }
    m->blocks.after = NULL;
}
