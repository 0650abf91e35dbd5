/* The machine of a run: time, memory, channels, resources, tasks, and the waits of processes and tasks. */
#include "program.h"

typedef struct Machine Machine;
typedef struct Process Process;
typedef struct Task Task;

/* Why a process or task waits (section 3.4.2). TASK_WAIT is no stall; the first RESOURCES are those of resources. */
enum {
    TASK_RING_FULL, TENSORMAP_POOL_FULL, DEPLIST_POOL_FULL, HEAP_ARENA_FULL, READY_QUEUE_FULL,
    CHANNEL_EMPTY_WAIT, CHANNEL_FULL_WAIT, TASK_WAIT, NOT_WAITING
};
enum { STALL_REASONS = TASK_WAIT };

/* A heap of entries, smallest (time, kind, number) first. */

typedef struct { u64 time, number, value; void *subject; int kind; } Entry;
typedef struct { Entry *entries; size_t count, room; } Heap;

/* State of a run. */

typedef struct { int reason; u64 since; const char *subject, *statement; } Waiting;

/* Who waits at a channel; in this order those who came at one instant are served. */
enum { PROCESS_PARTY, TASK_PARTY };
typedef struct { int kind; u64 number; void *subject; } Party;

/* What is taken from a channel. */
enum { NOTHING, TOKEN, CLOSED };

typedef struct { u64 seen, value; } Token;

typedef struct {
    const ChannelInfo *info;
    u64 capacity;
    uint32_t index, producers;
    Token *tokens;
    size_t first, count, room;
    Heap takers, senders;
    bool seen_closed;
    u64 sent, taken;
} Channel;

/* A scope, and what it holds of complete tasks while it is open; `tasks` in flight refer to it. */
typedef struct Scope { struct Scope *outer; bool open; u64 tasks, slots, entries, heap; } Scope;

struct Process {
    const ProcessInfo *info;
    uint32_t index, pc;
    u64 time;
    bool done, queued, stalled, pending, without_scopes;
    Waiting waiting;
    int delivered;
    u64 token;
    u64 *operands; /* the key of a task, then the scalars of a call */
    u64 awaited, in_flight;
    u64 *rounds, *counts;
    Scope *scope;
    u64 *signalling;
    bool *closed;
};

typedef struct {
    uint32_t index;
    Heap ready;
    u64 places, busy, tasks, time;
    Task *task;
    bool startable;
} Worker;

/* A node of a list of tasks that depend on one, or of processes that wait for it. */
typedef struct Node { struct Node *next; void *subject; } Node;

/* A task among the readers of a tensor. */
typedef struct Reader { struct Reader *before, *after; Task *task; bool listed; } Reader;

struct Task {
    Task *before, *after; /* in flight, by number */
    u64 number, mark;
    const Site *site;
    const char *statement;
    Process *process;
    Worker *worker;
    Scope *scope;
    u64 nodes, missing, time_started;
    bool started;
    uint32_t sent;
    Waiting waiting;
    Node *dependents, *watchers;
    Reader *readers;
    u64 *scalars;
};

typedef struct Block { struct Block *after; } Block;

typedef struct { const char *code, *process, *statement; char message[600]; } Failure;

struct Machine {
    const ProgramInfo *info;
    u64 max_steps, enough, instants; /* a run ends at the first, and is left at the others */
    bool observed;
    u64 steps;
    u64 turn_steps, mark_of_progress; /* of the process that goes on */
    bool marked;
    const Process *spinning;
    u64 sizes[RESOURCES];
    Block *blocks;
    jmp_buf failed;
    Failure failure;
    u64 now;
    Heap events, sweeps[2], startable;
    int sweep; /* of the two, the one that is served */
    int64_t current_index;
    Process *current;
    Entry *due;
    size_t due_room;
    u64 *symbols, *slots;
    uint8_t **tensors;
    u64 stall_count[STALL_REASONS], stall_cycles[STALL_REASONS];
    u64 used[RESOURCES], high_water[RESOURCES];
    Process *processes;
    Channel *channels;
    Worker *workers;
    Process **stalled;
    size_t stalled_count;
    Task *first_task, *last_task;
    void *free_tasks, *free_nodes, *free_scopes;
    Task **writers;
    Reader **readers;
    Task **found;
    size_t found_count, found_room;
    u64 mark, task_input, key_input;
    uint32_t *assignments;
    size_t issued, assignment_room;
    u64 *kernel_runs, *kernel_cycles;
};

