/* Mitigations of a deadlock (sections 3.3 and 3.4.3), each tried: executed again with it, the program went on.
 *
 * A knob stands alone where raising it alone is enough, with the smallest value that was found; else those that it
 * needs beside it stand with it. Where a scope holds what is lacking, its process is tried without scopes. Where nothing
 * helps, the program is to be restructured. The search takes a bounded number of steps (AMB-WSP-72).
 */
#include "runtime.h"

#define AMPLE UINT32_MAX /* a size that nothing in reach exhausts */
#define MOST_KNOBS 16
#ifndef WSP_LEAST_STEPS
#define WSP_LEAST_STEPS 200000
#endif

typedef struct {
    Machine *m;
    u64 left;
    const char *error, *separator;
    bool spent;
} Search;

typedef struct { u64 value; bool smallest; Trial trial; } Least;

static bool helps(const Trial *trial) { return trial->outcome == COMPLETED || trial->outcome == FURTHER; }

/* An execution may take a quarter of the steps that are left. */
static Trial tried(Search *s, const Settings *changed) {
    u64 steps;
    Trial found = wsp_try(s->m, changed, s->left / 4, &steps);
    s->left -= steps;
    if (found.outcome == ERROR && s->error == NULL) s->error = found.error;
    s->spent |= found.outcome == UNKNOWN;
    return found;
}

/* The smallest value of a knob that helps as the ample one does, its other settings as they are. */
static Least least(Search *s, Settings *settings, size_t place, u64 size, Trial ample) {
    Setting *setting = &settings->settings[place];
    u64 fails = size, stride = 1, most = ample.demand[setting->knob];
    Least found = {most > size + 1 ? most : size + 1, false, ample};
    while (found.value - fails > 1) {
        u64 middle = (fails + found.value) / 2;
        setting->value = fails + stride < middle ? fails + stride : middle;
        Trial trial = tried(s, settings);
        if (trial.outcome == UNKNOWN) return found;
        if (trial.outcome == ample.outcome) {
            found.value = setting->value;
            found.trial = trial;
            stride = 1;
        } else {
            fails = setting->value;
            stride *= 2;
        }
    }
    found.smallest = found.trial.outcome == COMPLETED;
    return found;
}

static void print_knob(const Search *s, uint32_t knob) {
    if (knob == TASK_RING)
        printf("task_window");
    else if (knob < RESOURCES)
        printf("%s", wsp_resource_names[knob]);
    else
        printf("channel.%s.capacity", s->m->info->channels[knob - RESOURCES].name);
}

static void print_others(const Search *s, const Setting *settings, size_t count) {
    for (size_t each = 0; each < count; each++) {
        printf("%s{\"knob\":\"", each ? "," : "");
        print_knob(s, settings[each].knob);
        printf("\",\"at_least\":%" PRIu64 "}", settings[each].value);
    }
}

/* A mitigation up to its reason, of which `print_effect` is the end. */
static void print_settings(Search *s, const Settings *settings, bool smallest) {
    printf("%s{\"knob\":\"", s->separator);
    print_knob(s, settings->settings[0].knob);
    printf("\",\"at_least\":%" PRIu64, settings->settings[0].value);
    if (settings->count > 1) {
        printf(",\"also\":[");
        print_others(s, settings->settings + 1, settings->count - 1);
        printf("]");
    }
    printf(",\"smallest\":%s,\"why\":\"", smallest ? "true" : "false");
    s->separator = ",";
}

static void print_effect(const Search *s, const Settings *settings, const Trial *trial) {
    printf("; with ");
    for (size_t each = 0; each < settings->count; each++) {
        printf("%s", each ? " and " : "");
        print_knob(s, settings->settings[each].knob);
        printf(" %" PRIu64, settings->settings[each].value);
    }
    printf(" the run %s\"}", trial->outcome == COMPLETED ? "completes" : "goes past this deadlock");
}

/* Each exhausted resource and full channel, if raising it is enough; whether any was. */
static bool single_knobs(Search *s, const Settings *exhausted) {
    bool any = false;
    for (size_t each = 0; each < exhausted->count; each++) {
        Setting setting = {exhausted->settings[each].knob, AMPLE};
        Settings alone = {&setting, 1};
        u64 size = exhausted->settings[each].value;
        Trial trial = tried(s, &alone);
        if (!helps(&trial)) continue;
        Least found = least(s, &alone, 0, size, trial);
        setting.value = found.value;
        print_settings(s, &alone, found.smallest);
        if (setting.knob < RESOURCES)
            print_knob(s, setting.knob);
        else
            printf("channel.%s", s->m->info->channels[setting.knob - RESOURCES].name);
        printf(" is exhausted at %" PRIu64, size);
        print_effect(s, &alone, &found.trial);
        any = true;
    }
    return any;
}

