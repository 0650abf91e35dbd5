/* Graph IR in MLIR's generic form, as an image carries it, read into functions of operations.
 *
 *   %r, ... = "name"(%a, ...) ({ regions }) {attributes} : (types) -> types
 *
 * Values are numbered within their function. Types and attributes that this runtime does not know are passed over; who
 * uses them is unsupported.
 */
#include "acme.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 64, MOST_NAMES = 4096 };

typedef struct {
  Arena* arena;
  Graph* graph;
  size_t function_room;
  const char *next, *end;
  const char* module;
  const char* names[MOST_NAMES]; /* of the values of the function that is read */
  int name_count, depth;
  bool failed;
} Reader;

static Block* read_block(Reader* reader);

/* Tokens */

static void skip_blanks(Reader* reader) {
  while (reader->next < reader->end && isspace((unsigned char)*reader->next)) reader->next++;
}

static bool accept(Reader* reader, const char* text) {
  size_t length = strlen(text);
  skip_blanks(reader);
  if ((size_t)(reader->end - reader->next) < length || memcmp(reader->next, text, length)) return false;
  reader->next += length;
  return true;
}

static void expect(Reader* reader, const char* text) {
  if (!accept(reader, text)) reader->failed = true;
}

static const char* read_word(Reader* reader, const char* more) {
  skip_blanks(reader);
  const char* first = reader->next;
  while (reader->next < reader->end && *reader->next &&
         (isalnum((unsigned char)*reader->next) || strchr(more, *reader->next)))
    reader->next++;
  if (reader->next == first) reader->failed = true;
  const char* word = arena_text(reader->arena, first, (size_t)(reader->next - first));
  return word ? word : "";
}

static const char* read_text(Reader* reader) {
  expect(reader, "\"");
  const char* first = reader->next;
  while (reader->next < reader->end && *reader->next != '"') reader->next += *reader->next == '\\' ? 2 : 1;
  if (reader->next >= reader->end) {
    reader->failed = true;
    return "";
  }
  const char* text = arena_text(reader->arena, first, (size_t)(reader->next - first));
  reader->next++;
  return text ? text : "";
}

/* Lists in the arena that grow by doubling */
static void* grown(Reader* reader, void* list, size_t count, size_t size) {
  if (count & (count - 1)) return list;
  void* more = arena_take(reader->arena, (count ? 2 * count : 1) * size);
  if (!more) reader->failed = true;
  else if (count) memcpy(more, list, count * size);
  return more;
}
#define APPEND(reader, list, count, value)                           \
  do {                                                               \
    (list) = grown(reader, list, count, sizeof *(list));             \
    if (!(reader)->failed) (list)[(count)++] = (value);              \
  } while (0)

/* Values */

static int value_of(Reader* reader, const char* name) {
  for (int i = reader->name_count - 1; i >= 0; i--)
    if (strcmp(reader->names[i], name) == 0) return i;
  reader->failed = true;
  return 0;
}

static int new_value(Reader* reader, const char* name) {
  if (reader->name_count == MOST_NAMES) {
    reader->failed = true;
    return 0;
  }
  reader->names[reader->name_count] = name;
  return reader->name_count++;
}

static const char* read_value_name(Reader* reader) {
  expect(reader, "%");
  return read_word(reader, "_$.-");
}

/* Types: a dtype, or tensor<AxBxdtype>. Extents are those of the values that flow; the dtype alone is read here. */

static int dtype_of_tensor(const char* text) {
  while (text && !dtype_of_name(text)) {
    text = strchr(text, 'x');
    if (text) text++;
  }
  return text ? dtype_of_name(text) : 0;
}

static Type read_type(Reader* reader) {
  Type type = {0};
  const char* word = read_word(reader, "_.!");
  if (!accept(reader, "<")) {
    type.dtype = dtype_of_name(word);
    return type;
  }
  const char* first = reader->next;
  for (int open = 1; reader->next < reader->end && open; reader->next++) {
    if (*reader->next == '<') open++;
    if (*reader->next == '>' && --open == 0) break;
  }
  const char* inner = arena_text(reader->arena, first, (size_t)(reader->next - first));
  expect(reader, ">");
  if (accept(reader, "[")) { /* an address space */
    while (reader->next < reader->end && *reader->next != ']') reader->next++;
    expect(reader, "]");
  } else if (strcmp(word, "tensor") == 0 && inner) {
    type.dtype = dtype_of_tensor(inner);
  }
  return type;
}

