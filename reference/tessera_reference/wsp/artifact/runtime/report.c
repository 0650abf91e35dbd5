/* The report of a deadlock (sections 3.3 and 3.4.3), as schemas/wsp_report.schema.json has it. */
#include "runtime.h"

static void print_resource(const Machine *m, int resource, u64 fullest) {
    u64 used = resource == READY_QUEUE ? fullest : m->used[resource];
    printf("{\"size\":%" PRIu64 ",\"used\":%" PRIu64 ",\"high_water\":%" PRIu64 "}", m->sizes[resource], used,
           m->high_water[resource]);
}

static void print_channels(const Machine *m) {
    const char *separator = "";
    for (uint32_t each = 0; each < m->info->channel_count; each++) {
        const Channel *c = &m->channels[each];
        if (c->takers.count == 0 && c->senders.count == 0) continue;
        printf("%s{\"name\":\"%s\",\"state\":\"%s\",\"capacity\":%" PRIu64 ",\"tokens\":%zu,\"closed\":%s}", separator,
               c->info->name, c->senders.count > 0 ? "full" : "empty", c->capacity, c->count,
               c->producers == 0 ? "true" : "false");
        separator = ",";
    }
}

static void print_waiting(const char *separator, const char *reason, const char *subject, const char *statement) {
    printf("%s\"reason\":\"%s\",\"for\":\"%s\",\"statement\":\"%s\"}", separator, reason, subject, statement);
}

/* The channel of the least index for whose token a task waits; NULL where there is none. */
static const char *awaited_channel(const Machine *m, const Task *task) {
    if (task->missing == 0 || task->site->wait_count == 0) return NULL;
    for (uint32_t index = 0; index < m->info->channel_count; index++) {
        const Heap *takers = &m->channels[index].takers;
        for (size_t each = 0; each < takers->count; each++)
            if (takers->entries[each].subject == task) return m->channels[index].info->name;
    }
    return NULL;
}

static void print_who_waits(const Machine *m) {
    const char *separator = "";
    for (uint32_t each = 0; each < m->info->process_count; each++) {
        const Process *p = &m->processes[each];
        if (p->waiting.reason == NOT_WAITING) continue;
        printf("%s{\"process\":\"%s\"", separator, p->info->name);
        print_waiting(",", wsp_reason_names[p->waiting.reason], p->waiting.subject, p->waiting.statement);
        separator = ",";
    }
    for (const Task *task = m->first_task; task != NULL; task = task->after) {
        const char *empty = awaited_channel(m, task);
        printf("%s{\"task\":%" PRIu64 ",\"process\":\"%s\"", separator, task->number, task->process->info->name);
        if (task->waiting.reason != NOT_WAITING)
            print_waiting(",", wsp_reason_names[task->waiting.reason], task->waiting.subject, task->site->statement);
        else if (empty != NULL)
            print_waiting(",", wsp_reason_names[CHANNEL_EMPTY_WAIT], empty, task->site->statement);
        else
            print_waiting(",", wsp_reason_names[TASK_WAIT], "tasks", task->site->statement);
        separator = ",";
    }
}

static void print_scopes(const Machine *m) {
    const char *separator = "";
    for (uint32_t each = 0; each < m->info->process_count; each++) {
        const Process *p = &m->processes[each];
        u64 depth = 0, held = 0;
        for (const Scope *scope = p->scope; scope != NULL; scope = scope->outer) {
            depth++;
            held += scope->slots;
        }
        if (depth == 0) continue;
        printf("%s{\"process\":\"%s\",\"depth\":%" PRIu64 ",\"held\":%" PRIu64 "}", separator, p->info->name, depth,
               held);
        separator = ",";
    }
}

/* Whether a process waits for a resource of which some scope holds a part. */
bool wsp_scopes_hold_what_is_wanted(const Machine *m) {
    u64 held[RESOURCES] = {0};
    for (uint32_t each = 0; each < m->info->process_count; each++)
        for (const Scope *scope = m->processes[each].scope; scope != NULL; scope = scope->outer) {
            held[TASK_RING] |= scope->slots;
            held[TENSORMAP_POOL] |= scope->entries;
            held[HEAP_ARENA] |= scope->heap;
        }
    for (uint32_t each = 0; each < m->info->process_count; each++) {
        int reason = m->processes[each].waiting.reason;
        if (reason < RESOURCES && held[reason] > 0) return true;
    }
    return false;
}

void wsp_print_deadlock(Machine *m) {
    u64 fullest = 0;
    for (uint32_t each = 0; each < m->info->workers; each++)
        if (m->workers[each].places > fullest) fullest = m->workers[each].places;
    printf("{");
    if (m->spinning != NULL) printf("\"spinning\":\"%s\",", m->spinning);
    printf("\"time\":%" PRIu64 ",\"window\":", m->now);
    print_resource(m, TASK_RING, fullest);
    printf(",\"resources\":{");
    for (int each = 0; each < RESOURCES; each++) {
        printf("%s\"%s\":", each ? "," : "", wsp_resource_names[each]);
        print_resource(m, each, fullest);
    }
    printf("},\"channels\":[");
    print_channels(m);
    printf("],\"waiting\":[");
    print_who_waits(m);
    printf("],\"cycle\":");
    wsp_print_cycle(m);
    printf(",\"scopes\":[");
    print_scopes(m);
    printf("],\"held_by_scopes\":%s,\"mitigations\":[", wsp_scopes_hold_what_is_wanted(m) ? "true" : "false");
    wsp_print_mitigations(m);
    printf("]}");
}