/* Memory of a run: every block is in one list, and all are freed together. */

static void *wsp_allocate(Machine *m, size_t count, size_t size) {
    bool fits = size == 0 || count <= (SIZE_MAX / 2) / size;
    Block *found = fits ? calloc(1, sizeof(Block) + count * size) : NULL;
    if (found == NULL) {
        fprintf(stderr, "error: no memory for %zu times %zu bytes\n", count, size);
        exit(70);
    }
    found->after = m->blocks;
    m->blocks = found;
    return found + 1;
}

/* A larger place for `used` elements. */
static void *wsp_grow(Machine *m, const void *old, size_t used, size_t room, size_t size) {
    void *found = wsp_allocate(m, room, size);
    if (old != NULL) memcpy(found, old, used * size);
    return found;
}

/* A struct that was given back, or a new one of zeros; those that were given back form a list by their first bytes. */
static void *wsp_take(Machine *m, void **pool, size_t size) {
    void *found = *pool;
    if (found == NULL) return wsp_allocate(m, 1, size);
    memcpy(pool, found, sizeof *pool);
    return found;
}

static void wsp_give_back(void **pool, void *used) {
    memcpy(used, pool, sizeof *pool);
    *pool = used;
}

static void wsp_release_all(Machine *m) {
    for (Block *each = m->blocks, *next; each != NULL; each = next) {
        next = each->after;
        free(each);
    }
}

/* A binary heap of entries, smallest (time, kind, number) first. */

static bool is_before(const Entry *a, const Entry *b) {
    if (a->time != b->time) return a->time < b->time;
    if (a->kind != b->kind) return a->kind < b->kind;
    return a->number < b->number;
}

