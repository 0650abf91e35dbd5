/* The result of a run as schemas/wsp_result.schema.json has it: one line of JSON. */
#include "runtime.h"

static u64 larger(u64 a, u64 b) { return a > b ? a : b; }

static void print_times(const Machine *m) {
    u64 makespan = 0;
    for (uint32_t each = 0; each < m->info->process_count; each++) makespan = larger(makespan, m->processes[each].time);
    for (uint32_t each = 0; each < m->info->workers; each++) makespan = larger(makespan, m->workers[each].time);
    printf("\"total_cycles\":%" PRIu64 ",\"processes\":{", makespan);
    for (uint32_t each = 0; each < m->info->process_count; each++)
        printf("%s\"%s\":%" PRIu64, each ? "," : "", m->processes[each].info->name, m->processes[each].time);
    printf("},\"workers\":[");
    for (uint32_t each = 0; each < m->info->workers; each++)
        printf("%s{\"busy\":%" PRIu64 ",\"tasks\":%" PRIu64 "}", each ? "," : "", m->workers[each].busy,
               m->workers[each].tasks);
    printf("],\"kernels\":{");
    for (uint32_t each = 0; each < m->info->kernel_count; each++)
        printf("%s\"%s\":{\"runs\":%" PRIu64 ",\"cycles\":%" PRIu64 "}", each ? "," : "", m->info->kernels[each],
               m->kernel_runs[each], m->kernel_cycles[each]);
    printf("}");
}

/* A stall that lasts; its cycles up to now are added. */
static void print_current(const Machine *m, const Waiting *waiting, u64 *cycles) {
    cycles[waiting->reason] += m->now - waiting->since;
    printf(",\"reason\":\"%s\",\"since\":%" PRIu64 ",\"for\":\"%s\"}", wsp_reason_names[waiting->reason],
           waiting->since, waiting->subject);
}

static void print_stalls(const Machine *m) {
    u64 cycles[STALL_REASONS];
    const char *separator = "";
    memcpy(cycles, m->stall_cycles, sizeof cycles);
    printf("\"current_stalls\":[");
    for (uint32_t each = 0; each < m->info->process_count; each++) {
        const Process *p = &m->processes[each];
        if (p->waiting.reason >= STALL_REASONS) continue;
        printf("%s{\"process\":\"%s\"", separator, p->info->name);
        print_current(m, &p->waiting, cycles);
        separator = ",";
    }
    for (uint32_t each = 0; each < m->info->workers; each++) {
        const Task *task = m->workers[each].task;
        if (task == NULL || task->waiting.reason == NOT_WAITING) continue;
        printf("%s{\"task\":%" PRIu64, separator, task->number);
        print_current(m, &task->waiting, cycles);
        separator = ",";
    }
    printf("],\"stalls\":{");
    for (int each = 0; each < STALL_REASONS; each++)
        printf("%s\"%s\":{\"count\":%" PRIu64 ",\"cycles\":%" PRIu64 "}", each ? "," : "", wsp_reason_names[each],
               m->stall_count[each], cycles[each]);
    printf("}");
}

static void print_resources(const Machine *m) {
    u64 fullest = 0;
    for (uint32_t each = 0; each < m->info->workers; each++) fullest = larger(fullest, m->workers[each].places);
    printf("\"used\":{");
    for (int each = 0; each < RESOURCES; each++)
        printf("%s\"%s\":%" PRIu64, each ? "," : "", wsp_resource_names[each],
               each == READY_QUEUE ? fullest : m->used[each]);
    printf("},\"high_water\":{");
    for (int each = 0; each < RESOURCES; each++)
        printf("%s\"%s\":%" PRIu64, each ? "," : "", wsp_resource_names[each], m->high_water[each]);
    printf("}");
}

static void print_values(const Machine *m) {
    printf("\"channels\":{");
    for (uint32_t each = 0; each < m->info->channel_count; each++) {
        const Channel *c = &m->channels[each];
        printf("%s\"%s\":{\"sent\":%" PRIu64 ",\"taken\":%" PRIu64 ",\"left\":%zu}", each ? "," : "", c->info->name,
               c->sent, c->taken, c->count);
    }
    printf("},\"slots\":{");
    for (uint32_t each = 0; each < m->info->slot_count; each++)
        printf("%s\"%s\":\"%" PRIu64 "\"", each ? "," : "", m->info->slots[each], m->slots[each]);
    printf("},\"tensors\":{");
    for (uint32_t each = 0; each < m->info->tensor_count; each++) {
        printf("%s\"%s\":\"", each ? "," : "", m->info->tensors[each].name);
        for (u64 byte = 0; byte < m->info->tensors[each].bytes; byte++) {
            putchar("0123456789abcdef"[m->tensors[each][byte] >> 4]);
            putchar("0123456789abcdef"[m->tensors[each][byte] & 15]);
        }
        printf("\"");
    }
    printf("},\"assignments\":[");
    for (size_t each = 0; each < m->issued; each++) printf("%s%" PRIu32, each ? "," : "", m->assignments[each]);
    printf("]");
}

void wsp_print_result(Machine *m, int outcome) {
    const char *name = outcome == COMPLETED ? "completed" : outcome == DEADLOCK ? "deadlock" : "error";
    printf("{\"outcome\":\"%s\",\"statistics\":{", name);
    print_times(m);
    printf(",");
    print_stalls(m);
    printf(",");
    print_resources(m);
    printf(",");
    print_values(m);
    printf("}");
    if (m->failure.code != NULL)
        printf(",\"error\":{\"code\":\"%s\",\"process\":\"%s\",\"statement\":\"%s\",\"time\":%" PRIu64
               ",\"message\":\"%s\"}",
               m->failure.code, m->failure.process, m->failure.statement, m->now, m->failure.message);
    if (outcome == DEADLOCK) {
        printf(",\"deadlock\":");
        wsp_print_deadlock(m);
    }
    printf("}\n");
}