/* Types in parentheses, as many as wanted are kept */
static void read_types(Reader* reader, Type* kept, size_t wanted, bool exactly) {
  size_t count = 0;
  expect(reader, "(");
  while (!reader->failed && !accept(reader, ")")) {
    Type type = read_type(reader);
    if (count < wanted && kept) kept[count] = type;
    count++;
    if (!accept(reader, ",")) {
      expect(reader, ")");
      break;
    }
  }
  if (exactly && count != wanted) reader->failed = true;
}

/* Attributes */

static Attribute* read_attribute_value(Reader* reader);

static void read_list(Reader* reader, Attribute* out) {
  out->kind = ATTRIBUTE_LIST;
  while (!reader->failed && !accept(reader, "]")) {
    APPEND(reader, out->elements, out->count, read_attribute_value(reader));
    if (!accept(reader, ",")) {
      expect(reader, "]");
      break;
    }
  }
}

static void read_number(Reader* reader, Attribute* out) {
  char digits[64];
  size_t length = 0;
  while (reader->next < reader->end && length + 1 < sizeof digits && *reader->next &&
         (isalnum((unsigned char)*reader->next) || strchr("+-.", *reader->next)))
    digits[length++] = *reader->next++;
  digits[length] = 0;
  char* end;
  out->number = strtod(digits, &end);
  if (!length || *end) reader->failed = true;
  bool is_integer = strspn(digits, "-0123456789") == length;
  out->kind = is_integer ? ATTRIBUTE_INTEGER : ATTRIBUTE_FLOAT;
  if (is_integer) out->integer = strtoll(digits, NULL, 10);
}

/* What is none of the kinds that are known, up to the comma or brace that ends it */
static void pass_over(Reader* reader, Attribute* out) {
  int open = 0;
  out->kind = ATTRIBUTE_OTHER;
  for (; reader->next < reader->end; reader->next++) {
    char c = *reader->next;
    bool is_arrow = c == '>' && reader->next[-1] == '-';
    if (!open && (c == ',' || c == '}' || c == ']')) return;
    if (strchr("([{<", c) && c) open++;
    if (strchr(")]}>", c) && c && !is_arrow) open--;
  }
  reader->failed = true;
}

static Attribute* read_attribute_value(Reader* reader) {
  Attribute* out = arena_take(reader->arena, sizeof *out);
  if (!out || ++reader->depth > DEEPEST) {
    reader->failed = true;
    return out;
  }
  skip_blanks(reader);
  char c = reader->next < reader->end ? *reader->next : 0;
  if (c == '"') {
    out->kind = ATTRIBUTE_TEXT;
    out->text = read_text(reader);
  } else if (accept(reader, "[")) {
    read_list(reader, out);
  } else if (accept(reader, "true") || accept(reader, "false")) {
    out->kind = ATTRIBUTE_BOOL;
    out->integer = reader->next[-2] == 'u';
  } else if (isdigit((unsigned char)c) || (c == '-' && reader->next + 1 < reader->end && reader->next[1] != '>')) {
    read_number(reader, out);
  } else {
    pass_over(reader, out);
  }
  reader->depth--;
  return out;
}

static Attribute* read_attributes(Reader* reader) {
  Attribute* first = NULL;
  while (!reader->failed && !accept(reader, "}")) {
    const char* name = read_word(reader, "_.");
    Attribute* attribute = NULL;
    if (accept(reader, "=")) attribute = read_attribute_value(reader);
    else attribute = arena_take(reader->arena, sizeof *attribute);
    if (!attribute) break;
    attribute->name = name;
    attribute->next = first;
    first = attribute;
    if (!accept(reader, ",")) {
      expect(reader, "}");
      break;
    }
  }
  return first;
}

const Attribute* attribute_of(const Operation* operation, const char* name) {
  const Attribute* each = operation->attributes;
  while (each && strcmp(each->name, name)) each = each->next;
  return each;
}

/* Operations */

static void read_regions(Reader* reader, Operation* out) {
  do {
    expect(reader, "{");
    APPEND(reader, out->regions, out->region_count, read_block(reader));
    expect(reader, "}");
  } while (!reader->failed && accept(reader, ","));
  expect(reader, ")");
}

