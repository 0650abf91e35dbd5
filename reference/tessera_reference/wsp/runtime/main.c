/* The command line of a built program: inputs of a run by name, and one line of JSON for each run.
 *
 * Exit codes: 0 completed; 1 an error or a deadlock of the run; 2 arguments that do not fit; 70 out of memory.
 */
#include "program.h"

static void refuse(const char *what, const char *name, const char *problem) {
    fprintf(stderr, "error: %s %s: %s\n", what, name, problem);
    exit(2);
}

static bool is_named(const char *argument, const char *name) {
    size_t length = strlen(name);
    return strncmp(argument, name, length) == 0 && argument[length] == '=';
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

/* A symbol, the size of a resource, the capacity of a channel, or a process without its scopes. */
static void set_input(Machine *m, InputKind kind, const char *argument, const char *value) {
    static const char *const nouns[] = {"symbol", "resource"};
    static const char *const unknown[] = {"the program has no such symbol", "there is no such resource"};
    static const char *const unfit[] = {"does not fit its width", "is no size, expected 1 to 4294967295"};
    for EACH(place, m->info->inputs_count) {
        const InputInfo *input = &m->info->inputs[place];
        if (input->kind != kind || !is_named(argument, input->name)) continue;
        m->inputs[place] = number(nouns[kind], argument, value, input->least, input->most, unfit[kind]);
        return;
    }
    refuse(nouns[kind], argument, unknown[kind]);
}

/* The bytes of a tensor, little-endian, from a file. */
static void set_tensor(Machine *m, const char *argument, const char *path) {
    for EACH(place, m->info->tensors_count) {
        const TensorInfo *tensor = &m->info->tensors[place];
        if (!is_named(argument, tensor->name)) continue;
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

/* An option and its value. */
static void set(Machine *m, const char *option, const char *value) {
    const struct { const char *name; u64 least, *value; } bounds[] = {
        {"--max-steps", 1, &m->max_steps}, {"--enough", 0, &m->enough}, {"--instants", 0, &m->instants}
    };
    const char *sign = strchr(value, '='), *problem = "expected a whole number from 1 after it";
    for EACH(place, 3)
        if (strcmp(option, bounds[place].name) == 0) {
            *bounds[place].value = number("argument", option, value, bounds[place].least, UINT64_MAX, problem);
            return;
        }
    if (sign == NULL)
        refuse("argument", option, "expected NAME=VALUE after it");
    else if (strcmp(option, "--symbol") == 0)
        set_input(m, SYMBOL_INPUT, value, sign + 1);
    else if (strcmp(option, "--resource") == 0)
        set_input(m, RESOURCE_INPUT, value, sign + 1);
    else if (strcmp(option, "--tensor") == 0)
        set_tensor(m, value, sign + 1);
    else
        refuse("argument", option,
               "expected --symbol NAME=VALUE, --resource NAME=SIZE, --tensor NAME=FILE, --max-steps N, --instants N, "
               "--enough N or --observe");
}

static bool run(const ProgramInfo *info, int count, char **arguments) {
    Machine machine, *m = &machine;
    wsp_prepare(m, info);
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
