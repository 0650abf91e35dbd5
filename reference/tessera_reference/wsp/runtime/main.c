/* The command line of a built program: inputs of the run by name, and its state as one line of JSON.
 *
 * Exit codes: 0 completed; 1 an error or a deadlock of the run; 2 arguments that do not fit; 70 out of memory.
 */
#include "program.h"

static void refuse(const char *option, const char *argument, const char *problem) {
    fprintf(stderr, "error: %s %s: %s\n", option, argument, problem);
    exit(2);
}

static bool begins(const char *argument, const char *name) { return strncmp(argument, name, strlen(name)) == 0; }

static void set_number(const Input *input, const char *argument) {
    const char *digits = argument + strlen(input->name);
    char problem[80];
    snprintf(problem, sizeof problem, "expected a number from %" PRIu64 " to %" PRIu64, input->least, input->most);
    errno = 0;
    *input->value = strtoull(digits, NULL, 10);
    bool is_number = *digits != 0 && digits[strspn(digits, "0123456789")] == 0 && errno == 0;
    if (!is_number || *input->value < input->least || *input->value > input->most)
        refuse(input->option, argument, problem);
}

/* The bytes of a tensor, little-endian, from a file. */
static void set_bytes(const Tensor *tensor, const char *argument) {
    size_t size = (size_t)tensor->count * tensor->width;
    FILE *file = fopen(strchr(argument, '=') + 1, "rb");
    if (file == NULL) refuse("--tensor", argument, "its file cannot be read");
    if (fread(tensor->data, 1, size, file) != size || fgetc(file) != EOF)
        refuse("--tensor", argument, "its file has another number of bytes than the tensor");
    for (size_t byte = 0; tensor->dtype == BOOL && byte < size; byte++)
        if (tensor->data[byte] > 1) refuse("--tensor", argument, "has a byte that is no bool, expected 00 or 01");
    fclose(file);
}

/* An option and its argument, which begins with the name of an input and a =; a bound has no name. */
static void set(Machine *m, const char *option, const char *argument) {
    for EACH(place, m->inputs_count)
        if (strcmp(option, m->inputs[place].option) == 0 && begins(argument, m->inputs[place].name)) {
            set_number(&m->inputs[place], argument);
            return;
        }
    for EACH(place, m->tensors_count)
        if (strcmp(option, "--tensor") == 0 && begins(argument, m->tensors[place].name) &&
            argument[strlen(m->tensors[place].name)] == '=') {
            set_bytes(&m->tensors[place], argument);
            return;
        }
    refuse(option, argument,
           "the program has no such input; expected --symbol NAME=VALUE, --resource NAME=SIZE, --tensor NAME=FILE, "
           "--max-steps N, --instants N, --enough N or --observe");
}

int main(int count, char **arguments) {
    Machine *m = &wsp_machine;
    for (int place = 1; place < count; place++) {
        if (strcmp(arguments[place], "--observe") == 0) {
            m->observed = true;
        } else {
            set(m, arguments[place], place + 1 < count ? arguments[place + 1] : "");
            place++;
        }
    }
    return wsp_run(m) ? 0 : 1;
}
