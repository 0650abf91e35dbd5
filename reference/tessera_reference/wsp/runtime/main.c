/* The command line of a built program: inputs of a run by name, and one line of JSON for each run.
 *
 * Exit codes: 0 completed; 1 an error or a deadlock of the run; 2 arguments that do not fit; 70 out of memory.
 */
#include "program.h"

static void refuse(const char *what, const char *name, const char *problem) {
    fprintf(stderr, "error: %s %s: %s\n", what, name, problem);
    exit(2);
}

/* Whether an argument is `prefix name suffix = ...`. */
static bool is_named(const char *argument, const char *prefix, const char *name, const char *suffix) {
    const char *pieces[] = {prefix, name, suffix};
    for (int each = 0; each < 3; each++) {
        size_t length = strlen(pieces[each]);
        if (strncmp(argument, pieces[each], length) != 0) return false;
        argument += length;
    }
    return *argument == '=';
}

static u64 number(const char *what, const char *argument) {
    const char *text = strchr(argument, '=') + 1;
    u64 value = 0;
    if (*text == 0) refuse(what, argument, "expected decimal digits");
    for (; *text != 0; text++) {
        if (*text < '0' || *text > '9') refuse(what, argument, "expected decimal digits");
        unsigned digit = (unsigned)(*text - '0');
        if (value > (UINT64_MAX - digit) / 10) refuse(what, argument, "is beyond 64 bits");
        value = 10 * value + digit;
    }
    return value;
}

static void set_symbol(Machine *m, const char *argument) {
    for EACH(each, m->info->symbol_count) {
        const SymbolInfo *symbol = &m->info->symbols[each];
        if (!is_named(argument, "", symbol->name, "")) continue;
        m->symbols[each] = number("symbol", argument);
        if (symbol->width < 64 && m->symbols[each] >> symbol->width != 0)
            refuse("symbol", argument, "does not fit its width");
        return;
    }
    refuse("symbol", argument, "the program has no such symbol");
}

static u64 size(const char *argument, u64 least) {
    u64 value = number("resource", argument);
    if (value < least || value > UINT32_MAX) refuse("resource", argument, "is no size, expected 1 to 4294967295");
    return value;
}

/* A knob: the size of a resource, the capacity of a channel, or a process without its scopes. */
static void set_knob(Machine *m, const char *argument) {
    for EACH(each, RESOURCES)
        if (is_named(argument, "", each == TASK_RING ? "task_window" : wsp_resource_names[each], "")) {
            m->sizes[each] = size(argument, 1);
            return;
        }
    for EACH(each, m->info->channel_count)
        if (is_named(argument, "channel.", m->info->channels[each].name, ".capacity")) {
            m->channels[each].capacity = size(argument, 0);
            return;
        }
    for EACH(each, m->info->process_count)
        if (is_named(argument, "scope.", m->info->processes[each].name, "")) {
            m->processes[each].without_scopes = size(argument, 1) > 0;
            return;
        }
    refuse("resource", argument, "there is no such resource");
}

/* The bytes of a tensor, little-endian, from a file. */
static void set_tensor(Machine *m, const char *argument) {
    for EACH(each, m->info->tensor_count) {
        const TensorInfo *tensor = &m->info->tensors[each];
        if (!is_named(argument, "", tensor->name, "")) continue;
        FILE *file = fopen(strchr(argument, '=') + 1, "rb");
        if (file == NULL) refuse("tensor", argument, "its file cannot be read");
        if (fread(m->tensors[each], 1, (size_t)tensor->bytes, file) != tensor->bytes || fgetc(file) != EOF)
            refuse("tensor", argument, "its file has another number of bytes than the tensor");
        for (u64 byte = 0; tensor->dtype == BOOL && byte < tensor->bytes; byte++)
            if (m->tensors[each][byte] > 1) refuse("tensor", argument, "has a byte that is no bool, expected 00 or 01");
        fclose(file);
        return;
    }
    refuse("tensor", argument, "the program has no such tensor");
}

/* An option of the run itself; false where it is another one. `value` is NULL where nothing follows. */
static bool set_bound(Machine *m, const char *option, const char *value) {
    u64 *bound = strcmp(option, "--max-steps") == 0  ? &m->max_steps
                 : strcmp(option, "--enough") == 0   ? &m->enough
                 : strcmp(option, "--instants") == 0 ? &m->instants
                                                     : NULL;
    if (bound == NULL) return false;
    bool digits = value != NULL && value[0] != 0 && value[strspn(value, "0123456789")] == 0 && strlen(value) <= 19;
    *bound = digits ? strtoull(value, NULL, 10) : 0;
    if (!digits || (bound == &m->max_steps && *bound == 0))
        refuse("argument", option, "expected a whole number from 1 after it");
    return true;
}

static bool run(const ProgramInfo *info, int count, char **given) {
    Machine *m = wsp_prepared(info);
    for (int each = 1; each < count; each += 2) {
        const char *value = each + 1 < count ? given[each + 1] : NULL;
        if (strcmp(given[each], "--observe") == 0) {
            m->observed = true;
            each--;
            continue;
        }
        if (set_bound(m, given[each], value)) continue;
        if (value == NULL || strchr(value, '=') == NULL)
            refuse("argument", given[each], "expected NAME=VALUE after it");
        if (strcmp(given[each], "--symbol") == 0)
            set_symbol(m, value);
        else if (strcmp(given[each], "--resource") == 0)
            set_knob(m, value);
        else if (strcmp(given[each], "--tensor") == 0)
            set_tensor(m, value);
        else
            refuse("argument", given[each],
                   "expected --symbol NAME=VALUE, --resource NAME=SIZE, --tensor NAME=FILE, --max-steps N, "
                   "--instants N, --enough N or --observe");
    }
    return wsp_run(m);
}

/* All programs in turn, or the one whose number is given by `--only N` before all other arguments. */
int main(int count, char **given) {
    bool completed = true, chosen = count > 2 && strcmp(given[1], "--only") == 0;
    size_t first = chosen ? strtoul(given[2], NULL, 10) : 0, end = chosen ? first + 1 : wsp_program_count;
    if (end > wsp_program_count) refuse("argument", "--only", "there is no such program");
    for (size_t each = first; each < end; each++)
        completed &= run(wsp_programs[each], chosen ? count - 2 : count, chosen ? given + 2 : given);
    return completed ? 0 : 1;
}
