/* The life of a task: issued, ready, started, its kernel ended, its signals sent, complete. */
#include "runtime.h"

void wsp_add_node(Machine *m, Node **list, void *subject) {
    Node *node = m->free_nodes;
    if (node != NULL)
        m->free_nodes = node->next;
    else
        node = wsp_allocate(m, 1, sizeof(Node));
    *node = (Node){*list, subject};
    *list = node;
}

static void *take_node(Machine *m, Node **list) {
    Node *node = *list;
    *list = node->next;
    node->next = m->free_nodes;
    m->free_nodes = node;
    return node->subject;
}

static Task *new_task(Machine *m) {
    Task *task = m->free_tasks;
    if (task != NULL) {
        m->free_tasks = task->after;
    } else {
        task = wsp_allocate(m, 1, sizeof(Task));
        task->readers = wsp_allocate(m, m->info->most_reads, sizeof(Reader));
        task->scalars = wsp_allocate(m, m->info->most_scalars, sizeof(u64));
    }
    Reader *readers = task->readers;
    u64 *scalars = task->scalars;
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
    for (uint32_t each = 0; each < task->site->wait_count; each++) {
        Channel *c = &m->channels[task->site->waits[each]];
        int found = wsp_channel_take(m, c, (Party){TASK_PARTY, task->number, task}, &value);
        if (found == CLOSED)
            wsp_deliver(m, (Entry){.kind = TASK_PARTY, .subject = task}, CLOSED, 0);
        if (found == TOKEN) task->missing--;
    }
}

/* Issue a task whose key and scalars are the operands of the process; else the reason why it cannot be issued. */
int wsp_issue(Machine *m, Process *p, const Site *site) {
    u64 number = m->issued;
    wsp_find_dependencies(m, site->read_count, site->reads, site->write_count, site->writes);
    Worker *worker = &m->workers[m->info->place(m, number, p->operands[0])];
    u64 nodes = m->found_count;
    int reason = wsp_shortage(m, site, nodes, worker);
    if (reason != NOT_WAITING) return reason;
    wsp_charge(m, site, nodes, worker);
    Task *task = new_task(m);
    task->number = number;
    task->site = site;
    task->process = p;
    task->worker = worker;
    task->scope = p->scope;
    task->nodes = nodes;
    task->missing = nodes + site->wait_count + 1;
    memcpy(task->scalars, p->operands + 1, site->scalar_count * sizeof(u64));
    if (p->scope != NULL) p->scope->tasks++;
    assign(m, worker->index);
    for (size_t each = 0; each < m->found_count; each++) wsp_add_node(m, &m->found[each]->dependents, task);
    wsp_map_add(m, task);
    p->in_flight++;
    for (uint32_t each = 0; each < site->signal_count; each++) p->signalling[site->signal_places[each]]++;
    take_tokens(m, task);
    wsp_one_less(m, task);
    return NOT_WAITING;
}

/* A task waits for one thing less: a token, a task, or the end of its issue. */
void wsp_one_less(Machine *m, Task *task) {
    if (--task->missing > 0) return;
    wsp_push(m, &task->worker->ready, (Entry){m->now, task->number, 0, task, 0});
    if (task->worker->task == NULL) make_startable(m, task->worker);
}

/* Each idle worker starts the first of its tasks that are ready. */
void wsp_start_tasks(Machine *m) {
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

void wsp_count_kernel(Machine *m, const Site *site) {
    m->kernel_runs[site->kernel]++;
    m->kernel_cycles[site->kernel] += site->cycles;
}

void wsp_kernel_ends(Machine *m, Task *task) {
    task->site->effect(m, task->scalars);
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
        scope->entries += task->site->write_count;
        scope->heap += task->site->heap;
    } else {
        wsp_free(m, 1, task->site->write_count, task->site->heap);
    }
    if (scope != NULL && !scope->open && scope->tasks == 0) {
        scope->outer = m->free_scopes;
        m->free_scopes = scope;
    }
    wsp_freed(m);
}

void wsp_complete(Machine *m, Task *task) {
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
    task->after = m->free_tasks;
    m->free_tasks = task;
    for (uint32_t each = 0; each < site->signal_count; each++) {
        uint32_t place = site->signal_places[each];
        if (--p->signalling[place] == 0 && p->closed[place]) wsp_producer_closes(m, &m->channels[site->signals[each]]);
    }
}

/* The process closes a channel, once its tasks that signal it are complete. */
void wsp_close_channel(Machine *m, Process *p, uint32_t place) {
    if (p->closed[place]) return;
    p->closed[place] = true;
    if (p->signalling[place] == 0) wsp_producer_closes(m, &m->channels[p->info->produces[place]]);
}
