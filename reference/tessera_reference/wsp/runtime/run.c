/* A run to its end, which is completion, an error or a deadlock, and its state. */
#include "program.h"

enum { COMPLETED, DEADLOCK, ERROR, RUNNING };

/* The state of a run as one line of JSON: the members of schemas/wsp_result.schema.json but the report of a deadlock,
 * which `deadlock.py` makes from `waiting`. */

static u64 larger(u64 a, u64 b) { return a > b ? a : b; }

/* The first resources by name. */
static void print_resources(const u64 *values, uint32_t count) {
    for EACH(resource, count) wsp_print("'$':#", wsp_resource_names[resource], values[resource]);
    wsp_print("}");
}

/* A stall that lasts; its cycles up to now count. */
static void print_current(Machine *m, const Waiting *waiting) {
    m->stall_cycles[waiting->reason] += m->now - waiting->since;
    wsp_print("'reason':'$','since':#,'for':'$'}", wsp_reason_names[waiting->reason], waiting->since, waiting->subject);
}

static void print_stalls(Machine *m) {
    wsp_print("'current_stalls':[");
    for EACH(process, m->info->processes_count) {
        const Process *p = &m->processes[process];
        if (p->waiting.reason >= STALL_REASONS) continue;
        wsp_print("{'process':'$'", p->info->name);
        print_current(m, &p->waiting);
    }
    for EACH(w, m->info->workers) {
        const Task *task = m->workers[w].task;
        if (task == NULL || task->waiting.reason == NOT_WAITING) continue;
        wsp_print("{'task':#", task->number);
        print_current(m, &task->waiting);
    }
    wsp_print("],'stalls':{");
    for EACH(reason, STALL_REASONS)
        wsp_print("'$':{'count':#,'cycles':#}", wsp_reason_names[reason], m->stall_count[reason],
                  m->stall_cycles[reason]);
    wsp_print("}");
}

static void print_tensor(const TensorInfo *tensor, const uint8_t *bytes) {
    wsp_print("'$':'", tensor->name);
    for (u64 byte = 0; byte < tensor->bytes; byte++) {
        putchar("0123456789abcdef"[bytes[byte] >> 4]);
        putchar("0123456789abcdef"[bytes[byte] & 15]);
    }
    putchar('"');
}

static void print_statistics(Machine *m) {
    const ProgramInfo *info = m->info;
    u64 makespan = 0;
    for EACH(p, info->processes_count) makespan = larger(makespan, m->processes[p].time);
    for EACH(w, info->workers) makespan = larger(makespan, m->workers[w].time);
    wsp_print("'total_cycles':#,'processes':{", makespan);
    for EACH(p, info->processes_count) wsp_print("'$':#", info->processes[p].name, m->processes[p].time);
    wsp_print("},'workers':[");
    for EACH(w, info->workers) wsp_print("{'busy':#,'tasks':#}", m->workers[w].busy, m->workers[w].tasks);
    wsp_print("],'kernels':{");
    for EACH(k, info->kernels_count)
        wsp_print("'$':{'runs':#,'cycles':#}", info->kernels[k].name, m->kernel_runs[k], m->kernel_cycles[k]);
    wsp_print("}");
    print_stalls(m);
    for EACH(w, info->workers) m->used[READY_QUEUE] = larger(m->used[READY_QUEUE], m->workers[w].places);
    wsp_print("'used':{");
    print_resources(m->used, RESOURCES);
    wsp_print("'high_water':{");
    print_resources(m->high_water, RESOURCES);
    wsp_print("'channels':{");
    for EACH(channel, info->channels_count) {
        const Channel *c = &m->channels[channel];
        wsp_print("'$':{'sent':#,'taken':#,'left':#}", c->info->name, c->sent, c->taken, (u64)c->tokens.count);
    }
    wsp_print("},'slots':{");
    for EACH(slot, info->slots_count) wsp_print("'$':'#'", info->slots[slot], m->slots[slot]);
    wsp_print("},'tensors':{");
    for EACH(tensor, info->tensors_count) print_tensor(&info->tensors[tensor], m->tensors[tensor]);
    wsp_print("},'assignments':[");
    for EACH_IN(uint32_t, worker, m->assignments) wsp_print("#", (u64)*worker);
    wsp_print("]");
}

/* Who waits for whom. */

