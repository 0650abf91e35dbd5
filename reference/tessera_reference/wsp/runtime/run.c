/* A run to its end, which is completion, an error or a deadlock, and its state. */
#include "program.h"

enum { COMPLETED, DEADLOCK, ERROR, RUNNING };

/* The state of a run as one line of JSON, the members of `Machine.state`; `deadlock.py` makes a result of it. */

/* Amounts of the first resources by name. */
static void print_amounts(const Machine *m, const u64 *amounts, uint32_t count) {
    for EACH(resource, count) wsp_print("'$':#", m->resources[resource].name, amounts[resource]);
    wsp_print("}");
}

static void print_waiting(const Machine *m, const Waiting *waiting) {
    if (waiting->reason == NOT_WAITING)
        wsp_print("'waiting':null");
    else
        wsp_print("'waiting':{'reason':'$','since':#,'subject':'$'}", m->stalls[waiting->reason].name, waiting->since,
                  waiting->subject);
}

static void print_process(const Machine *m, const Process *p) {
    wsp_print("'$':{'time':#,'done':$,'statement':'$'", p->name, p->time, p->done ? "true" : "false", p->at->path);
    print_waiting(m, &p->waiting);
    wsp_print("'closed':[");
    for EACH(channel, m->channels_count)
        if (p->closed[channel]) wsp_print("'$'", m->channels[channel].name);
    wsp_print("],'scopes':[");
    for EACH_IN(Scope, scope, p->scopes) {
        wsp_print("{");
        print_amounts(m, scope->held, READY_QUEUE);
    }
    wsp_print("]}");
}

static void print_channel(const Channel *c) {
    wsp_print("'$':{'capacity':#,'tokens':#,'taken':#,'senders':#,'producers':#,'takers':#,'tasks':[", c->name, c->capacity,
              (u64)c->tokens.count, c->taken, (u64)c->senders.count, (u64)c->producers, (u64)c->takers.count);
    for EACH_IN(Entry, taker, c->takers)
        if (taker->kind == OF_TASK) wsp_print("#", taker->number);
    wsp_print("]}");
}

static void print_task(const Machine *m, const Task *task) {
    u64 holds[RESOURCES] = {[READY_QUEUE] = task->worker->task != task};
    memcpy(holds, task->holds, sizeof task->holds);
    wsp_print("{'task':#,'process':'$','statement':'$','worker':#", task->number, task->process->name, task->statement->path,
              (u64)(task->worker - m->workers));
    print_waiting(m, &task->waiting);
    wsp_print("'holds':{");
    print_amounts(m, holds, RESOURCES);
    wsp_print("'signals':[");
    for EACH_OF(signal, task->statement->signals) wsp_print("'$'", m->channels[*signal].name);
    wsp_print("],'dependents':[");
    for EACH_IN(Entry, waiter, task->dependents)
        if (waiter->kind == OF_PROCESS)
            wsp_print("'process $'", m->processes[waiter->number].name);
        else
            wsp_print("'task #'", waiter->number);
    wsp_print("]}");
}

static void print_tensor(const Tensor *tensor) {
    wsp_print("'$':'", tensor->name);
    for (u64 byte = 0; byte < tensor->count * tensor->width; byte++) {
        putchar("0123456789abcdef"[tensor->data[byte] >> 4]);
        putchar("0123456789abcdef"[tensor->data[byte] & 15]);
    }
    putchar('"');
}

/* The makespan: the largest time of a process or worker. */
static u64 total_cycles(const Machine *m) {
    u64 total = 0;
    for EACH(p, m->processes_count) total = m->processes[p].time > total ? m->processes[p].time : total;
    for EACH(w, m->workers_count) total = m->workers[w].time > total ? m->workers[w].time : total;
    return total;
}

