/* The machine of a run: time, memory, channels, resources, tasks, and the waits of processes and tasks. */
#include "program.h"

/* Memory, which lasts until the program ends. */

static void *wsp_checked(void *memory) {
    if (memory != NULL) return memory;
    fputs("error: no memory\n", stderr);
    exit(70);
}

static void *wsp_allocate(size_t count, size_t size) { return wsp_checked(calloc(count > 0 ? count : 1, size)); }

/* The place of a new element at the end of a list. */
static void *wsp_add(Vector *list, size_t size) {
    if (list->count == list->room) {
        list->room = list->room > 0 ? 2 * list->room : 4;
        list->items = wsp_checked(realloc(list->items, list->room * size));
    }
    return (char *)list->items + size * list->count++;
}

static void wsp_add_pointer(Vector *list, void *item) { *(void **)wsp_add(list, sizeof item) = item; }

/* A binary heap of entries. */

static bool is_before(const Entry *a, const Entry *b) {
    if (a->time != b->time) return a->time < b->time;
    if (a->kind != b->kind) return a->kind < b->kind;
    return a->number < b->number;
}

static const Entry *wsp_first(const Vector *heap) { return heap->items; }

static void wsp_push(Vector *heap, Entry entry) {
    wsp_add(heap, sizeof entry);
    Entry *entries = heap->items;
    size_t place = heap->count - 1;
    while (place > 0 && is_before(&entry, &entries[(place - 1) / 2])) {
        entries[place] = entries[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    entries[place] = entry;
}

static Entry wsp_pop(Vector *heap) {
    Entry *entries = heap->items;
    Entry first = entries[0], last = entries[--heap->count];
    size_t place = 0, child;
    while ((child = 2 * place + 1) < heap->count) {
        if (child + 1 < heap->count && is_before(&entries[child + 1], &entries[child])) child++;
        if (!is_before(&entries[child], &last)) break;
        entries[place] = entries[child];
        place = child;
    }
    if (heap->count > 0) entries[place] = last;
    return first;
}

/* The time of a run, and the events that are due later. */

#define LAST_TIME ((UINT64_C(1) << 63) - 1)
enum { FAILED = 1, LEFT, SPINS };
enum { KERNEL_ENDS, TOKEN_SEEN, CLOSE_SEEN, PROCESS_GOES_ON };

/* An error of the program ends its run. It is that of the process that is going on, if any, unless one was named. */
static void wsp_fail(Machine *m, const char *code, const char *format, ...) {
    Failure *failure = &m->failure;
    va_list values;
    va_start(values, format);
    vsnprintf(failure->message, sizeof failure->message, format, values);
    va_end(values);
    failure->code = code;
    if (m->current != NULL) m->current->time = m->now;
    if (failure->process == NULL) {
        failure->process = m->current != NULL ? m->current->name : "";
        failure->statement = m->current != NULL ? m->current->at->path : "";
    }
    longjmp(m->failed, FAILED);
}

static void wsp_after(Machine *m, u64 cycles, int kind, u64 number, void *subject) {
    if (cycles > LAST_TIME - m->now)
        wsp_fail(m, "TIME_OVERFLOW", "%" PRIu64 " cycles after %" PRIu64 " lie beyond %" PRIu64, cycles,
                 m->now, LAST_TIME);
    wsp_push(&m->events, (Entry){m->now + cycles, number, 0, subject, kind});
}

static bool wsp_is_due(const Machine *m) { return m->events.count > 0 && wsp_first(&m->events)->time == m->now; }

/* How far a run has come: the tasks that it issued, the kernels that ran, and the tokens sent and taken. */
static u64 wsp_progress(const Machine *m) {
    u64 progress = m->assignments.count;
    for EACH(kernel, m->kernels_count) progress += m->kernels[kernel].runs;
    for EACH(channel, m->channels_count) progress += 2 * m->channels[channel].taken + m->channels[channel].tokens.count;
    return progress;
}

/* At the bound the run ends; a process that takes a 200th of it twice in a row without progress spins. */
static void wsp_count_step(Machine *m) {
    u64 spin = m->max_steps / 200 > 0 ? m->max_steps / 200 : 1;
    if (m->steps >= m->max_steps)
        wsp_fail(m, "STEP_LIMIT", "the run has taken %" PRIu64 " steps", m->max_steps);
    if (m->turn_steps == spin) {
        u64 progress = wsp_progress(m);
        if (progress == m->mark_of_progress) longjmp(m->failed, SPINS);
        m->mark_of_progress = progress;
        m->turn_steps = 0;
    }
    if (m->steps == m->enough) longjmp(m->failed, LEFT);
    m->turn_steps++;
    m->steps++;
}

/* Print a piece of JSON, after a comma where it follows a member or an element. In its format a ' stands for a ", a # for
 * the next number, which is a u64, and a $ for the next text. */
static void wsp_print(const char *format, ...) {
    static bool follows;
    va_list values;
    va_start(values, format);
    if (follows && *format != ']' && *format != '}') putchar(',');
    for (const char *at = format; *at != 0; at++) {
        follows = strchr("[{\n", *at) == NULL;
        switch (*at) {
        case '#': printf("%" PRIu64, va_arg(values, u64)); break;
        case '$': printf("%s", va_arg(values, const char *)); break;
        case '\'': putchar('"'); break;
        default: putchar(*at);
        }
    }
    va_end(values);
}

/* Print an arrival, a kernel or a task as it happens, where somebody asked for it. */
static void wsp_observe(Machine *m, const char *kind, u64 a, u64 b, u64 c) {
    if (m->observed) wsp_print("['$',#,#,#]", kind, a, b, c);
}

/* The bounded resources (section 3.4): a task takes all that it needs when it is issued, or nothing. */

/* The first resource that lacks, in the order of the document; NOT_WAITING where none does. */
static int wsp_shortage(const Machine *m, const u64 *needs, const Worker *worker) {
    for EACH(pool, READY_QUEUE)
        if (m->resources[pool].used + needs[pool] > m->resources[pool].size) return (int)pool;
    return worker->places >= m->resources[READY_QUEUE].size ? READY_QUEUE_FULL : NOT_WAITING;
}

static void charge(Resource *resource, u64 used) {
    resource->used = used;
    if (used > resource->high_water) resource->high_water = used;
}

static void wsp_charge(Machine *m, const u64 *needs, Worker *worker) {
    charge(&m->resources[READY_QUEUE], ++worker->places);
    for EACH(pool, READY_QUEUE) charge(&m->resources[pool], m->resources[pool].used + needs[pool]);
}

/* Amounts of the pools are free again. */
static void wsp_free(Machine *m, const u64 *amounts) {
    for EACH(pool, READY_QUEUE) m->resources[pool].used -= amounts[pool];
}

/* Dependency inference (section 3.4). */

static void find(Machine *m, Task *task) {
    if (task == NULL || task->mark == m->mark) return;
    task->mark = m->mark;
    wsp_add_pointer(&m->found, task);
}

/* In `found`, each once, the tasks that must be complete before these tensors are read and written. */
static void wsp_find_dependencies(Machine *m, List reads, List writes) {
    m->mark++;
    m->found.count = 0;
    for EACH_OF(read, reads) find(m, m->tensors[*read].writer);
    for EACH_OF(written, writes) {
        find(m, m->tensors[*written].writer);
        for EACH_IN(Task *, reader, m->tensors[*written].readers) find(m, *reader);
    }
}

/* Let a process or task wait for the tasks that were found, and return how many these are. */
static u64 wsp_await_found(Machine *m, Entry waiter) {
    for EACH_IN(Task *, task, m->found) *(Entry *)wsp_add(&(*task)->dependents, sizeof waiter) = waiter;
    return m->found.count;
}

/* A task is issued. */
static void wsp_map_add(Machine *m, Task *task) {
    for EACH_OF(read, task->statement->reads) wsp_add_pointer(&m->tensors[*read].readers, task);
    for EACH_OF(written, task->statement->writes) {
        m->tensors[*written].readers.count = 0;
        m->tensors[*written].writer = task;
    }
}

/* A task is complete. */
static void wsp_map_remove(Machine *m, Task *task) {
    for EACH_OF(read, task->statement->reads) {
        Vector *readers = &m->tensors[*read].readers;
        for EACH_IN(Task *, reader, *readers)
            if (*reader == task) *reader = ((Task **)readers->items)[--readers->count];
    }
    for EACH_OF(written, task->statement->writes)
        if (m->tensors[*written].writer == task) m->tensors[*written].writer = NULL;
}

/* A channel (section 2.2): tokens from send to take, and who waits at both ends, first come, first served. */

/* The kinds of entries that wait; in this order those who came at one instant are served. */
enum { OF_PROCESS, OF_TASK };

static void wsp_deliver(Machine *m, Entry taker, Token token);
static void wsp_release(Machine *m, Entry sender);

static Entry of_process(const Machine *m, Process *p) {
    return (Entry){.kind = OF_PROCESS, .number = (u64)(p - m->processes), .subject = p};
}

static Entry of_task(Task *task) { return (Entry){.kind = OF_TASK, .number = task->number, .subject = task}; }

static void wsp_channel_after(Machine *m, Channel *c, int kind) {
    if (c->latency > 0) wsp_after(m, c->latency, kind, (u64)(c - m->channels), c);
}

/* A token is sent; there is room for it, and nobody who takes it at once. */
static void enter(Machine *m, Channel *c, u64 value) {
    wsp_channel_after(m, c, TOKEN_SEEN);
    wsp_push(&c->tokens, (Entry){.time = m->now + c->latency, .number = c->taken + c->tokens.count, .value = value});
}

/* The first token, which is taken, or NOTHING if none is visible. With capacity 0 a sender has it, and offers it. */
static Token visible_token(Machine *m, Channel *c) {
    Vector *queue = c->capacity > 0 ? &c->tokens : &c->senders;
    if (queue->count == 0 || wsp_first(queue)->time > m->now) return (Token){NOTHING, 0};
    Entry first = wsp_pop(queue);
    c->taken++;
    if (c->capacity == 0) {
        wsp_release(m, first);
    } else if (c->senders.count > 0) {
        Entry sender = wsp_pop(&c->senders);
        enter(m, c, sender.value);
        wsp_release(m, sender);
    }
    return (Token){TOKEN, first.value};
}

/* True if the send is done; else the party waits, and is released later. */
static bool wsp_channel_send(Machine *m, Channel *c, Entry party, u64 value) {
    if (c->latency == 0 && c->takers.count > 0) {
        c->taken++;
        wsp_deliver(m, wsp_pop(&c->takers), (Token){TOKEN, value});
        return true;
    }
    if (c->tokens.count < c->capacity) {
        enter(m, c, value);
        return true;
    }
    party.time = m->now + (c->capacity == 0 ? c->latency : 0);
    party.value = value;
    wsp_push(&c->senders, party);
    if (c->capacity == 0) wsp_channel_after(m, c, TOKEN_SEEN);
    return false;
}

/* A token, the end, or NOTHING where the party waits, to whom one of them is delivered later. */
static Token wsp_channel_take(Machine *m, Channel *c, Entry party) {
    Token token = visible_token(m, c);
    if (token.what == TOKEN) return token;
    if (c->seen_closed) return (Token){CLOSED, 0};
    party.time = m->now;
    wsp_push(&c->takers, party);
    return token;
}

/* Close the channel, and resume what waits for a token. */
static void wsp_close_seen(Machine *m, Channel *c) {
    c->seen_closed = true;
    while (c->takers.count > 0) wsp_deliver(m, wsp_pop(&c->takers), (Token){CLOSED, 0});
}

/* One producer fewer; after the last the channel is closed, which is seen after the latency. */
static void wsp_producer_closes(Machine *m, Channel *c) {
    if (--c->producers > 0) return;
    wsp_channel_after(m, c, CLOSE_SEEN);
    if (c->latency == 0) wsp_close_seen(m, c);
}

/* Tokens may have become visible. */
static void wsp_token_seen(Machine *m, Channel *c) {
    Token token;
    while (c->takers.count > 0 && (token = visible_token(m, c)).what == TOKEN)
        wsp_deliver(m, wsp_pop(&c->takers), token);
}

/* Processes and tasks that wait: episodes of stalls, and how they end. */

static void wsp_wait(Machine *m, Waiting *waiting, int reason, const char *subject) {
    *waiting = (Waiting){reason, m->now, subject};
    m->stalls[reason].count++;
}

static void wsp_end_wait(Machine *m, Waiting *waiting) {
    if (waiting->reason != NOT_WAITING) m->stalls[waiting->reason].cycles += m->now - waiting->since;
    waiting->reason = NOT_WAITING;
}

/* Resume a process that need not wait any more. */
static void wsp_wake(Machine *m, Process *p) {
    wsp_end_wait(m, &p->waiting);
    p->runnable = true;
}

/* A task cannot be issued; a change of the reason is another episode. */
static void wsp_stall(Machine *m, Process *p, int reason) {
    if (p->waiting.reason == reason) return;
    wsp_end_wait(m, &p->waiting);
    wsp_wait(m, &p->waiting, reason, m->resources[reason].name);
}

/* Something was freed: processes that could not issue a task try again, in turn. */
static void wsp_freed(Machine *m) {
    for EACH(each, m->processes_count)
        if (m->processes[each].waiting.reason < RESOURCES) m->processes[each].runnable = true;
}

/* The life of a task: issued, ready, started, its kernel ended, its signals sent, complete. */

static void wsp_apply(Machine *m, const Statement *s, const u64 *scalars);
static u64 wsp_worker(Machine *m, u64 task, u64 key);
static void wsp_signal(Machine *m, Task *task);

/* The memory of a task that is complete, or new memory. */
static Task *new_task(Machine *m) {
    if (m->free_tasks.count > 0) return ((Task **)m->free_tasks.items)[--m->free_tasks.count];
    Task *task = wsp_allocate(1, sizeof(Task));
    task->scalars = wsp_allocate(m->most_scalars, sizeof(u64));
    return task;
}

/* A process or task waits for one thing less: a task, a token, or the end of its issue. */
static void wsp_one_less(Machine *m, Entry waiter) {
    if (waiter.kind == OF_PROCESS) {
        Process *p = waiter.subject;
        if (--p->missing == 0) wsp_wake(m, p);
        return;
    }
    Task *task = waiter.subject;
    waiter.time = m->now;
    if (--task->missing == 0) wsp_push(&task->worker->ready, waiter);
}

/* Issue a task whose key and scalars are the operands of the process; else the reason why it cannot be issued. */
static int wsp_issue(Machine *m, Process *p, const Statement *s) {
    u64 number = m->assignments.count;
    wsp_find_dependencies(m, s->reads, s->writes);
    uint32_t index = (uint32_t)wsp_worker(m, number, p->operands[0]);
    Worker *worker = &m->workers[index];
    u64 nodes = m->found.count, needs[READY_QUEUE] = {1, s->writes.count, nodes, s->heap};
    int reason = wsp_shortage(m, needs, worker);
    if (reason != NOT_WAITING) return reason;
    wsp_charge(m, needs, worker);
    wsp_end_wait(m, &p->waiting);
    size_t depth = p->scopes.count;
    Task *task = new_task(m);
    *task = (Task){
        .before = m->tasks.before, .after = &m->tasks, .number = number, .statement = s,
        .process = p, .worker = worker,
        .scope_serial = depth > 0 ? ((Scope *)p->scopes.items)[depth - 1].serial : 0,
        .missing = nodes + s->waits.count + 1, .waiting = {.reason = NOT_WAITING},
        .dependents = task->dependents, .scalars = task->scalars,
    };
    task->before->after = m->tasks.before = task;
    memcpy(task->holds, needs, sizeof needs);
    memcpy(task->scalars, p->operands + 1, s->scalars_count * sizeof(u64));
    *(uint32_t *)wsp_add(&m->assignments, sizeof index) = index;
    wsp_await_found(m, of_task(task));
    wsp_map_add(m, task);
    for EACH_OF(signal, s->signals) m->channels[*signal].producers++;
    wsp_observe(m, "task", s->kernel, index, s->cycles);
    for EACH_OF(wait, s->waits) {
        Token token = wsp_channel_take(m, &m->channels[*wait], of_task(task));
        if (token.what != NOTHING) wsp_deliver(m, of_task(task), token);
    }
    wsp_one_less(m, of_task(task));
    return NOT_WAITING;
}

/* Each idle worker starts the first of its tasks that are ready. */
static void wsp_start_tasks(Machine *m) {
    bool started = false;
    for EACH(each, m->workers_count) {
        Worker *worker = &m->workers[each];
        if (worker->task != NULL || worker->ready.count == 0) continue;
        Task *task = wsp_pop(&worker->ready).subject;
        worker->task = task;
        worker->places--;
        task->time_started = m->now;
        started = true;
        wsp_after(m, task->statement->cycles, KERNEL_ENDS, task->number, task);
    }
    if (started) wsp_freed(m);
}

/* The scope in which a task was issued; NULL where it has none, or the scope has ended. */
static Scope *open_scope(const Task *task) {
    for EACH_IN(Scope, scope, task->process->scopes)
        if (scope->serial == task->scope_serial) return scope;
    return NULL;
}

/* Free what a complete task holds; an open scope keeps all but DepList nodes. */
static void free_held(Machine *m, Task *task) {
    Scope *scope = open_scope(task);
    m->resources[DEPLIST_POOL].used -= task->holds[DEPLIST_POOL];
    task->holds[DEPLIST_POOL] = 0;
    if (scope == NULL)
        wsp_free(m, task->holds);
    else
        for EACH(pool, READY_QUEUE) scope->held[pool] += task->holds[pool];
    wsp_freed(m);
}

static void wsp_complete(Machine *m, Task *task) {
    Worker *worker = task->worker;
    task->before->after = task->after;
    task->after->before = task->before;
    wsp_map_remove(m, task);
    worker->task = NULL;
    worker->busy += m->now - task->time_started;
    worker->tasks++;
    worker->time = m->now;
    for EACH_IN(Entry, dependent, task->dependents) wsp_one_less(m, *dependent);
    task->dependents.count = 0;
    free_held(m, task);
    wsp_add_pointer(&m->free_tasks, task);
    for EACH_OF(signal, task->statement->signals) wsp_producer_closes(m, &m->channels[*signal]);
}

/* The process closes a channel, once its tasks that signal it are complete. */
static void wsp_close_channel(Machine *m, Process *p, uint32_t channel) {
    if (!p->closed[channel]) wsp_producer_closes(m, &m->channels[channel]);
    p->closed[channel] = true;
}

/* To a process or task that waits for a token. */
static void wsp_deliver(Machine *m, Entry taker, Token token) {
    if (taker.kind == OF_PROCESS) {
        Process *p = taker.subject;
        p->taken = token;
        wsp_wake(m, p);
        return;
    }
    Task *task = taker.subject;
    if (token.what == CLOSED) {
        m->failure.process = task->process->name;
        m->failure.statement = task->statement->path;
        wsp_fail(m, "RECEIVE_AFTER_CLOSE", "task %" PRIu64 " waits for a token of a channel that is closed and empty",
                 task->number);
    }
    wsp_one_less(m, taker);
}

/* The token of a process or task that waited for room is sent. */
static void wsp_release(Machine *m, Entry sender) {
    if (sender.kind == OF_PROCESS) {
        wsp_wake(m, sender.subject);
        return;
    }
    Task *task = sender.subject;
    wsp_end_wait(m, &task->waiting);
    task->sent++;
    wsp_signal(m, task);
}

/* A complete kernel sends what is left of its signals; the task is complete after the last. */
static void wsp_signal(Machine *m, Task *task) {
    const Statement *s = task->statement;
    while (task->sent < s->signals.count) {
        Channel *c = &m->channels[s->signals.items[task->sent]];
        if (!wsp_channel_send(m, c, of_task(task), task->number)) {
            wsp_wait(m, &task->waiting, CHANNEL_FULL_WAIT, c->name);
            return;
        }
        task->sent++;
    }
    wsp_complete(m, task);
}