static void print_process(const Machine *m, const Process *p) {
    wsp_print(p->done ? "'$':{'done':true" : "'$':{'done':false", p->info->name);
    if (p->waiting.reason == NOT_WAITING)
        wsp_print("'waiting':null");
    else
        wsp_print("'waiting':{'reason':'$','for':'$','statement':'$'}", wsp_reason_names[p->waiting.reason],
                  p->waiting.subject, p->at->path);
    wsp_print("'closed':[");
    for EACH(channel, m->info->channels_count)
        if (p->closed[channel]) wsp_print("'$'", m->info->channels[channel].name);
    wsp_print("],'scopes':[");
    for EACH_IN(Scope, scope, p->scopes) {
        wsp_print("{");
        print_resources(scope->held, READY_QUEUE);
    }
    wsp_print("]}");
}

static void print_channel(const Channel *c) {
    wsp_print("'$':{'capacity':#,'tokens':#,'senders':#,'producers':#,'takers':#,'tasks':[", c->info->name, *c->capacity,
              (u64)c->tokens.count, (u64)c->senders.count, (u64)c->producers, (u64)c->takers.count);
    for EACH_IN(Entry, taker, c->takers)
        if (taker->kind == OF_TASK) wsp_print("#", taker->number);
    wsp_print("]}");
}

static void print_task(const Machine *m, const Task *task) {
    u64 holds[RESOURCES] = {[READY_QUEUE] = task->worker->task != task};
    memcpy(holds, task->holds, sizeof task->holds);
    wsp_print("{'task':#,'process':'$','statement':'$','worker':#", task->number, task->process->info->name,
              task->statement, (u64)task->worker->index);
    wsp_print(task->waiting.reason == NOT_WAITING ? "'full':null" : "'full':'$'", task->waiting.subject);
    wsp_print("'holds':{");
    print_resources(holds, RESOURCES);
    wsp_print("'signals':[");
    for EACH_OF(signal, task->site->signals) wsp_print("'$'", m->info->channels[*signal].name);
    wsp_print("],'dependents':[");
    for EACH_IN(Task *, dependent, task->dependents) wsp_print("#", (*dependent)->number);
    wsp_print("],'watchers':[");
    for EACH_IN(Process *, watcher, task->watchers) wsp_print("'$'", (*watcher)->info->name);
    wsp_print("]}");
}

/* The task of an idle worker is -1. */
static void print_waiting(const Machine *m) {
    wsp_print("'waiting':{'time':#", m->now);
    wsp_print(m->spinning == NULL ? "'spinning':null" : "'spinning':'$'", m->spinning ? m->spinning->info->name : "");
    wsp_print("'sizes':{");
    print_resources(m->sizes, RESOURCES);
    wsp_print("'processes':{");
    for EACH(process, m->info->processes_count) print_process(m, &m->processes[process]);
    wsp_print("},'channels':{");
    for EACH(channel, m->info->channels_count) print_channel(&m->channels[channel]);
    wsp_print("},'tasks':[");
    for (const Task *task = m->tasks.after; task != &m->tasks; task = task->after) print_task(m, task);
    wsp_print("],'workers':[");
    for EACH(w, m->info->workers) {
        const Task *task = m->workers[w].task;
        wsp_print(task == NULL ? "-1" : "#", task == NULL ? 0 : task->number);
    }
    wsp_print("]}");
}

/* The members of the result after the brace that opens it. */
static void wsp_print_result(Machine *m, int outcome) {
    static const char *const names[] = {"completed", "deadlock", "error", "running"};
    const Failure *failure = &m->failure;
    wsp_print("'outcome':'$','statistics':{", names[outcome]);
    print_statistics(m);
    wsp_print("},'steps':#,'progress':#", m->steps, wsp_progress(m));
    if (failure->code != NULL)
        wsp_print("'error':{'code':'$','process':'$','statement':'$','time':#,'message':'$'}", failure->code,
                  failure->process, failure->statement, m->now, failure->message);
    if (outcome == DEADLOCK || outcome == RUNNING) print_waiting(m);
    wsp_print("}\n");
}

/* A run to its end, which is completion, an error or a deadlock. */

