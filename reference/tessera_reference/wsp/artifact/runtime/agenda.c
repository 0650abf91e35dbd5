/* The time of a run, the events that are due later, and the processes that can go on now. */
#include "runtime.h"

#define LAST_TIME ((UINT64_C(1) << 63) - 1)

/* An error of the program ends its run. Without a process it is that of the process that is going on, if any. */
void wsp_fail(Machine *m, const char *code, const char *process, const char *statement, const char *format, ...) {
    va_list given;
    va_start(given, format);
    vsnprintf(m->failure.message, sizeof m->failure.message, format, given);
    va_end(given);
    m->failure.code = code;
    m->failure.process = process;
    m->failure.statement = statement;
    longjmp(m->failed, FAILED);
}

void wsp_after(Machine *m, u64 cycles, int kind, u64 number, void *subject) {
    if (cycles > LAST_TIME - m->now)
        wsp_fail(m, "TIME_OVERFLOW", NULL, NULL, "%" PRIu64 " cycles after %" PRIu64 " lie beyond %" PRIu64, cycles,
                 m->now, LAST_TIME);
    wsp_push(m, &m->events, (Entry){m->now + cycles, number, 0, subject, kind});
}

/* The events of this instant, in order, in `due`. */
size_t wsp_collect_due(Machine *m) {
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

/* A step of a process; beyond the bound of this run, which only another execution has, the run is left. */
/* At the bound the run ends; a process that takes a 200th of it twice in a row without progress spins. */
void wsp_count_step(Machine *m) {
    u64 spin = m->inputs->max_steps / 200 > 0 ? m->inputs->max_steps / 200 : 1;
    if (m->steps >= m->inputs->max_steps)
        wsp_fail(m, "STEP_LIMIT", NULL, NULL, "the run has taken %" PRIu64 " steps", m->inputs->max_steps);
    if (m->turn_steps == spin) {
        u64 progress = wsp_progress(m);
        if (m->marked && progress == m->mark_of_progress) longjmp(m->failed, SPINS);
        m->marked = true;
        m->mark_of_progress = progress;
        m->turn_steps = 0;
    }
    if (m->steps == m->most_steps) longjmp(m->failed, LEFT);
    m->turn_steps++;
    m->steps++;
}

/* In this sweep, if its turn is yet to come, else in the next. */
void wsp_make_runnable(Machine *m, Process *p) {
    if (p->queued || p->done) return;
    p->queued = true;
    int sweep = (int64_t)p->index > m->current_index ? m->sweep : 1 - m->sweep;
    wsp_push(m, &m->sweeps[sweep], (Entry){0, p->index, 0, p, 0});
}

/* The process whose turn is next in this sweep; NULL ends it. */
Process *wsp_next_runnable(Machine *m) {
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
bool wsp_is_settled(const Machine *m) {
    return m->sweeps[m->sweep].count == 0 && !(m->events.count > 0 && m->events.entries[0].time == m->now);
}