static void read_signature(Reader* reader, Operation* out) {
  out->result_types = arena_take(reader->arena, (out->result_count + 1) * sizeof *out->result_types);
  expect(reader, ":");
  read_types(reader, NULL, out->operand_count, true);
  expect(reader, "->");
  skip_blanks(reader);
  if (!out->result_types) reader->failed = true;
  else if (reader->next < reader->end && *reader->next == '(') read_types(reader, out->result_types, out->result_count, true);
  else if (out->result_count != 1) reader->failed = true;
  else out->result_types[0] = read_type(reader);
}

static bool is_function(const char* name) {
  return strcmp(name, "tessera.graph.kernel") == 0 || strcmp(name, "tessera.graph.func") == 0;
}

static void keep_function(Reader* reader, const Operation* operation, int value_count) {
  const Attribute* name = attribute_of(operation, "sym_name");
  if (!name || name->kind != ATTRIBUTE_TEXT || operation->region_count != 1) {
    reader->failed = true;
    return;
  }
  Function function = {.name = name->text, .module = reader->module, .body = operation->regions[0]};
  function.is_kernel = strcmp(operation->name, "tessera.graph.kernel") == 0;
  function.value_count = value_count;
  APPEND(reader, reader->graph->functions, reader->graph->count, function);
}

static Operation* read_operation(Reader* reader) {
  Operation* out = arena_take(reader->arena, sizeof *out);
  const char** results = NULL;
  if (!out || ++reader->depth > DEEPEST) {
    reader->failed = true;
    return out;
  }
  skip_blanks(reader);
  if (reader->next < reader->end && *reader->next == '%') {
    do APPEND(reader, results, out->result_count, read_value_name(reader));
    while (accept(reader, ","));
    expect(reader, "=");
  }
  out->name = read_text(reader);
  expect(reader, "(");
  while (!reader->failed && !accept(reader, ")")) {
    APPEND(reader, out->operands, out->operand_count, value_of(reader, read_value_name(reader)));
    if (!accept(reader, ",")) {
      expect(reader, ")");
      break;
    }
  }
  int outer_names = reader->name_count;
  if (is_function(out->name)) reader->name_count = 0;
  if (accept(reader, "(")) read_regions(reader, out);
  int value_count = reader->name_count;
  if (is_function(out->name)) reader->name_count = outer_names;
  if (accept(reader, "{")) out->attributes = read_attributes(reader);
  if (!reader->failed) read_signature(reader, out);
  if (!reader->failed && is_function(out->name)) keep_function(reader, out, value_count);
  for (size_t i = 0, count = out->result_count; i < count && !reader->failed; i++) {
    size_t place = i;
    APPEND(reader, out->results, place, new_value(reader, results[i]));
  }
  reader->depth--;
  return out;
}

static void read_parameters(Reader* reader, Block* out) {
  read_word(reader, "_");
  expect(reader, "(");
  while (!reader->failed && !accept(reader, ")")) {
    size_t place = out->parameter_count;
    const char* name = read_value_name(reader);
    expect(reader, ":");
    Type type = read_type(reader);
    APPEND(reader, out->parameters, place, new_value(reader, name));
    APPEND(reader, out->parameter_types, out->parameter_count, type);
    if (!accept(reader, ",")) {
      expect(reader, ")");
      break;
    }
  }
  expect(reader, ":");
}

static Block* read_block(Reader* reader) {
  Block* out = arena_take(reader->arena, sizeof *out);
  if (!out) {
    reader->failed = true;
    return out;
  }
  if (accept(reader, "^")) read_parameters(reader, out);
  for (;;) {
    skip_blanks(reader);
    if (reader->failed || reader->next == reader->end || *reader->next == '}') return out;
    APPEND(reader, out->operations, out->operation_count, read_operation(reader));
  }
}

bool graph_read(Arena* arena, const char* text, size_t size, Graph* out) {
  Reader* reader = calloc(1, sizeof *reader);
  if (!reader) return false;
  *reader = (Reader){.arena = arena, .graph = out, .next = text, .end = text + size};
  while (!reader->failed) {
    skip_blanks(reader);
    if (reader->next == reader->end) break;
    reader->module = arena_text(arena, "", 0); /* functions of one module share this pointer */
    read_operation(reader);
  }
  bool is_read = !reader->failed;
  free(reader);
  return is_read;
}