static void prepare_processes(Machine *m) {
    const ProgramInfo *info = m->info;
    m->processes = wsp_allocate(m, info->processes_count, sizeof(Process));
    for EACH(each, info->processes_count) {
        Process *p = &m->processes[each];
        p->info = &info->processes[each];
        p->index = each;
        p->without_scopes = m->sizes + RESOURCES + info->channels_count + each;
        p->waiting.reason = NOT_WAITING;
        p->operands = wsp_allocate(m, info->most_scalars + (size_t)1, sizeof(u64));
        p->signalling = wsp_allocate(m, info->channels_count, sizeof(u64));
        p->closed = wsp_allocate(m, info->channels_count, sizeof(bool));
        p->loops = wsp_allocate(m, p->info->statements_count, sizeof(Loop));
        p->at = p->info->statements;
        for EACH_OF(channel, p->info->produces) m->channels[*channel].producers++;
        p->runnable = true;
    }
}

static void prepare_values(Machine *m) {
    const ProgramInfo *info = m->info;
    m->inputs = wsp_allocate(m, info->inputs_count, sizeof(u64));
    m->sizes = m->inputs + info->symbols_count;
    m->slots = wsp_allocate(m, info->slots_count, sizeof(u64));
    m->tensors = wsp_allocate(m, info->tensors_count, sizeof(uint8_t *));
    m->writers = wsp_allocate(m, info->tensors_count, sizeof(Task *));
    m->readers = wsp_allocate(m, info->tensors_count, sizeof(Vector));
    m->kernel_runs = wsp_allocate(m, info->kernels_count, sizeof(u64));
    m->kernel_cycles = wsp_allocate(m, info->kernels_count, sizeof(u64));
    for EACH(each, info->inputs_count) m->inputs[each] = info->inputs[each].value;
    for EACH(each, info->tensors_count) {
        const TensorInfo *tensor = &info->tensors[each];
        m->tensors[each] = wsp_allocate(m, (size_t)tensor->bytes, 1);
        if (tensor->initial != NULL) memcpy(m->tensors[each], tensor->initial, (size_t)tensor->bytes);
    }
}

/* What the program says of a run; the caller may change inputs, tensors and bounds before it begins. */
static void wsp_prepare(Machine *m, const ProgramInfo *info) {
    *m = (Machine){.info = info, .max_steps = 100000000, .enough = UINT64_MAX, .instants = UINT64_MAX};
    m->tasks.before = m->tasks.after = &m->tasks;
    prepare_values(m);
    m->workers = wsp_allocate(m, info->workers, sizeof(Worker));
    for EACH(each, info->workers) m->workers[each].index = each;
    m->channels = wsp_allocate(m, info->channels_count, sizeof(Channel));
    for EACH(each, info->channels_count) {
        m->channels[each].info = &info->channels[each];
        m->channels[each].index = each;
        m->channels[each].capacity = m->sizes + RESOURCES + each;
    }
    prepare_processes(m);
    for EACH(each, info->channels_count) m->channels[each].seen_closed = m->channels[each].producers == 0;
}

static void happen(Machine *m, Entry event) {
    Task *task = event.subject;
    switch (event.kind) {
    case KERNEL_ENDS:
        wsp_apply(m, task->site, task->scalars);
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
        for EACH(each, m->info->processes_count)
            if (m->processes[each].runnable) go_on(m, &m->processes[each]);
        wsp_start_tasks(m);
        moves = wsp_is_due(m);
        for EACH(each, m->info->processes_count) moves |= m->processes[each].runnable;
    }
}

static void blame(Machine *m) {
    Process *p = m->current;
    if (p != NULL) p->time = m->now;
    if (m->failure.process == NULL) {
        m->failure.process = p != NULL ? p->info->name : "";
        m->failure.statement = p != NULL ? p->at->path : "";
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
    default: blame(m); return ERROR;
    }
    for (u64 instants = 0; instants == 0 || m->events.count > 0; instants++) {
        if (instants == m->instants) return RUNNING;
        if (m->events.count > 0) m->now = wsp_first(&m->events)->time;
        instant(m);
    }
    if (m->tasks.after != &m->tasks) return DEADLOCK;
    for EACH(each, m->info->processes_count)
        if (!m->processes[each].done) return DEADLOCK;
    return COMPLETED;
}

/* Run a program, and print its result. True if it completed. */
static bool wsp_run(Machine *m) {
    wsp_print("{");
    if (m->observed) wsp_print("'observed':[");
    int outcome = finish(m);
    if (m->observed) wsp_print("]");
    wsp_print_result(m, outcome);
    wsp_release_all(m);
    return outcome == COMPLETED;
}
