/* A run to its end, which is completion, an error or a deadlock. */
#include "runtime.h"

static void prepare_processes(Machine *m) {
    const ProgramInfo *info = m->info;
    m->processes = wsp_allocate(m, info->process_count, sizeof(Process));
    m->stalled = wsp_allocate(m, info->process_count, sizeof(Process *));
    for (uint32_t each = 0; each < info->process_count; each++) {
        Process *p = &m->processes[each];
        p->info = &info->processes[each];
        p->index = each;
        p->waiting.reason = NOT_WAITING;
        p->without_scopes = m->inputs->without_scopes[each];
        p->operands = wsp_allocate(m, info->most_scalars + (size_t)1, sizeof(u64));
        p->rounds = wsp_allocate(m, p->info->loop_depth, sizeof(u64));
        p->counts = wsp_allocate(m, p->info->loop_depth, sizeof(u64));
        p->signalling = wsp_allocate(m, p->info->produce_count, sizeof(u64));
        p->closed = wsp_allocate(m, p->info->produce_count, sizeof(bool));
        wsp_make_runnable(m, p);
    }
}

static void prepare_channels(Machine *m) {
    const ProgramInfo *info = m->info;
    m->channels = wsp_allocate(m, info->channel_count, sizeof(Channel));
    for (uint32_t each = 0; each < info->channel_count; each++) {
        m->channels[each].info = &info->channels[each];
        m->channels[each].index = each;
        m->channels[each].capacity = m->inputs->capacities[each];
    }
    for (uint32_t each = 0; each < info->process_count; each++)
        for (uint32_t place = 0; place < info->processes[each].produce_count; place++)
            m->channels[info->processes[each].produces[place]].producers++;
    for (uint32_t each = 0; each < info->channel_count; each++)
        m->channels[each].seen_closed = m->channels[each].producers == 0;
}

static void prepare_values(Machine *m) {
    const ProgramInfo *info = m->info;
    const Inputs *inputs = m->inputs;
    for (int each = 0; each < RESOURCES; each++) m->sizes[each] = inputs->sizes[each];
    m->symbols = inputs->symbols;
    m->slots = wsp_allocate(m, info->slot_count, sizeof(u64));
    m->tensors = wsp_allocate(m, info->tensor_count, sizeof(uint8_t *));
    m->writers = wsp_allocate(m, info->tensor_count, sizeof(Task *));
    m->readers = wsp_allocate(m, info->tensor_count, sizeof(Reader *));
    for (uint32_t each = 0; each < info->tensor_count; each++) {
        const TensorInfo *tensor = &info->tensors[each];
        const uint8_t *initial = inputs->tensors[each] != NULL ? inputs->tensors[each] : tensor->initial;
        m->tensors[each] = wsp_allocate(m, (size_t)tensor->bytes, 1);
        if (initial != NULL) memcpy(m->tensors[each], initial, (size_t)tensor->bytes);
    }
}

static void prepare(Machine *m) {
    const ProgramInfo *info = m->info;
    m->current_index = -1;
    prepare_values(m);
    m->kernel_runs = wsp_allocate(m, info->kernel_count, sizeof(u64));
    m->kernel_cycles = wsp_allocate(m, info->kernel_count, sizeof(u64));
    m->workers = wsp_allocate(m, info->workers, sizeof(Worker));
    for (uint32_t each = 0; each < info->workers; each++) m->workers[each].index = each;
    prepare_channels(m);
    prepare_processes(m);
}

static void happen(Machine *m, const Entry *event) {
    switch (event->kind) {
    case KERNEL_ENDS: wsp_kernel_ends(m, event->subject); break;
    case TOKEN_SEEN: wsp_token_seen(m, event->subject); break;
    case CLOSE_SEEN: wsp_close_seen(m, event->subject); break;
    default: wsp_make_runnable(m, event->subject);
    }
}

/* Execute steps until the process blocks; its time is when it last did something. */
static void go_on(Machine *m, Process *p) {
    p->queued = false;
    p->moved = p->waiting.reason == NOT_WAITING;
    m->current = p;
    m->turn_steps = 0;
    m->marked = false;
    p->info->run(m, p);
    m->current = NULL;
    if (p->moved) p->time = m->now;
}

/* All that happens at one instant. */
static void instant(Machine *m) {
    do {
        size_t due = wsp_collect_due(m);
        for (size_t each = 0; each < due; each++) happen(m, &m->due[each]);
        for (Process *p; (p = wsp_next_runnable(m)) != NULL;) go_on(m, p);
        wsp_start_tasks(m);
    } while (!wsp_is_settled(m));
}

static void blame(Machine *m) {
    Process *p = m->current;
    if (p != NULL) p->time = m->now;
    if (m->failure.process == NULL) {
        m->failure.process = p != NULL ? p->info->name : "";
        m->failure.statement = p != NULL ? p->info->statements[p->pc] : "";
    }
}

/* How the run ends; UNKNOWN where it was left. */
int wsp_finish(Machine *m) {
    switch (setjmp(m->failed)) {
    case 0: break;
    case LEFT: return UNKNOWN;
    case SPINS:
        m->current->time = m->now;
        m->spinning = m->current->info->name;
        return DEADLOCK;
    default: blame(m); return ERROR;
    }
    do {
        if (m->events.count > 0) m->now = m->events.entries[0].time;
        instant(m);
    } while (m->events.count > 0);
    if (m->first_task != NULL) return DEADLOCK;
    for (uint32_t each = 0; each < m->info->process_count; each++)
        if (!m->processes[each].done) return DEADLOCK;
    return COMPLETED;
}

/* A run that has not begun. */
Machine *wsp_machine(const ProgramInfo *info, const Inputs *inputs, u64 most_steps) {
    Machine *m = calloc(1, sizeof(Machine));
    if (m == NULL) {
        fprintf(stderr, "error: no memory for a run\n");
        exit(70);
    }
    m->info = info;
    m->inputs = inputs;
    m->most_steps = most_steps;
    prepare(m);
    return m;
}

void wsp_release_machine(Machine *m) {
    wsp_release_all(m);
    free(m);
}

/* Run a program, and print its result; whether it completed. */
bool wsp_run(const ProgramInfo *info, const Inputs *inputs) {
    Machine *m = wsp_machine(info, inputs, UINT64_MAX);
    int outcome = wsp_finish(m);
    wsp_print_result(m, outcome);
    wsp_release_machine(m);
    return outcome == COMPLETED;
}