/* The members of the state after the brace that opens it. */
static void wsp_print_state(const Machine *m, int outcome) {
    static const char *const names[] = {"completed", "deadlock", "error", "running"};
    const Failure *failure = &m->failure;
    wsp_print("'outcome':'$','total_cycles':#,'time':#", names[outcome], total_cycles(m), m->now);
    wsp_print("'steps':#,'progress':#", m->steps, wsp_progress(m));
    if (failure->code != NULL)
        wsp_print("'error':{'code':'$','process':'$','statement':'$','time':#,'message':'$'}", failure->code,
                  failure->process, failure->statement, m->now, failure->message);
    wsp_print(m->spinning == NULL ? "'spinning':null" : "'spinning':'$'", m->spinning ? m->spinning->name : "");
    wsp_print("'processes':{");
    for EACH(each, m->processes_count) print_process(m, &m->processes[each]);
    wsp_print("},'channels':{");
    for EACH(each, m->channels_count) print_channel(&m->channels[each]);
    wsp_print("},'tasks':[");
    for (const Task *task = m->tasks.after; task != &m->tasks; task = task->after) print_task(m, task);
    wsp_print("],'workers':[");
    for EACH(each, m->workers_count) {
        const Worker *w = &m->workers[each];
        wsp_print("{'busy':#,'tasks':#", w->busy, w->tasks);
        wsp_print(w->task == NULL ? "'task':null}" : "'task':#}", w->task == NULL ? 0 : w->task->number);
    }
    wsp_print("],'kernels':{");
    for EACH(each, m->kernels_count)
        wsp_print("'$':{'runs':#,'cycles':#}", m->kernels[each].name, m->kernels[each].runs, m->kernels[each].cycles);
    wsp_print("},'stalls':{");
    for EACH(reason, STALL_REASONS)
        wsp_print("'$':{'count':#,'cycles':#}", m->stalls[reason].name, m->stalls[reason].count, m->stalls[reason].cycles);
    wsp_print("},'resources':{");
    for EACH(each, RESOURCES)
        wsp_print("'$':{'size':#,'used':#,'high_water':#}", m->resources[each].name, m->resources[each].size,
                  m->resources[each].used, m->resources[each].high_water);
    wsp_print("},'slots':{");
    for EACH(each, m->slots_count) wsp_print("'$':'#'", m->slots[each].name, m->slots[each].value);
    wsp_print("},'tensors':{");
    for EACH(each, m->tensors_count) print_tensor(&m->tensors[each]);
    wsp_print("},'assignments':[");
    for EACH_IN(uint32_t, worker, m->assignments) wsp_print("#", (u64)*worker);
    wsp_print("]}\n");
}

/* A run to its end, which is completion, an error or a deadlock. */

static void happen(Machine *m, Entry event) {
    Task *task = event.subject;
    switch (event.kind) {
    case KERNEL_ENDS:
        wsp_apply(m, task->statement, task->scalars);
        wsp_signal(m, task);
        break;
    case TOKEN_SEEN: wsp_token_seen(m, event.subject); break;
    case CLOSE_SEEN: wsp_close_seen(m, event.subject); break;
    default: ((Process *)event.subject)->runnable = true;
    }
}

/* Execute statements until the process waits; its time is when it last did something. */
static void go_on(Machine *m, Process *p) {
    p->runnable = false;
    if (p->waiting.reason == NOT_WAITING) p->time = m->now;
    m->current = p;
    m->turn_steps = 0;
    m->mark_of_progress = UINT64_MAX;
    while (!p->done && wsp_execute(m, p));
    m->current = NULL;
}

/* All that happens at one instant. */
static void instant(Machine *m) {
    bool moves = true;
    while (moves) {
        while (wsp_is_due(m)) happen(m, wsp_pop(&m->events));
        for EACH(each, m->processes_count)
            if (m->processes[each].runnable) go_on(m, &m->processes[each]);
        wsp_start_tasks(m);
        moves = wsp_is_due(m);
        for EACH(each, m->processes_count) moves |= m->processes[each].runnable;
    }
}

/* How the run ends; RUNNING where it was left. */
static int finish(Machine *m) {
    switch (setjmp(m->failed)) {
    case 0: break;
    case LEFT: return RUNNING;
    case SPINS:
        m->current->time = m->now;
        m->spinning = m->current;
        return DEADLOCK;
    default: return ERROR;
    }
    for (u64 instants = 0; instants == 0 || m->events.count > 0; instants++) {
        if (instants == m->instants) return RUNNING;
        if (m->events.count > 0) m->now = wsp_first(&m->events)->time;
        instant(m);
    }
    if (m->tasks.after != &m->tasks) return DEADLOCK;
    for EACH(each, m->processes_count)
        if (!m->processes[each].done) return DEADLOCK;
    return COMPLETED;
}

/* The state before the first instant, as far as tables leave it out. */
static void begin(Machine *m) {
    m->tasks.before = m->tasks.after = &m->tasks;
    m->workers = wsp_allocate(m->workers_count, sizeof(Worker));
    for EACH(each, m->processes_count) {
        Process *p = &m->processes[each];
        p->at = p->statements;
        p->runnable = true;
        p->waiting.reason = NOT_WAITING;
        p->closed = wsp_allocate(m->channels_count, sizeof(bool));
        p->operands = wsp_allocate(m->most_scalars + (size_t)1, sizeof(u64));
    }
    for EACH(each, m->channels_count) m->channels[each].seen_closed = m->channels[each].producers == 0;
}

/* Run a program, and print its state. True if it completed. */
static bool wsp_run(Machine *m) {
    begin(m);
    wsp_print("{");
    if (m->observed) wsp_print("'observed':[");
    int outcome = finish(m);
    if (m->observed) wsp_print("]");
    wsp_print_state(m, outcome);
    return outcome == COMPLETED;
}