/* Knobs lowered one after the other, those that are not needed left out. */
static void least_of_each(Search *s, const Settings *sizes, Trial trial) {
    Settings chosen = {wsp_allocate(s->m, sizes->count, sizeof(Setting)), sizes->count};
    Setting *settings = chosen.settings;
    bool all_smallest = true;
    size_t place = 0;
    for (size_t each = 0; each < sizes->count; each++) settings[each] = (Setting){sizes->settings[each].knob, AMPLE};
    for (size_t each = 0; each < sizes->count; each++) {
        if (chosen.count > 1) {
            Setting left_out = settings[place];
            chosen.count--;
            memmove(settings + place, settings + place + 1, (chosen.count - place) * sizeof(Setting));
            Trial without = tried(s, &chosen);
            if (helps(&without)) {
                trial = without;
                continue;
            }
            memmove(settings + place + 1, settings + place, (chosen.count - place) * sizeof(Setting));
            settings[place] = left_out;
            chosen.count++;
        }
        Least found = least(s, &chosen, place, sizes->settings[each].value, trial);
        settings[place++].value = found.value;
        all_smallest &= found.smallest;
        trial = found.trial;
    }
    print_settings(s, &chosen, all_smallest);
    printf("one deadlock follows upon another");
    print_effect(s, &chosen, &trial);
}

static bool is_among(const Settings *settings, uint32_t knob) {
    for (size_t each = 0; each < settings->count; each++)
        if (settings->settings[each].knob == knob) return true;
    return false;
}

/* Several knobs, where one deadlock follows upon another; whether they helped. */
static bool knobs_together(Search *s, Settings exhausted) {
    size_t knobs = RESOURCES + (size_t)s->m->info->channel_count;
    Settings raised = {wsp_allocate(s->m, knobs, sizeof(Setting)), 0};
    Settings ample = {wsp_allocate(s->m, knobs, sizeof(Setting)), 0};
    while (raised.count < MOST_KNOBS) {
        size_t before = raised.count;
        for (size_t each = 0; each < exhausted.count; each++) {
            Setting *lacking = &exhausted.settings[each];
            if (is_among(&ample, lacking->knob)) continue;
            raised.settings[raised.count++] = *lacking;
            ample.settings[ample.count++] = (Setting){lacking->knob, AMPLE};
        }
        if (raised.count == before) return false;
        Trial trial = tried(s, &ample);
        if (helps(&trial)) {
            least_of_each(s, &raised, trial);
            return true;
        }
        if (trial.outcome != DEADLOCK) return false;
        exhausted = trial.exhausted;
    }
    return false;
}

/* Each process whose scopes hold something, if it goes on without them. */
static bool scopes(Search *s) {
    const ProgramInfo *info = s->m->info;
    bool any = false;
    if (!wsp_scopes_hold_what_is_wanted(s->m)) return false;
    for (uint32_t each = 0; each < info->process_count; each++) {
        u64 held = 0;
        for (const Scope *scope = s->m->processes[each].scope; scope != NULL; scope = scope->outer) held += scope->slots;
        if (held == 0) continue;
        Setting setting = {RESOURCES + info->channel_count + each, 1};
        Settings alone = {&setting, 1};
        Trial trial = tried(s, &alone);
        if (!helps(&trial)) continue;
        printf("%s{\"knob\":\"scope.%s\",\"why\":\"its scopes hold the outputs of %" PRIu64
               " complete tasks: without them the run goes on, so end them sooner\"}",
               s->separator, info->processes[each].name, held);
        s->separator = ",";
        any = true;
    }
    return any;
}

/* Why no setting helps. */
static void print_restructure(const Search *s, const Settings *exhausted) {
    printf("{\"knob\":\"restructure\",\"why\":\"");
    if (s->error != NULL)
        printf("with larger settings the run ends with an error: %s", s->error);
    else if (s->spent)
        printf("no setting was found within the bound of the search: change who waits for whom");
    else if (exhausted->count == 0)
        printf("no resource is exhausted and no channel is full: change who waits for whom");
    else
        printf("the wait remains however large the settings are: change who waits for whom");
    printf("\"}");
}

/* The mitigations of the deadlock in which the machine ended, as JSON with commas between them. */
void wsp_print_mitigations(Machine *m) {
    Search s = {m, WSP_LEAST_STEPS + 8 * wsp_progress(m), NULL, "", false};
    Settings exhausted = wsp_exhausted(m, m);
    bool any = single_knobs(&s, &exhausted) || knobs_together(&s, exhausted);
    any |= scopes(&s);
    if (!any) print_restructure(&s, &exhausted);
}
