/* The bounded resources (section 3.4): a task takes all that it needs when it is issued, or nothing. */
#include "runtime.h"

const char *const wsp_resource_names[RESOURCES] = {"task_ring", "tensormap_pool", "deplist_pool", "heap_arena",
                                                   "ready_queue"};
const char *const wsp_reason_names[] = {"TASK_RING_FULL",     "TENSORMAP_POOL_FULL", "DEPLIST_POOL_FULL",
                                        "HEAP_ARENA_FULL",    "READY_QUEUE_FULL",    "CHANNEL_EMPTY_WAIT",
                                        "CHANNEL_FULL_WAIT", "TASK_WAIT"};

/* The first resource that lacks, in the order of the document; NOT_WAITING where none does. */
int wsp_shortage(const Machine *m, const Site *site, u64 nodes, const Worker *worker) {
    const u64 *used = m->used, *sizes = m->sizes;
    if (used[TASK_RING] >= sizes[TASK_RING]) return TASK_RING_FULL;
    if (used[TENSORMAP_POOL] + site->write_count > sizes[TENSORMAP_POOL]) return TENSORMAP_POOL_FULL;
    if (used[DEPLIST_POOL] + nodes > sizes[DEPLIST_POOL]) return DEPLIST_POOL_FULL;
    if (used[HEAP_ARENA] + site->heap > sizes[HEAP_ARENA]) return HEAP_ARENA_FULL;
    if (worker->places >= sizes[READY_QUEUE]) return READY_QUEUE_FULL;
    return NOT_WAITING;
}

void wsp_charge(Machine *m, const Site *site, u64 nodes, Worker *worker) {
    worker->places++;
    m->used[TASK_RING]++;
    m->used[TENSORMAP_POOL] += site->write_count;
    m->used[DEPLIST_POOL] += nodes;
    m->used[HEAP_ARENA] += site->heap;
    for (int each = 0; each < READY_QUEUE; each++)
        if (m->used[each] > m->high_water[each]) m->high_water[each] = m->used[each];
    if (worker->places > m->high_water[READY_QUEUE]) m->high_water[READY_QUEUE] = worker->places;
}

/* Ring slots, TensorMap entries and bytes of tasks that are complete and held by no scope. */
void wsp_free(Machine *m, u64 slots, u64 entries, u64 heap) {
    m->used[TASK_RING] -= slots;
    m->used[TENSORMAP_POOL] -= entries;
    m->used[HEAP_ARENA] -= heap;
}
