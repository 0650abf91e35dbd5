/* A run to its end, which is completion, an error or a deadlock, and its state. */
#include "program.h"

enum { COMPLETED, DEADLOCK, ERROR, RUNNING };

/* The state of a run as one line of JSON: the members of schemas/wsp_result.schema.json but the report of a deadlock,
 * which `deadlock.py` makes from `waiting`. */

/* Members of a list or object with commas between them, for `each` below `count`. */
#define PRINT_EACH(count, ...)                            \
    for (u64 each = 0; each < (count); each++) {          \
        if (each > 0) printf(",");                        \
        printf(__VA_ARGS__);                              \
    }
#define QUOTED "\"%s\""
#define NUMBER "%" PRIu64

static u64 larger(u64 a, u64 b) { return a > b ? a : b; }

static void print_times(const Machine *m) {
    const ProgramInfo *info = m->info;
    u64 makespan = 0;
    for (uint32_t each = 0; each < info->process_count; each++) makespan = larger(makespan, m->processes[each].time);
    for (uint32_t each = 0; each < info->workers; each++) makespan = larger(makespan, m->workers[each].time);
    printf("\"total_cycles\":" NUMBER ",\"processes\":{", makespan);
    PRINT_EACH(info->process_count, QUOTED ":" NUMBER, info->processes[each].name, m->processes[each].time)
    printf("},\"workers\":[");
    PRINT_EACH(info->workers, "{\"busy\":" NUMBER ",\"tasks\":" NUMBER "}", m->workers[each].busy, m->workers[each].tasks)
    printf("],\"kernels\":{");
    PRINT_EACH(info->kernel_count, QUOTED ":{\"runs\":" NUMBER ",\"cycles\":" NUMBER "}", info->kernels[each].name,
               m->kernel_runs[each], m->kernel_cycles[each])
    printf("}");
}

/* A stall that lasts; its cycles up to now are added. */
static void print_current(const Machine *m, const Waiting *waiting, u64 *cycles) {
    cycles[waiting->reason] += m->now - waiting->since;
    printf(",\"reason\":" QUOTED ",\"since\":" NUMBER ",\"for\":" QUOTED "}", wsp_reason_names[waiting->reason],
           waiting->since, waiting->subject);
}

static void print_stalls(const Machine *m) {
    u64 cycles[STALL_REASONS];
    const char *separator = "";
    memcpy(cycles, m->stall_cycles, sizeof cycles);
    printf(",\"current_stalls\":[");
    for (uint32_t each = 0; each < m->info->process_count; each++) {
        const Process *p = &m->processes[each];
        if (p->waiting.reason >= STALL_REASONS) continue;
        printf("%s{\"process\":" QUOTED, separator, p->info->name);
        print_current(m, &p->waiting, cycles);
        separator = ",";
    }
    for (uint32_t each = 0; each < m->info->workers; each++) {
        const Task *task = m->workers[each].task;
        if (task == NULL || task->waiting.reason == NOT_WAITING) continue;
        printf("%s{\"task\":" NUMBER, separator, task->number);
        print_current(m, &task->waiting, cycles);
        separator = ",";
    }
    printf("],\"stalls\":{");
    PRINT_EACH(STALL_REASONS, QUOTED ":{\"count\":" NUMBER ",\"cycles\":" NUMBER "}", wsp_reason_names[each],
               m->stall_count[each], cycles[each])
    printf("}");
}

