/* Processes and tasks that wait: episodes of stalls, and how they end. */
#include "runtime.h"

static void begin(Machine *m, Waiting *waiting, int reason, const char *subject, const char *statement) {
    *waiting = (Waiting){reason, m->now, subject, statement};
    if (reason < STALL_REASONS) m->stall_count[reason]++;
}

static void end(Machine *m, Waiting *waiting) {
    if (waiting->reason < STALL_REASONS) m->stall_cycles[waiting->reason] += m->now - waiting->since;
    waiting->reason = NOT_WAITING;
}

void wsp_wait(Machine *m, Process *p, int reason, const char *subject) {
    begin(m, &p->waiting, reason, subject, p->info->statements[p->pc]);
}

void wsp_end_wait(Machine *m, Process *p) { end(m, &p->waiting); }

/* What the process waited for is there. */
void wsp_wake(Machine *m, Process *p) {
    wsp_end_wait(m, p);
    wsp_make_runnable(m, p);
}

/* A task cannot be issued; a change of the reason is another episode. */
void wsp_stall(Machine *m, Process *p, int reason) {
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
void wsp_freed(Machine *m) {
    for (size_t each = 0; each < m->stalled_count; each++) {
        m->stalled[each]->stalled = false;
        wsp_make_runnable(m, m->stalled[each]);
    }
    m->stalled_count = 0;
}

/* To a process or task that waits for a token. */
void wsp_deliver(Machine *m, Entry taker, int what, u64 value) {
    if (taker.kind == PROCESS_PARTY) {
        Process *p = taker.subject;
        p->delivered = what;
        p->token = value;
        wsp_wake(m, p);
        return;
    }
    Task *task = taker.subject;
    if (what == CLOSED)
        wsp_fail(m, "RECEIVE_AFTER_CLOSE", task->process->info->name, task->site->statement,
                 "task %" PRIu64 " waits for a token of a channel that is closed and empty", task->number);
    wsp_one_less(m, task);
}

/* The token of a process or task that waited for room is sent. */
void wsp_let_go(Machine *m, Entry sender) {
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
void wsp_signal(Machine *m, Task *task) {
    const Site *site = task->site;
    while (task->sent < site->signal_count) {
        Channel *c = &m->channels[site->signals[task->sent]];
        if (!wsp_channel_send(m, c, (Party){TASK_PARTY, task->number, task}, task->number)) {
            begin(m, &task->waiting, CHANNEL_FULL_WAIT, c->info->name, site->statement);
            return;
        }
        task->sent++;
    }
    wsp_complete(m, task);
}
