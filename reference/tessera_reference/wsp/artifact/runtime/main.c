/* The command line of a built program: inputs of a run by name, and one line of JSON for each run.
 *
 * Exit codes: 0 completed; 1 an error or a deadlock of the run; 2 arguments that do not fit; 70 out of memory.
 */
#include "runtime.h"

static void refuse(const char *what, const char *name, const char *problem) {
    fprintf(stderr, "error: %s %s: %s\n", what, name, problem);
    exit(2);
}

static bool is_named(const char *argument, const char *name) {
    size_t length = strlen(name);
    return strncmp(argument, name, length) == 0 && argument[length] == '=';
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

static void set_symbol(const ProgramInfo *info, Inputs *inputs, const char *argument) {
    for (uint32_t each = 0; each < info->symbol_count; each++) {
        const SymbolInfo *symbol = &info->symbols[each];
        if (!is_named(argument, symbol->name)) continue;
        inputs->symbols[each] = number("symbol", argument);
        if (symbol->width < 64 && inputs->symbols[each] >> symbol->width != 0)
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

/* Whether an argument sets the knob that is named by a prefix, a name and a suffix. */
static bool is_knob(const char *argument, const char *prefix, const char *name, const char *suffix) {
    const char *pieces[] = {prefix, name, suffix};
    for (int each = 0; each < 3; each++) {
        size_t length = strlen(pieces[each]);
        if (strncmp(argument, pieces[each], length) != 0) return false;
        argument += length;
    }
    return *argument == '=';
}

/* A knob: the size of a resource, the capacity of a channel, or a process without its scopes. */
static void set_knob(const ProgramInfo *info, Inputs *inputs, const char *argument) {
    for (int each = 0; each < RESOURCES; each++)
        if (is_named(argument, each == TASK_RING ? "task_window" : wsp_resource_names[each])) {
            inputs->sizes[each] = size(argument, 1);
            return;
        }
    for (uint32_t each = 0; each < info->channel_count; each++)
        if (is_knob(argument, "channel.", info->channels[each].name, ".capacity")) {
            inputs->capacities[each] = size(argument, 0);
            return;
        }
    for (uint32_t each = 0; each < info->process_count; each++)
        if (is_knob(argument, "scope.", info->processes[each].name, "")) {
            inputs->without_scopes[each] = size(argument, 1) > 0;
            return;
        }
    refuse("resource", argument, "there is no such resource");
}

/* The bytes of a tensor, little-endian, from a file. */
static void set_tensor(const ProgramInfo *info, Inputs *inputs, const char *argument) {
    for (uint32_t each = 0; each < info->tensor_count; each++) {
        const TensorInfo *tensor = &info->tensors[each];
        if (!is_named(argument, tensor->name)) continue;
        uint8_t *data = malloc((size_t)tensor->bytes + 1);
        FILE *file = fopen(strchr(argument, '=') + 1, "rb");
        if (data == NULL || file == NULL) refuse("tensor", argument, "its file cannot be read");
        if (fread(data, 1, (size_t)tensor->bytes + 1, file) != tensor->bytes)
            refuse("tensor", argument, "its file has another number of bytes than the tensor");
        for (u64 byte = 0; tensor->dtype == BOOL && byte < tensor->bytes; byte++)
            if (data[byte] > 1) refuse("tensor", argument, "has a byte that is no bool, expected 00 or 01");
        fclose(file);
        free(inputs->tensors[each]);
        inputs->tensors[each] = data;
        return;
    }
    refuse("tensor", argument, "the program has no such tensor");
}

static u64 steps(const char *digits) {
    u64 value = digits == NULL ? 0 : strtoull(digits, NULL, 10);
    if (value == 0 || digits[strspn(digits, "0123456789")] != 0 || strlen(digits) > 19)
        refuse("argument", "--max-steps", "expected a whole number from 1 after it");
    return value;
}

static void read_arguments(const ProgramInfo *info, Inputs *inputs, int count, char **given) {
    for (int each = 1; each < count; each += 2) {
        if (strcmp(given[each], "--max-steps") == 0) {
            inputs->max_steps = steps(each + 1 < count ? given[each + 1] : NULL);
            continue;
        }
        if (each + 1 == count || (each + 1 < count && strchr(given[each + 1], '=') == NULL))
            refuse("argument", given[each], "expected NAME=VALUE after it");
        if (strcmp(given[each], "--symbol") == 0)
            set_symbol(info, inputs, given[each + 1]);
        else if (strcmp(given[each], "--resource") == 0)
            set_knob(info, inputs, given[each + 1]);
        else if (strcmp(given[each], "--tensor") == 0)
            set_tensor(info, inputs, given[each + 1]);
        else
            refuse("argument", given[each], "expected --symbol NAME=VALUE, --resource NAME=SIZE, --tensor NAME=FILE or --max-steps N");
    }
}

static bool run(const ProgramInfo *info, int count, char **given) {
    Inputs inputs = {.max_steps = 100000000};
    inputs.symbols = calloc(info->symbol_count + (size_t)1, sizeof(u64));
    inputs.sizes = calloc(RESOURCES, sizeof(u64));
    inputs.capacities = calloc(info->channel_count + (size_t)1, sizeof(u64));
    inputs.without_scopes = calloc(info->process_count + (size_t)1, sizeof(bool));
    inputs.tensors = calloc(info->tensor_count + (size_t)1, sizeof(uint8_t *));
    if (inputs.symbols == NULL || inputs.sizes == NULL || inputs.capacities == NULL || inputs.without_scopes == NULL ||
        inputs.tensors == NULL)
        refuse("program", info->name, "no memory for its inputs");
    for (uint32_t each = 0; each < info->symbol_count; each++) inputs.symbols[each] = info->symbols[each].value;
    for (int each = 0; each < RESOURCES; each++) inputs.sizes[each] = info->sizes[each];
    for (uint32_t each = 0; each < info->channel_count; each++)
        inputs.capacities[each] = info->channels[each].capacity;
    read_arguments(info, &inputs, count, given);
    bool completed = wsp_run(info, &inputs);
    for (uint32_t each = 0; each < info->tensor_count; each++) free(inputs.tensors[each]);
    free(inputs.tensors);
    free(inputs.without_scopes);
    free(inputs.capacities);
    free(inputs.sizes);
    free(inputs.symbols);
    return completed;
}

int main(int count, char **given) {
    bool completed = true;
    for (size_t each = 0; each < wsp_program_count; each++) completed &= run(wsp_programs[each], count, given);
    return completed ? 0 : 1;
}
