/* Who or what each process, task, channel and resource of a deadlock waits for, and a cycle of it. */
#include "runtime.h"

typedef struct { uint32_t *ends; size_t count, room, next; bool listed, finished, on_path; } GraphNode;

/* Nodes in this order: processes, channels, scopes of processes, resources, tasks in flight. */
typedef struct {
    Machine *m;
    GraphNode *nodes;
    uint32_t *listed; /* in the order of the walk */
    size_t listed_count;
    Task **tasks;
    uint32_t task_count, channels, scopes, resources, first_task;
} Graph;

static void list(Graph *g, uint32_t node) {
    if (g->nodes[node].listed) return;
    g->nodes[node].listed = true;
    g->listed[g->listed_count++] = node;
}

static void edge(Graph *g, uint32_t from, uint32_t to) {
    GraphNode *node = &g->nodes[from];
    list(g, from);
    if (node->count == node->room) {
        node->room = node->room ? 2 * node->room : 4;
        node->ends = wsp_grow(g->m, node->ends, node->count, node->room, sizeof(uint32_t));
    }
    node->ends[node->count++] = to;
}

static uint32_t node_of_task(const Graph *g, const Task *task) { return g->first_task + (uint32_t)task->mark; }

static uint32_t channel_named(const Graph *g, const char *name) {
    uint32_t each = 0;
    while (g->m->channels[each].info->name != name) each++;
    return g->channels + each;
}

static bool has(const uint32_t *values, uint32_t count, uint32_t value) {
    for (uint32_t each = 0; each < count; each++)
        if (values[each] == value) return true;
    return false;
}

static bool may_still_send(const Process *p, uint32_t channel) {
    for (uint32_t each = 0; each < p->info->produce_count; each++)
        if (p->info->produces[each] == channel && !p->closed[each]) return true;
    return false;
}

static void add_processes(Graph *g) {
    Machine *m = g->m;
    for (uint32_t each = 0; each < m->info->process_count; each++) {
        const Waiting *waiting = &m->processes[each].waiting;
        if (waiting->reason != NOT_WAITING) list(g, each);
        if (waiting->reason < RESOURCES)
            edge(g, each, g->resources + (uint32_t)waiting->reason);
        else if (waiting->reason < STALL_REASONS)
            edge(g, each, channel_named(g, waiting->subject));
    }
}

static void add_channels(Graph *g) {
    Machine *m = g->m;
    for (uint32_t index = 0; index < m->info->channel_count; index++) {
        uint32_t node = g->channels + index;
        bool full = m->channels[index].senders.count > 0;
        list(g, node);
        for (uint32_t each = 0; each < m->info->process_count; each++) {
            const Process *p = &m->processes[each];
            if (p->done) continue;
            if (full ? has(p->info->consumes, p->info->consume_count, index) : may_still_send(p, index))
                edge(g, node, each);
        }
        for (uint32_t each = 0; !full && each < g->task_count; each++) {
            const Site *site = g->tasks[each]->site;
            if (has(site->signals, site->signal_count, index)) edge(g, node, g->first_task + each);
        }
    }
}

static u64 held_by_scopes(const Process *p, int resource) {
    u64 held = 0;
    for (const Scope *scope = p->scope; scope != NULL; scope = scope->outer)
        held |= resource == TASK_RING ? scope->slots : resource == TENSORMAP_POOL ? scope->entries
              : resource == HEAP_ARENA ? scope->heap : 0;
    return held;
}

static u64 held_by_task(const Machine *m, const Task *task, int resource) {
    switch (resource) {
    case TASK_RING: return 1;
    case TENSORMAP_POOL: return task->site->write_count;
    case DEPLIST_POOL: return task->nodes;
    case HEAP_ARENA: return task->site->heap;
    default: return !task->started && task->worker->places >= m->sizes[READY_QUEUE];
    }
}

static void add_holders(Graph *g) {
    Machine *m = g->m;
    for (uint32_t each = 0; each < m->info->process_count; each++)
        if (m->processes[each].scope != NULL) edge(g, g->scopes + each, each);
    for (uint32_t resource = 0; resource < RESOURCES; resource++) {
        uint32_t node = g->resources + resource;
        list(g, node);
        for (uint32_t each = 0; each < m->info->process_count; each++)
            if (held_by_scopes(&m->processes[each], (int)resource)) edge(g, node, g->scopes + each);
        for (uint32_t each = 0; each < g->task_count; each++)
            if (held_by_task(m, g->tasks[each], (int)resource)) edge(g, node, g->first_task + each);
    }
}