static void print_values(const Machine *m) {
    const ProgramInfo *info = m->info;
    u64 fullest = 0;
    for (uint32_t each = 0; each < info->workers; each++) fullest = larger(fullest, m->workers[each].places);
    printf(",\"used\":{");
    PRINT_EACH(RESOURCES, QUOTED ":" NUMBER, wsp_resource_names[each], each == READY_QUEUE ? fullest : m->used[each])
    printf("},\"high_water\":{");
    PRINT_EACH(RESOURCES, QUOTED ":" NUMBER, wsp_resource_names[each], m->high_water[each])
    printf("},\"channels\":{");
    PRINT_EACH(info->channel_count, QUOTED ":{\"sent\":" NUMBER ",\"taken\":" NUMBER ",\"left\":%zu}",
               info->channels[each].name, m->channels[each].sent, m->channels[each].taken, m->channels[each].count)
    printf("},\"slots\":{");
    PRINT_EACH(info->slot_count, QUOTED ":\"" NUMBER "\"", info->slots[each], m->slots[each])
    printf("},\"tensors\":{");
    for (uint32_t each = 0; each < info->tensor_count; each++) {
        printf("%s" QUOTED ":\"", each ? "," : "", info->tensors[each].name);
        for (u64 byte = 0; byte < info->tensors[each].bytes; byte++) {
            putchar("0123456789abcdef"[m->tensors[each][byte] >> 4]);
            putchar("0123456789abcdef"[m->tensors[each][byte] & 15]);
        }
        printf("\"");
    }
    printf("},\"assignments\":[");
    PRINT_EACH(m->issued, "%" PRIu32, m->assignments[each])
    printf("]");
}

/* Who waits for whom, by numbers. */

static void print_scopes(const Scope *scope) {
    if (scope == NULL) return;
    print_scopes(scope->outer);
    printf("%s[" NUMBER "," NUMBER "," NUMBER "]", scope->outer ? "," : "", scope->slots, scope->entries, scope->heap);
}

static void print_process(const Machine *m, const Process *p) {
    const char *separator = "";
    printf("{\"done\":%s,\"waiting\":", p->done ? "true" : "false");
    if (p->waiting.reason == NOT_WAITING)
        printf("null");
    else
        printf("{\"reason\":" QUOTED ",\"for\":" QUOTED ",\"statement\":" QUOTED "}", wsp_reason_names[p->waiting.reason],
               p->waiting.subject, p->waiting.statement);
    printf(",\"closed\":[");
    for (uint32_t each = 0; each < m->info->channel_count; each++)
        if (p->closed[each]) {
            printf("%s%" PRIu32, separator, each);
            separator = ",";
        }
    printf("],\"scopes\":[");
    print_scopes(p->scope);
    printf("]}");
}

static void print_channel(const Channel *c) {
    const char *separator = "";
    printf("{\"capacity\":" NUMBER ",\"tokens\":%zu,\"senders\":%zu,\"producers\":%" PRIu32
           ",\"takers\":%zu,\"tasks\":[", c->capacity, c->count, c->senders.count, c->producers, c->takers.count);
    for (size_t each = 0; each < c->takers.count; each++)
        if (c->takers.entries[each].kind == TASK_PARTY) {
            printf("%s" NUMBER, separator, c->takers.entries[each].number);
            separator = ",";
        }
    printf("]}");
}

static void print_task(const Machine *m, const Task *task) {
    const Site *site = task->site;
    printf("{\"task\":" NUMBER ",\"process\":%" PRIu32 ",\"statement\":" QUOTED ",\"worker\":%" PRIu32 ",\"started\":%s,",
           task->number, task->process->index, task->statement, task->worker->index, task->started ? "true" : "false");
    if (task->waiting.reason == NOT_WAITING)
        printf("\"full\":null");
    else
        printf("\"full\":" QUOTED, task->waiting.subject);
    printf(",\"holds\":[1,%" PRIu32 "," NUMBER "," NUMBER "],\"signals\":[", site->writes.count, task->nodes, site->heap);
    PRINT_EACH(site->signals.count, "%" PRIu32, m->info->numbers[site->signals.first + each])
    printf("],\"dependents\":[");
    for (const Node *node = task->dependents; node != NULL; node = node->next)
        printf(NUMBER "%s", ((Task *)node->subject)->number, node->next ? "," : "");
    printf("],\"watchers\":[");
    for (const Node *node = task->watchers; node != NULL; node = node->next)
        printf("%" PRIu32 "%s", ((Process *)node->subject)->index, node->next ? "," : "");
    printf("]}");
}

