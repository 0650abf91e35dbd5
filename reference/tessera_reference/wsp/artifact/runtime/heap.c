/* A binary heap of entries, smallest (time, kind, number) first. */
#include "runtime.h"

static bool is_before(const Entry *a, const Entry *b) {
    if (a->time != b->time) return a->time < b->time;
    if (a->kind != b->kind) return a->kind < b->kind;
    return a->number < b->number;
}

void wsp_push(Machine *m, Heap *heap, Entry entry) {
    if (heap->count == heap->room) {
        heap->room = heap->room ? 2 * heap->room : 4;
        heap->entries = wsp_grow(m, heap->entries, heap->count, heap->room, sizeof(Entry));
    }
    size_t place = heap->count++;
    while (place > 0) {
        size_t parent = (place - 1) / 2;
        if (!is_before(&entry, &heap->entries[parent])) break;
        heap->entries[place] = heap->entries[parent];
        place = parent;
    }
    heap->entries[place] = entry;
}

Entry wsp_pop(Heap *heap) {
    Entry first = heap->entries[0], last = heap->entries[--heap->count];
    size_t place = 0, child;
    while ((child = 2 * place + 1) < heap->count) {
        if (child + 1 < heap->count && is_before(&heap->entries[child + 1], &heap->entries[child])) child++;
        if (!is_before(&heap->entries[child], &last)) break;
        heap->entries[place] = heap->entries[child];
        place = child;
    }
    if (heap->count > 0) heap->entries[place] = last;
    return first;
}
