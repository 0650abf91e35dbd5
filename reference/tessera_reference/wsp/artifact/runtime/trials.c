/* Another execution of a program that ended in a deadlock, with other settings and within a bound of steps. */
#include "runtime.h"

/* How far a run has come: the tasks that it issued, the kernels that ran, and the tokens sent and taken. */
u64 wsp_progress(const Machine *m) {
    u64 found = m->issued;
    for (uint32_t each = 0; each < m->info->kernel_count; each++) found += m->kernel_runs[each];
    for (uint32_t each = 0; each < m->info->channel_count; each++)
        found += m->channels[each].sent + m->channels[each].taken;
    return found;
}

/* The knobs whose shortage somebody waits for, with their sizes; the memory is the machine's. */
Settings wsp_exhausted(Machine *m, const Machine *of) {
    const ProgramInfo *info = of->info;
    bool lacking[RESOURCES] = {false};
    Settings found = {wsp_allocate(m, RESOURCES + (size_t)info->channel_count, sizeof(Setting)), 0};
    for (uint32_t each = 0; each < info->process_count; each++) {
        int reason = of->processes[each].waiting.reason;
        if (reason < RESOURCES) lacking[reason] = true;
    }
    for (uint32_t each = 0; each < RESOURCES; each++)
        if (lacking[each]) found.settings[found.count++] = (Setting){each, of->sizes[each]};
    for (uint32_t each = 0; each < info->channel_count; each++)
        if (of->channels[each].senders.count > 0)
            found.settings[found.count++] = (Setting){RESOURCES + each, of->channels[each].capacity};
    return found;
}

static u64 *copied(Machine *m, const u64 *values, size_t count) {
    u64 *found = wsp_allocate(m, count, sizeof(u64));
    memcpy(found, values, count * sizeof(u64));
    return found;
}

/* Knobs are numbered: resources, channels, then processes without their scopes. */
static Inputs changed_inputs(Machine *m, const Settings *changed) {
    const ProgramInfo *info = m->info;
    Inputs inputs = *m->inputs;
    inputs.sizes = copied(m, inputs.sizes, RESOURCES);
    inputs.capacities = copied(m, inputs.capacities, info->channel_count);
    inputs.without_scopes = wsp_allocate(m, info->process_count, sizeof(bool));
    memcpy(inputs.without_scopes, m->inputs->without_scopes, info->process_count * sizeof(bool));
    for (size_t each = 0; each < changed->count; each++) {
        const Setting *setting = &changed->settings[each];
        if (setting->knob < RESOURCES)
            inputs.sizes[setting->knob] = setting->value;
        else if (setting->knob < RESOURCES + info->channel_count)
            inputs.capacities[setting->knob - RESOURCES] = setting->value;
        else
            inputs.without_scopes[setting->knob - RESOURCES - info->channel_count] = true;
    }
    return inputs;
}

static u64 *demand(Machine *m, const Machine *of) {
    u64 *found = wsp_allocate(m, RESOURCES + (size_t)of->info->channel_count, sizeof(u64));
    memcpy(found, of->high_water, sizeof of->high_water);
    for (uint32_t each = 0; each < of->info->channel_count; each++) {
        u64 tokens = of->channels[each].sent + of->channels[each].senders.count;
        found[RESOURCES + each] = tokens < UINT32_MAX ? tokens : UINT32_MAX;
    }
    return found;
}

/* One execution with settings changed; `steps` is how many it took. */
Trial wsp_try(Machine *m, const Settings *changed, u64 most_steps, u64 *steps) {
    Trial found = {0};
    Inputs inputs = changed_inputs(m, changed);
    Machine *other = wsp_machine(m->info, &inputs, most_steps);
    found.outcome = wsp_finish(other);
    if (found.outcome == UNKNOWN && wsp_progress(other) > wsp_progress(m)) found.outcome = FURTHER;
    found.demand = demand(m, other);
    found.error = other->failure.code;
    if (found.outcome == DEADLOCK) found.exhausted = wsp_exhausted(m, other);
    *steps = other->steps;
    wsp_release_machine(other);
    return found;
}
