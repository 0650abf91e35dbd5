/* The command line of a built program: inputs of a run by name, and one line of JSON for each run.
 *
 * Exit codes: 0 completed; 1 an error or a deadlock of the run; 2 arguments that do not fit; 70 out of memory.
 */
#include "program.h"

static void refuse(const char *what, const char *name, const char *problem) {
    fprintf(stderr, "error: %s %s: %s\n", what, name, problem);
    exit(2);
}

/* The text after `prefix name suffix =` of an argument; NULL where it does not begin so. */
static const char *value_of(const char *argument, const char *prefix, const char *name, const char *suffix) {
    const char *pieces[] = {prefix, name, suffix, "="};
    for EACH(piece, 4) {
        size_t length = strlen(pieces[piece]);
        if (strncmp(argument, pieces[piece], length) != 0) return NULL;
        argument += length;
    }
    return argument;
}

/* A number from `least` to `most`. */
static u64 number(const char *what, const char *argument, const char *text, u64 least, u64 most, const char *problem) {
    if (*text == 0 || text[strspn(text, "0123456789")] != 0) refuse(what, argument, "expected decimal digits");
    errno = 0;
    u64 value = strtoull(text, NULL, 10);
    if (errno != 0) refuse(what, argument, "is beyond 64 bits");
    if (value < least || value > most) refuse(what, argument, problem);
    return value;
}

static void set_symbol(Machine *m, const char *argument) {
    for EACH(symbol, m->info->symbol_count) {
        const char *text = value_of(argument, "", m->info->symbols[symbol].name, "");
        if (text == NULL) continue;
        u64 most = UINT64_MAX >> (64 - m->info->symbols[symbol].width);
        m->symbols[symbol] = number("symbol", argument, text, 0, most, "does not fit its width");
        return;
    }
    refuse("symbol", argument, "the program has no such symbol");
}

static u64 size(const char *argument, const char *text, u64 least) {
    return number("resource", argument, text, least, UINT32_MAX, "is no size, expected 1 to 4294967295");
}

/* A knob: the size of a resource, the capacity of a channel, or a process without its scopes. */
static void set_knob(Machine *m, const char *argument) {
    const char *text;
    for EACH(resource, RESOURCES) {
        text = value_of(argument, "", resource == TASK_RING ? "task_window" : wsp_resource_names[resource], "");
        if (text == NULL) continue;
        m->sizes[resource] = size(argument, text, 1);
        return;
    }
    for EACH(channel, m->info->channel_count) {
        text = value_of(argument, "channel.", m->info->channels[channel].name, ".capacity");
        if (text == NULL) continue;
        m->channels[channel].capacity = size(argument, text, 0);
        return;
    }
    for EACH(process, m->info->process_count) {
        text = value_of(argument, "scope.", m->info->processes[process].name, "");
        if (text == NULL) continue;
        m->processes[process].without_scopes = size(argument, text, 1) > 0;
        return;
    }
    refuse("resource", argument, "there is no such resource");
}

/* The bytes of a tensor, little-endian, from a file. */
static void set_tensor(Machine *m, const char *argument) {
    for EACH(place, m->info->tensor_count) {
        const TensorInfo *tensor = &m->info->tensors[place];
        const char *path = value_of(argument, "", tensor->name, "");
        if (path == NULL) continue;
        FILE *file = fopen(path, "rb");
        if (file == NULL) refuse("tensor", argument, "its file cannot be read");
        if (fread(m->tensors[place], 1, (size_t)tensor->bytes, file) != tensor->bytes || fgetc(file) != EOF)
            refuse("tensor", argument, "its file has another number of bytes than the tensor");
        for (u64 byte = 0; tensor->dtype == BOOL && byte < tensor->bytes; byte++)
            if (m->tensors[place][byte] > 1) refuse("tensor", argument, "has a byte that is no bool, expected 00 or 01");
        fclose(file);
        return;
    }
    refuse("tensor", argument, "the program has no such tensor");
}

static u64 count_after(const char *option, const char *value, u64 least) {
    return number("argument", option, value, least, UINT64_MAX, "expected a whole number from 1 after it");
}

/* An option and its value. */
static void set(Machine *m, const char *option, const char *value) {
    if (strcmp(option, "--max-steps") == 0)
        m->max_steps = count_after(option, value, 1);
    else if (strcmp(option, "--enough") == 0)
        m->enough = count_after(option, value, 0);
    else if (strcmp(option, "--instants") == 0)
        m->instants = count_after(option, value, 0);
    else if (strchr(value, '=') == NULL)
        refuse("argument", option, "expected NAME=VALUE after it");
    else if (strcmp(option, "--symbol") == 0)
        set_symbol(m, value);
    else if (strcmp(option, "--resource") == 0)
        set_knob(m, value);
    else if (strcmp(option, "--tensor") == 0)
        set_tensor(m, value);
    else
        refuse("argument", option,
               "expected --symbol NAME=VALUE, --resource NAME=SIZE, --tensor NAME=FILE, --max-steps N, --instants N, "
               "--enough N or --observe");
}

static bool run(const ProgramInfo *info, int count, char **arguments) {
    Machine *m = wsp_prepared(info);
    for (int place = 1; place < count; place++) {
        if (strcmp(arguments[place], "--observe") == 0) {
            m->observed = true;
        } else {
            set(m, arguments[place], place + 1 < count ? arguments[place + 1] : "");
            place++;
        }
    }
    return wsp_run(m);
}

/* All programs in turn, or the one whose number is given by `--only N` before all other arguments. */
int main(int count, char **arguments) {
    bool completed = true, chosen = count > 2 && strcmp(arguments[1], "--only") == 0;
    size_t first = chosen ? strtoul(arguments[2], NULL, 10) : 0, end = chosen ? first + 1 : wsp_program_count;
    if (end > wsp_program_count) refuse("argument", "--only", "there is no such program");
    for (size_t program = first; program < end; program++)
        completed &= run(wsp_programs[program], chosen ? count - 2 : count, chosen ? arguments + 2 : arguments);
    return completed ? 0 : 1;
}