static void add_tasks(Graph *g) {
    Machine *m = g->m;
    for (uint32_t each = 0; each < g->task_count; each++) {
        const Task *task = g->tasks[each];
        list(g, g->first_task + each);
        if (task->waiting.reason != NOT_WAITING)
            edge(g, g->first_task + each, channel_named(g, task->waiting.subject));
    }
    for (uint32_t index = 0; index < m->info->channel_count; index++) {
        const Heap *takers = &m->channels[index].takers;
        for (size_t each = 0; each < takers->count; each++)
            if (takers->entries[each].kind == TASK_PARTY)
                edge(g, node_of_task(g, takers->entries[each].subject), g->channels + index);
    }
    for (uint32_t each = 0; each < g->task_count; each++) {
        Task *current = g->tasks[each]->worker->task;
        if (current != NULL && current != g->tasks[each]) edge(g, g->first_task + each, node_of_task(g, current));
    }
}

static void add_who_waits_for_tasks(Graph *g) {
    for (uint32_t each = 0; each < g->task_count; each++) {
        Task *task = g->tasks[each];
        for (Node *node = task->dependents; node != NULL; node = node->next)
            edge(g, node_of_task(g, node->subject), g->first_task + each);
        for (Node *node = task->watchers; node != NULL; node = node->next)
            edge(g, ((Process *)node->subject)->index, g->first_task + each);
    }
}

static void print_node(const Graph *g, uint32_t node) {
    const Machine *m = g->m;
    if (node < g->channels)
        printf("\"process %s\"", m->processes[node].info->name);
    else if (node < g->scopes)
        printf("\"channel %s\"", m->channels[node - g->channels].info->name);
    else if (node < g->resources)
        printf("\"scope of %s\"", m->processes[node - g->scopes].info->name);
    else if (node < g->first_task)
        printf("\"resource %s\"", wsp_resource_names[node - g->resources]);
    else
        printf("\"task %" PRIu64 "\"", g->tasks[node - g->first_task]->number);
}

static void print_path(const Graph *g, const uint32_t *path, size_t length, uint32_t from) {
    size_t first = 0;
    while (path[first] != from) first++;
    for (size_t each = first; each < length; each++) {
        if (each > first) printf(",");
        print_node(g, path[each]);
    }
}

/* The first cycle of a depth-first walk from a node, if there is one. */
static bool walk(Graph *g, uint32_t start, uint32_t *path) {
    size_t length = 0;
    if (g->nodes[start].finished) return false;
    path[length++] = start;
    g->nodes[start].on_path = true;
    while (length > 0) {
        GraphNode *node = &g->nodes[path[length - 1]];
        if (node->next == node->count) {
            node->finished = true;
            node->on_path = false;
            length--;
            continue;
        }
        uint32_t end = node->ends[node->next++];
        GraphNode *other = &g->nodes[end];
        if (other->on_path) {
            print_path(g, path, length, end);
            return true;
        }
        if (!other->finished && other->listed) {
            other->on_path = true;
            path[length++] = end;
        }
    }
    return false;
}

void wsp_print_cycle(Machine *m) {
    Graph g = {.m = m};
    for (Task *task = m->first_task; task != NULL; task = task->after) g.task_count++;
    g.channels = m->info->process_count;
    g.scopes = g.channels + m->info->channel_count;
    g.resources = g.scopes + m->info->process_count;
    g.first_task = g.resources + RESOURCES;
    size_t count = (size_t)g.first_task + g.task_count;
    g.nodes = wsp_allocate(m, count, sizeof(GraphNode));
    g.listed = wsp_allocate(m, count, sizeof(uint32_t));
    g.tasks = wsp_allocate(m, g.task_count, sizeof(Task *));
    uint32_t place = 0;
    for (Task *task = m->first_task; task != NULL; task = task->after) {
        task->mark = place;
        g.tasks[place++] = task;
    }
    add_processes(&g);
    add_channels(&g);
    add_holders(&g);
    add_tasks(&g);
    add_who_waits_for_tasks(&g);
    uint32_t *path = wsp_allocate(m, count, sizeof(uint32_t));
    printf("[");
    for (size_t each = 0; each < g.listed_count; each++)
        if (walk(&g, g.listed[each], path)) break;
    printf("]");
}