/* A process or worker that there is not is -1. */
static void print_waiting(const Machine *m) {
    printf(",\"waiting\":{\"time\":" NUMBER ",\"spinning\":%" PRId64 ",\"sizes\":[", m->now,
           m->spinning == NULL ? -1 : (int64_t)m->spinning->index);
    PRINT_EACH(RESOURCES, NUMBER, m->sizes[each])
    printf("],\"processes\":[");
    for (uint32_t each = 0; each < m->info->process_count; each++) {
        if (each) printf(",");
        print_process(m, &m->processes[each]);
    }
    printf("],\"channels\":[");
    for (uint32_t each = 0; each < m->info->channel_count; each++) {
        if (each) printf(",");
        print_channel(&m->channels[each]);
    }
    printf("],\"tasks\":[");
    for (const Task *task = m->first_task; task != NULL; task = task->after) {
        print_task(m, task);
        if (task->after != NULL) printf(",");
    }
    printf("],\"workers\":[");
    PRINT_EACH(m->info->workers, "%" PRId64, m->workers[each].task == NULL ? -1 : (int64_t)m->workers[each].task->number)
    printf("]}");
}

/* The members of the result after the brace that opens it. */
static void wsp_print_result(Machine *m, int outcome) {
    static const char *const names[] = {"completed", "deadlock", "error", "running"};
    const Failure *failure = &m->failure;
    printf("\"outcome\":" QUOTED ",\"statistics\":{", names[outcome]);
    print_times(m);
    print_stalls(m);
    print_values(m);
    printf("},\"steps\":" NUMBER, m->steps);
    if (failure->code != NULL)
        printf(",\"error\":{\"code\":" QUOTED ",\"process\":" QUOTED ",\"statement\":" QUOTED ",\"time\":" NUMBER
               ",\"message\":" QUOTED "}",
               failure->code, failure->process, failure->statement, m->now, failure->message);
    if (outcome == DEADLOCK || outcome == RUNNING) print_waiting(m);
    printf("}\n");
}

/* A run to its end, which is completion, an error or a deadlock. */

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
        p->signalling = wsp_allocate(m, info->channel_count, sizeof(u64));
        p->closed = wsp_allocate(m, info->channel_count, sizeof(bool));
        p->pc = p->info->first_step;
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
        for (uint32_t place = 0; place < info->processes[each].produces.count; place++)
            m->channels[info->numbers[info->processes[each].produces.first + place]].producers++;
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
    if (p->waiting.reason == NOT_WAITING) p->time = m->now;
    m->current = p;
    m->turn_steps = 0;
    m->marked = false;
    wsp_go_on(m, p);
    m->current = NULL;
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
        m->failure.statement = p != NULL ? m->info->steps[p->pc].path : "";
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
        if (instants == m->inputs->instants) return RUNNING;
        if (m->events.count > 0) m->now = m->events.entries[0].time;
        instant(m);
    }
    if (m->first_task != NULL) return DEADLOCK;
    for (uint32_t each = 0; each < m->info->process_count; each++)
        if (!m->processes[each].done) return DEADLOCK;
    return COMPLETED;
}

/* Run a program, and print its result; whether it completed. */
static bool wsp_run(const ProgramInfo *info, const Inputs *inputs) {
    Machine *m = calloc(1, sizeof(Machine));
    if (m == NULL) {
        fprintf(stderr, "error: no memory for a run\n");
        exit(70);
    }
    m->info = info;
    m->inputs = inputs;
    m->separator = "";
    prepare(m);
    printf("{");
    if (inputs->observe) printf("\"observed\":[");
    int outcome = finish(m);
    if (inputs->observe) printf("],");
    wsp_print_result(m, outcome);
    wsp_release_all(m);
    free(m);
    return outcome == COMPLETED;
}
