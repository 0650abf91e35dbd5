/* The steps of a state machine. A step that has blocked is executed again, unless it has moved `pc` past itself. */
#include "runtime.h"

void wsp_go(Process *p, uint32_t pc) {
    p->pc = pc;
    p->moved = true;
}

void wsp_may_send(Machine *m, Process *p, uint32_t place) {
    if (p->closed[place])
        wsp_fail(m, "SEND_AFTER_CLOSE", NULL, NULL, "%s has closed %s", p->info->name,
                 m->channels[p->info->produces[place]].info->name);
}

bool wsp_send(Machine *m, Process *p, uint32_t channel, u64 value) {
    Channel *c = &m->channels[channel];
    if (wsp_channel_send(m, c, (Party){PROCESS_PARTY, p->index, p}, value)) return true;
    wsp_wait(m, p, CHANNEL_FULL_WAIT, c->info->name);
    p->pc++;
    return false;
}

static int take(Machine *m, Process *p, uint32_t channel, uint32_t slot) {
    Channel *c = &m->channels[channel];
    if (p->delivered == NOTHING) {
        p->delivered = wsp_channel_take(m, c, (Party){PROCESS_PARTY, p->index, p}, &p->token);
        if (p->delivered == NOTHING) {
            wsp_wait(m, p, CHANNEL_EMPTY_WAIT, c->info->name);
            return NOTHING;
        }
    }
    int found = p->delivered;
    p->delivered = NOTHING;
    if (found == TOKEN) m->slots[slot] = p->token;
    return found;
}

/* Take a token into a slot. */
bool wsp_receive(Machine *m, Process *p, uint32_t channel, uint32_t slot) {
    int found = take(m, p, channel, slot);
    if (found == CLOSED)
        wsp_fail(m, "RECEIVE_AFTER_CLOSE", NULL, NULL, "%s is closed and empty", m->channels[channel].info->name);
    if (found == NOTHING) return false;
    wsp_go(p, p->pc + 1);
    return true;
}

/* Take a token into a slot; go on at `at_end` where the channel is closed and empty. */
bool wsp_consume(Machine *m, Process *p, uint32_t channel, uint32_t slot, uint32_t at_end) {
    int found = take(m, p, channel, slot);
    if (found == NOTHING) return false;
    wsp_go(p, found == TOKEN ? p->pc + 1 : at_end);
    return true;
}

void wsp_may_signal(Machine *m, Process *p, const Site *site) {
    for (uint32_t each = 0; each < site->signal_count; each++)
        if (p->closed[site->signal_places[each]])
            wsp_fail(m, "SEND_AFTER_CLOSE", NULL, NULL, "a task of %s signals a channel that it has closed",
                     p->info->name);
}

/* Issue a task, when all that it needs is free; its operands are those of the first attempt. */
bool wsp_task(Machine *m, Process *p, const Site *site) {
    p->pending = true;
    int reason = wsp_issue(m, p, site);
    if (reason != NOT_WAITING) {
        wsp_stall(m, p, reason);
        return false;
    }
    p->pending = false;
    wsp_end_wait(m, p);
    return true;
}

static bool await(Machine *m, Process *p, size_t tasks) {
    if (tasks == 0) return true;
    p->awaited = tasks;
    wsp_wait(m, p, TASK_WAIT, "tasks");
    p->pc++;
    return false;
}

/* Wait for the tasks in flight that tensors depend on. */
bool wsp_await_tensors(Machine *m, Process *p, uint32_t reads, const uint32_t *read, uint32_t writes,
                       const uint32_t *written) {
    wsp_find_dependencies(m, reads, read, writes, written);
    for (size_t each = 0; each < m->found_count; each++) wsp_add_node(m, &m->found[each]->watchers, p);
    return await(m, p, m->found_count);
}

/* Until the tasks that the process issued are complete. */
bool wsp_wait_own(Machine *m, Process *p) {
    size_t own = 0;
    if (p->in_flight > 0)
        for (Task *task = m->first_task; task != NULL; task = task->after)
            if (task->process == p) {
                wsp_add_node(m, &task->watchers, p);
                own++;
            }
    return await(m, p, own);
}

/* Let the cycles of a kernel pass. */
bool wsp_elapse(Machine *m, Process *p, u64 cycles) {
    if (cycles == 0) return true;
    wsp_after(m, cycles, PROCESS_GOES_ON, p->index, p);
    p->pc++;
    return false;
}

/* What a kernel does to its tensors, at its end. */
void wsp_run_kernel(Machine *m, Process *p, const Site *site) {
    site->effect(m, p->operands + 1);
    wsp_count_kernel(m, site);
}

/* The element that the operand names, as u64. */
void wsp_load(Machine *m, Process *p, uint32_t slot, uint32_t tensor) {
    const TensorInfo *info = &m->info->tensors[tensor];
    u64 element = p->operands[1];
    if (element >= info->count)
        wsp_fail(m, "ELEMENT_OUT_OF_RANGE", NULL, NULL, "%s has %" PRIu64 " elements, and no %" PRIu64, info->name,
                 info->count, element);
    m->slots[slot] = wsp_element(m, info, m->tensors[tensor], element);
}

/* Steps of scopes that are left out do not count. */
void wsp_begin_scope(Machine *m, Process *p) {
    if (p->without_scopes) return;
    wsp_count_step(m);
    Scope *scope = m->free_scopes;
    if (scope != NULL)
        m->free_scopes = scope->outer;
    else
        scope = wsp_allocate(m, 1, sizeof(Scope));
    *scope = (Scope){.outer = p->scope, .open = true};
    p->scope = scope;
}

/* What complete tasks of the scope held is free; no barrier. */
void wsp_end_scope(Machine *m, Process *p) {
    if (p->without_scopes) return;
    wsp_count_step(m);
    Scope *scope = p->scope;
    p->scope = scope->outer;
    scope->open = false;
    if (scope->slots > 0) {
        wsp_free(m, scope->slots, scope->entries, scope->heap);
        wsp_freed(m);
    }
    if (scope->tasks == 0) {
        scope->outer = m->free_scopes;
        m->free_scopes = scope;
    }
}

/* The process ends, and closes what it produces. */
void wsp_end(Machine *m, Process *p) {
    for (uint32_t each = 0; each < p->info->produce_count; each++) wsp_close_channel(m, p, each);
    p->done = true;
}