static void wsp_push(Machine *m, Heap *heap, Entry entry) {
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

static Entry wsp_pop(Heap *heap) {
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

/* The time of a run, the events that are due later, and the processes that can go on now. */

#define LAST_TIME ((UINT64_C(1) << 63) - 1)
enum { FAILED = 1, LEFT, SPINS };
enum { KERNEL_ENDS, TOKEN_SEEN, CLOSE_SEEN, PROCESS_GOES_ON };

/* An error of the program ends its run. Without a process it is that of the process that is going on, if any. */
static void wsp_fail(Machine *m, const char *code, const char *process, const char *statement, const char *format, ...) {
    va_list given;
    va_start(given, format);
    vsnprintf(m->failure.message, sizeof m->failure.message, format, given);
    va_end(given);
    m->failure.code = code;
    m->failure.process = process;
    m->failure.statement = statement;
    longjmp(m->failed, FAILED);
}

static void wsp_after(Machine *m, u64 cycles, int kind, u64 number, void *subject) {
    if (cycles > LAST_TIME - m->now)
        wsp_fail(m, "TIME_OVERFLOW", NULL, NULL, "%" PRIu64 " cycles after %" PRIu64 " lie beyond %" PRIu64, cycles,
                 m->now, LAST_TIME);
    wsp_push(m, &m->events, (Entry){m->now + cycles, number, 0, subject, kind});
}

/* The events of this instant, in order, in `due`. */
static size_t wsp_collect_due(Machine *m) {
    size_t count = 0;
    while (m->events.count > 0 && m->events.entries[0].time == m->now) {
        if (count == m->due_room) {
            m->due_room = m->due_room ? 2 * m->due_room : 16;
            m->due = wsp_grow(m, m->due, count, m->due_room, sizeof(Entry));
        }
        m->due[count++] = wsp_pop(&m->events);
    }
    return count;
}

/* How far a run has come: the tasks that it issued, the kernels that ran, and the tokens sent and taken. */
static u64 wsp_progress(const Machine *m) {
    u64 found = m->issued;
    for EACH(each, m->info->kernel_count) found += m->kernel_runs[each];
    for EACH(each, m->info->channel_count)
        found += m->channels[each].sent + m->channels[each].taken;
    return found;
}

/* At the bound the run ends; a process that takes a 200th of it twice in a row without progress spins. */
static void wsp_count_step(Machine *m) {
    u64 spin = m->max_steps / 200 > 0 ? m->max_steps / 200 : 1;
    if (m->steps >= m->max_steps)
        wsp_fail(m, "STEP_LIMIT", NULL, NULL, "the run has taken %" PRIu64 " steps", m->max_steps);
    if (m->turn_steps == spin) {
        u64 progress = wsp_progress(m);
        if (m->marked && progress == m->mark_of_progress) longjmp(m->failed, SPINS);
        m->marked = true;
        m->mark_of_progress = progress;
        m->turn_steps = 0;
    }
    if (m->steps == m->enough) longjmp(m->failed, LEFT);
    m->turn_steps++;
    m->steps++;
}

/* In this sweep, if its turn is yet to come, else in the next. */
static void wsp_make_runnable(Machine *m, Process *p) {
    if (p->queued || p->done) return;
    p->queued = true;
    int sweep = (int64_t)p->index > m->current_index ? m->sweep : 1 - m->sweep;
    wsp_push(m, &m->sweeps[sweep], (Entry){0, p->index, 0, p, 0});
}

/* The process whose turn is next in this sweep; NULL ends it. */
static Process *wsp_next_runnable(Machine *m) {
    Heap *heap = &m->sweeps[m->sweep];
    if (heap->count == 0) {
        m->sweep = 1 - m->sweep;
        m->current_index = -1;
        return NULL;
    }
    Process *p = wsp_pop(heap).subject;
    m->current_index = p->index;
    return p;
}

/* Whether nothing is left to do at this instant. */
static bool wsp_is_settled(const Machine *m) {
    return m->sweeps[m->sweep].count == 0 && !(m->events.count > 0 && m->events.entries[0].time == m->now);
}

/* Print a piece of JSON, after a comma where it is a member or an element that follows another one. */
static void wsp_print(const char *format, ...) {
    static bool follows;
    if (follows && *format != ']' && *format != '}') putchar(',');
    va_list given;
    va_start(given, format);
    vprintf(format, given);
    va_end(given);
    follows = strchr("[{\n", format[strlen(format) - 1]) == NULL;
}

/* Print an arrival, a kernel or a task as it happens, where somebody asked for it. */
static void wsp_observe(Machine *m, const char *kind, u64 a, u64 b, u64 c) {
    if (m->observed) wsp_print("[\"%s\",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", kind, a, b, c);
}

/* The bounded resources (section 3.4): a task takes all that it needs when it is issued, or nothing. */

const char *const wsp_resource_names[RESOURCES] = {"task_ring", "tensormap_pool", "deplist_pool", "heap_arena",
                                                   "ready_queue"};
const char *const wsp_reason_names[] = {"TASK_RING_FULL",     "TENSORMAP_POOL_FULL", "DEPLIST_POOL_FULL",
                                        "HEAP_ARENA_FULL",    "READY_QUEUE_FULL",    "CHANNEL_EMPTY_WAIT",
                                        "CHANNEL_FULL_WAIT", "TASK_WAIT"};

/* The first resource that lacks, in the order of the document; NOT_WAITING where none does. */
static int wsp_shortage(const Machine *m, const Site *site, u64 nodes, const Worker *worker) {
    const u64 *used = m->used, *sizes = m->sizes;
    if (used[TASK_RING] >= sizes[TASK_RING]) return TASK_RING_FULL;
    if (used[TENSORMAP_POOL] + site->writes.count > sizes[TENSORMAP_POOL]) return TENSORMAP_POOL_FULL;
    if (used[DEPLIST_POOL] + nodes > sizes[DEPLIST_POOL]) return DEPLIST_POOL_FULL;
    if (used[HEAP_ARENA] + site->heap > sizes[HEAP_ARENA]) return HEAP_ARENA_FULL;
    if (worker->places >= sizes[READY_QUEUE]) return READY_QUEUE_FULL;
    return NOT_WAITING;
}

static void wsp_charge(Machine *m, const Site *site, u64 nodes, Worker *worker) {
    worker->places++;
    m->used[TASK_RING]++;
    m->used[TENSORMAP_POOL] += site->writes.count;
    m->used[DEPLIST_POOL] += nodes;
    m->used[HEAP_ARENA] += site->heap;
    for (int each = 0; each < READY_QUEUE; each++)
        if (m->used[each] > m->high_water[each]) m->high_water[each] = m->used[each];
    if (worker->places > m->high_water[READY_QUEUE]) m->high_water[READY_QUEUE] = worker->places;
}

/* Ring slots, TensorMap entries and bytes of tasks that are complete and held by no scope. */
static void wsp_free(Machine *m, u64 slots, u64 entries, u64 heap) {
    m->used[TASK_RING] -= slots;
    m->used[TENSORMAP_POOL] -= entries;
    m->used[HEAP_ARENA] -= heap;
}

/* Dependency inference (section 3.4): the task in flight that wrote each tensor last, and those that read it since. */

static void find(Machine *m, Task *task) {
    if (task == NULL || task->mark == m->mark) return;
    task->mark = m->mark;
    if (m->found_count == m->found_room) {
        m->found_room = m->found_room ? 2 * m->found_room : 16;
        m->found = wsp_grow(m, m->found, m->found_count, m->found_room, sizeof(Task *));
    }
    m->found[m->found_count++] = task;
}

/* In `found`, each once, the tasks that must be complete before these tensors are read and written. */
static void wsp_find_dependencies(Machine *m, List reads, List writes) {
    const uint32_t *read = m->info->numbers + reads.first, *written = m->info->numbers + writes.first;
    m->mark++;
    m->found_count = 0;
    for EACH(each, reads.count) find(m, m->writers[read[each]]);
    for EACH(each, writes.count) {
        find(m, m->writers[written[each]]);
        for (Reader *reader = m->readers[written[each]]; reader != NULL; reader = reader->after) find(m, reader->task);
    }
}

/* A task is issued. */
static void wsp_map_add(Machine *m, Task *task) {
    const Site *site = task->site;
    const uint32_t *reads = m->info->numbers + site->reads.first, *writes = m->info->numbers + site->writes.first;
    for EACH(each, site->reads.count) {
        Reader *reader = &task->readers[each], **list = &m->readers[reads[each]];
        *reader = (Reader){NULL, *list, task, true};
        if (*list != NULL) (*list)->before = reader;
        *list = reader;
    }
    for EACH(each, site->writes.count) {
        uint32_t tensor = writes[each];
        for (Reader *reader = m->readers[tensor]; reader != NULL; reader = reader->after) reader->listed = false;
        m->readers[tensor] = NULL;
        m->writers[tensor] = task;
    }
}

/* A task is complete. */
static void wsp_map_remove(Machine *m, Task *task) {
    const Site *site = task->site;
    const uint32_t *reads = m->info->numbers + site->reads.first, *writes = m->info->numbers + site->writes.first;
    for EACH(each, site->reads.count) {
        Reader *reader = &task->readers[each];
        if (!reader->listed) continue;
        if (reader->before != NULL)
            reader->before->after = reader->after;
        else
            m->readers[reads[each]] = reader->after;
        if (reader->after != NULL) reader->after->before = reader->before;
    }
    for EACH(each, site->writes.count)
        if (m->writers[writes[each]] == task) m->writers[writes[each]] = NULL;
}

/* A channel (section 2.2): tokens from send to take, and who waits at both ends, first come, first served. */

static void wsp_deliver(Machine *m, Entry taker, int what, u64 value);
static void wsp_let_go(Machine *m, Entry sender);

static void hand_over(Machine *m, Channel *c, u64 value) {
    c->sent++;
    c->taken++;
    wsp_deliver(m, wsp_pop(&c->takers), TOKEN, value);
}

static void append(Machine *m, Channel *c, u64 seen, u64 value) {
    if (c->count == c->room) {
        size_t room = c->room ? 2 * c->room : 4;
        Token *tokens = wsp_allocate(m, room, sizeof(Token));
        for (size_t each = 0; each < c->count; each++) tokens[each] = c->tokens[(c->first + each) % c->room];
        c->tokens = tokens;
        c->first = 0;
        c->room = room;
    }
    c->tokens[(c->first + c->count++) % c->room] = (Token){seen, value};
}

/* A token is sent; there is room for it. */
static void enter(Machine *m, Channel *c, u64 value) {
    if (c->info->latency > 0) {
        c->sent++;
        append(m, c, m->now + c->info->latency, value);
        wsp_after(m, c->info->latency, TOKEN_SEEN, c->index, c);
    } else if (c->takers.count > 0) {
        hand_over(m, c, value);
    } else {
        c->sent++;
        append(m, c, m->now, value);
    }
}

/* The first token, which is taken, if it is visible. */
static bool visible_token(Machine *m, Channel *c, u64 *value) {
    if (c->count > 0) {
        if (c->tokens[c->first].seen > m->now) return false;
        *value = c->tokens[c->first].value;
        c->first = (c->first + 1) % c->room;
        c->count--;
        c->taken++;
        if (c->senders.count > 0) {
            Entry sender = wsp_pop(&c->senders);
            enter(m, c, sender.value);
            wsp_let_go(m, sender);
        }
        return true;
    }
    if (c->capacity == 0 && c->senders.count > 0 && c->senders.entries[0].time + c->info->latency <= m->now) {
        Entry sender = wsp_pop(&c->senders);
        *value = sender.value;
        c->sent++;
        c->taken++;
        wsp_let_go(m, sender);
        return true;
    }
    return false;
}

/* Whether the send is done; else the party waits, and is let go later. */
static bool wsp_channel_send(Machine *m, Channel *c, Party party, u64 value) {
    Entry entry = {m->now, party.number, value, party.subject, party.kind};
    if (c->capacity == 0) {
        if (c->takers.count > 0 && c->info->latency == 0) {
            hand_over(m, c, value);
            return true;
        }
        wsp_push(m, &c->senders, entry);
        if (c->info->latency > 0) wsp_after(m, c->info->latency, TOKEN_SEEN, c->index, c);
        return false;
    }
    if (c->count < c->capacity) {
        enter(m, c, value);
        return true;
    }
    wsp_push(m, &c->senders, entry);
    return false;
}

/* TOKEN, CLOSED, or NOTHING where the party waits, to whom one is delivered later. */
static int wsp_channel_take(Machine *m, Channel *c, Party party, u64 *value) {
    if (visible_token(m, c, value)) return TOKEN;
    if (c->seen_closed) return CLOSED;
    wsp_push(m, &c->takers, (Entry){m->now, party.number, 0, party.subject, party.kind});
    return NOTHING;
}

/* The channel is closed; whoever waits for a token learns it. */
static void wsp_close_seen(Machine *m, Channel *c) {
    c->seen_closed = true;
    while (c->takers.count > 0) wsp_deliver(m, wsp_pop(&c->takers), CLOSED, 0);
}

/* One producer fewer; after the last the channel is closed, which is seen after the latency. */
static void wsp_producer_closes(Machine *m, Channel *c) {
    c->producers--;
    if (c->producers > 0) return;
    if (c->info->latency > 0)
        wsp_after(m, c->info->latency, CLOSE_SEEN, c->index, c);
    else
        wsp_close_seen(m, c);
}

/* Tokens may have become visible. */
static void wsp_token_seen(Machine *m, Channel *c) {
    u64 value;
    while (c->takers.count > 0 && visible_token(m, c, &value)) wsp_deliver(m, wsp_pop(&c->takers), TOKEN, value);
}

/* Processes and tasks that wait: episodes of stalls, and how they end. */

static void begin(Machine *m, Waiting *waiting, int reason, const char *subject, const char *statement) {
    *waiting = (Waiting){reason, m->now, subject, statement};
    if (reason < STALL_REASONS) m->stall_count[reason]++;
}

static void end(Machine *m, Waiting *waiting) {
    if (waiting->reason < STALL_REASONS) m->stall_cycles[waiting->reason] += m->now - waiting->since;
    waiting->reason = NOT_WAITING;
}

static void wsp_wait(Machine *m, Process *p, int reason, const char *subject) {
    begin(m, &p->waiting, reason, subject, m->info->steps[p->pc].path);
}

static void wsp_end_wait(Machine *m, Process *p) { end(m, &p->waiting); }

/* What the process waited for is there. */
static void wsp_wake(Machine *m, Process *p) {
    wsp_end_wait(m, p);
    wsp_make_runnable(m, p);
}

/* A task cannot be issued; a change of the reason is another episode. */
static void wsp_stall(Machine *m, Process *p, int reason) {
    if (p->waiting.reason != reason) {
        wsp_end_wait(m, p);
        wsp_wait(m, p, reason, wsp_resource_names[reason]);
    }
    if (!p->stalled) {
        p->stalled = true;
        m->stalled[m->stalled_count++] = p;
    }
}

/* Something was freed: whoever could not issue a task tries again, in its turn. */
static void wsp_freed(Machine *m) {
    for (size_t each = 0; each < m->stalled_count; each++) {
        m->stalled[each]->stalled = false;
        wsp_make_runnable(m, m->stalled[each]);
    }
    m->stalled_count = 0;
}

/* The life of a task: issued, ready, started, its kernel ended, its signals sent, complete. */

static void wsp_apply(Machine *m, const Site *site, const u64 *scalars);
static u64 wsp_worker(Machine *m, u64 task, u64 key);
static void wsp_signal(Machine *m, Task *task);

static void wsp_add_node(Machine *m, Node **list, void *subject) {
    Node *node = wsp_take(m, &m->free_nodes, sizeof(Node));
    *node = (Node){*list, subject};
    *list = node;
}

static void *take_node(Machine *m, Node **list) {
    Node *node = *list;
    void *subject = node->subject;
    *list = node->next;
    wsp_give_back(&m->free_nodes, node);
    return subject;
}

static Task *new_task(Machine *m) {
    Task *task = wsp_take(m, &m->free_tasks, sizeof(Task));
    Reader *readers = task->readers ? task->readers : wsp_allocate(m, m->info->most_reads, sizeof(Reader));
    u64 *scalars = task->scalars ? task->scalars : wsp_allocate(m, m->info->most_scalars, sizeof(u64));
    *task = (Task){.readers = readers, .scalars = scalars, .before = m->last_task, .waiting = {.reason = NOT_WAITING}};
    if (m->last_task != NULL)
        m->last_task->after = task;
    else
        m->first_task = task;
    m->last_task = task;
    return task;
}

static void forget(Machine *m, Task *task) {
    if (task->before != NULL)
        task->before->after = task->after;
    else
        m->first_task = task->after;
    if (task->after != NULL)
        task->after->before = task->before;
    else
        m->last_task = task->before;
}

static void make_startable(Machine *m, Worker *worker) {
    if (worker->startable) return;
    worker->startable = true;
    wsp_push(m, &m->startable, (Entry){0, worker->index, 0, worker, 0});
}

static void assign(Machine *m, uint32_t worker) {
    if (m->issued == m->assignment_room) {
        m->assignment_room = m->assignment_room ? 2 * m->assignment_room : 64;
        m->assignments = wsp_grow(m, m->assignments, m->issued, m->assignment_room, sizeof(uint32_t));
    }
    m->assignments[m->issued++] = worker;
}

static void take_tokens(Machine *m, Task *task) {
    u64 value;
    for EACH(each, task->site->waits.count) {
        Channel *c = &m->channels[m->info->numbers[task->site->waits.first + each]];
        int found = wsp_channel_take(m, c, (Party){TASK_PARTY, task->number, task}, &value);
        if (found == CLOSED)
            wsp_deliver(m, (Entry){.kind = TASK_PARTY, .subject = task}, CLOSED, 0);
        if (found == TOKEN) task->missing--;
    }
}

/* A task waits for one thing less: a token, a task, or the end of its issue. */
static void wsp_one_less(Machine *m, Task *task) {
    if (--task->missing > 0) return;
    wsp_push(m, &task->worker->ready, (Entry){m->now, task->number, 0, task, 0});
    if (task->worker->task == NULL) make_startable(m, task->worker);
}

/* Issue a task whose key and scalars are the operands of the process; else the reason why it cannot be issued. */
static int wsp_issue(Machine *m, Process *p, const Site *site) {
    u64 number = m->issued;
    wsp_find_dependencies(m, site->reads, site->writes);
    Worker *worker = &m->workers[wsp_worker(m, number, p->operands[0])];
    u64 nodes = m->found_count;
    int reason = wsp_shortage(m, site, nodes, worker);
    if (reason != NOT_WAITING) return reason;
    wsp_charge(m, site, nodes, worker);
    Task *task = new_task(m);
    task->number = number;
    task->site = site;
    task->statement = m->info->steps[p->pc].path;
    task->process = p;
    task->worker = worker;
    task->scope = p->scope;
    task->nodes = nodes;
    task->missing = nodes + site->waits.count + 1;
    memcpy(task->scalars, p->operands + 1, site->scalars.count * sizeof(u64));
    if (p->scope != NULL) p->scope->tasks++;
    assign(m, worker->index);
    for (size_t each = 0; each < m->found_count; each++) wsp_add_node(m, &m->found[each]->dependents, task);
    wsp_map_add(m, task);
    p->in_flight++;
    for EACH(each, site->signals.count) p->signalling[m->info->numbers[site->signals.first + each]]++;
    wsp_observe(m, "task", site->kernel, worker->index, site->cycles);
    take_tokens(m, task);
    wsp_one_less(m, task);
    return NOT_WAITING;
}

/* Each idle worker starts the first of its tasks that are ready. */
static void wsp_start_tasks(Machine *m) {
    if (m->startable.count == 0) return;
    while (m->startable.count > 0) {
        Worker *worker = wsp_pop(&m->startable).subject;
        Task *task = wsp_pop(&worker->ready).subject;
        worker->startable = false;
        worker->task = task;
        worker->places--;
        task->started = true;
        task->time_started = m->now;
        wsp_after(m, task->site->cycles, KERNEL_ENDS, task->number, task);
    }
    wsp_freed(m);
}

static void wsp_count_kernel(Machine *m, const Site *site) {
    m->kernel_runs[site->kernel]++;
    m->kernel_cycles[site->kernel] += site->cycles;
}

static void wsp_kernel_ends(Machine *m, Task *task) {
    wsp_apply(m, task->site, task->scalars);
    wsp_count_kernel(m, task->site);
    wsp_signal(m, task);
}

/* What a complete task held; an open scope keeps all but DepList nodes. */
static void free_held(Machine *m, Task *task) {
    Scope *scope = task->scope;
    m->used[DEPLIST_POOL] -= task->nodes;
    if (scope != NULL) scope->tasks--;
    if (scope != NULL && scope->open) {
        scope->slots++;
        scope->entries += task->site->writes.count;
        scope->heap += task->site->heap;
    } else {
        wsp_free(m, 1, task->site->writes.count, task->site->heap);
    }
    if (scope != NULL && !scope->open && scope->tasks == 0) wsp_give_back(&m->free_scopes, scope);
    wsp_freed(m);
}

static void wsp_complete(Machine *m, Task *task) {
    Worker *worker = task->worker;
    Process *p = task->process;
    const Site *site = task->site;
    forget(m, task);
    wsp_map_remove(m, task);
    worker->task = NULL;
    worker->busy += m->now - task->time_started;
    worker->tasks++;
    worker->time = m->now;
    if (worker->ready.count > 0) make_startable(m, worker);
    while (task->dependents != NULL) wsp_one_less(m, take_node(m, &task->dependents));
    while (task->watchers != NULL) {
        Process *watcher = take_node(m, &task->watchers);
        if (--watcher->awaited == 0) wsp_wake(m, watcher);
    }
    p->in_flight--;
    free_held(m, task);
    wsp_give_back(&m->free_tasks, task);
    for EACH(each, site->signals.count) {
        uint32_t channel = m->info->numbers[site->signals.first + each];
        if (--p->signalling[channel] == 0 && p->closed[channel]) wsp_producer_closes(m, &m->channels[channel]);
    }
}

/* The process closes a channel, once its tasks that signal it are complete. */
static void wsp_close_channel(Machine *m, Process *p, uint32_t channel) {
    if (p->closed[channel]) return;
    p->closed[channel] = true;
    if (p->signalling[channel] == 0) wsp_producer_closes(m, &m->channels[channel]);
}

/* To a process or task that waits for a token. */
static void wsp_deliver(Machine *m, Entry taker, int what, u64 value) {
    if (taker.kind == PROCESS_PARTY) {
        Process *p = taker.subject;
        p->delivered = what;
        p->token = value;
        wsp_wake(m, p);
        return;
    }
    Task *task = taker.subject;
    if (what == CLOSED)
        wsp_fail(m, "RECEIVE_AFTER_CLOSE", task->process->info->name, task->statement,
                 "task %" PRIu64 " waits for a token of a channel that is closed and empty", task->number);
    wsp_one_less(m, task);
}

/* The token of a process or task that waited for room is sent. */
static void wsp_let_go(Machine *m, Entry sender) {
    if (sender.kind == PROCESS_PARTY) {
        wsp_wake(m, sender.subject);
        return;
    }
    Task *task = sender.subject;
    end(m, &task->waiting);
    task->sent++;
    wsp_signal(m, task);
}

/* A complete kernel sends what is left of its signals; the task is complete after the last. */
static void wsp_signal(Machine *m, Task *task) {
    const Site *site = task->site;
    while (task->sent < site->signals.count) {
        Channel *c = &m->channels[m->info->numbers[site->signals.first + task->sent]];
        if (!wsp_channel_send(m, c, (Party){TASK_PARTY, task->number, task}, task->number)) {
            begin(m, &task->waiting, CHANNEL_FULL_WAIT, c->info->name, task->statement);
            return;
        }
        task->sent++;
    }
    wsp_complete(m, task);
}
