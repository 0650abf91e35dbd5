/* Signatures of kernels and the layout of their parameter buffers (section 10.1): `name(Q*, int B, float scale)`.
 *
 * Each argument is aligned to the smaller of its size and eight; the buffer ends on a multiple of eight.
 */
#include "acme.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words of letters, digits and underscores; NULL where there is none. The rest of the text stays behind it. */
static const char* read_word(Arena* arena, const char** text) {
  while (isspace((unsigned char)**text)) ++*text;
  const char* first = *text;
  while (isalnum((unsigned char)**text) || **text == '_') ++*text;
  const char* word = *text > first ? arena_text(arena, first, (size_t)(*text - first)) : NULL;
  while (isspace((unsigned char)**text)) ++*text;
  return word && !isdigit((unsigned char)*word) ? word : NULL;
}

static int scalar_type(const char* name) {
  static const char* const spellings[][2] = {{"int", "int32"},      {"float", "fp32"},     {"double", "fp64"},
                                             {"int8_t", "int8"},    {"int16_t", "int16"},  {"int32_t", "int32"},
                                             {"int64_t", "int64"}};
  for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
    if (strcmp(spellings[i][0], name) == 0) return dtype_of_name(spellings[i][1]);
  return dtype_of_name(name);
}

/* `X*`, `T* x` or `T x` */
static bool read_parameter(Arena* arena, const char** text, Parameter* out) {
  const char* first = read_word(arena, text);
  if (first && strcmp(first, "const") == 0) first = read_word(arena, text);
  if (!first) return false;
  if (**text == '*') {
    ++*text;
    const char* second = read_word(arena, text);
    out->name = (char*)(second ? second : first);
    out->size = 8;
    return true;
  }
  out->name = (char*)read_word(arena, text);
  out->type = scalar_type(first);
  out->size = out->type ? (int)dtype_size(out->type) : 0;
  return out->name && out->type && !scalar_type(out->name);
}

static bool place_parameter(KernelEntry* entry, Parameter* parameter) {
  size_t alignment = parameter->size < 8 ? (size_t)parameter->size : 8;
  if (defect("layout_aligns_to_four") && alignment > 4) alignment = 4;
  for (size_t i = 0; i < entry->count; i++)
    if (strcmp(entry->parameters[i].name, parameter->name) == 0) return false;
  parameter->offset = (int)((entry->end + alignment - 1) / alignment * alignment);
  entry->end = (size_t)parameter->offset + (size_t)parameter->size;
  entry->buffer_size = defect("layout_not_rounded_up") ? entry->end : (entry->end + 7) / 8 * 8;
  entry->parameters[entry->count++] = *parameter;
  return true;
}

bool signature_read(Arena* arena, const char* text, KernelEntry* out) {
  size_t most = strlen(text) / 2 + 1;
  *out = (KernelEntry){.name = (char*)read_word(arena, &text)};
  out->parameters = arena_take(arena, most * sizeof *out->parameters);
  if (!out->name || !out->parameters || *text++ != '(') return false;
  while (isspace((unsigned char)*text)) text++;
  while (*text && *text != ')') {
    Parameter parameter = {0};
    if (!read_parameter(arena, &text, &parameter) || !place_parameter(out, &parameter)) return false;
    if (*text == ')') break;
    if (*text++ != ',') return false;
  }
  return text[0] == ')' && text[1] == 0;
}

/* What is written to a stream in memory, as the text of an extension */
tessStatus_t answer_written(FILE* stream, char** written, char* out, size_t capacity, size_t* needed) {
  fclose(stream);
  tessStatus_t status = answer_text(out, capacity, needed, *written);
  free(*written);
  return status;
}

tessStatus_t tessxParameterLayout(const char* signature, char* out, size_t capacity, size_t* needed) {
  Arena* arena = arena_create();
  KernelEntry entry;
  char* text = NULL;
  size_t size;
  if (!arena || !signature || !signature_read(arena, signature, &entry)) {
    arena_destroy(arena);
    return invalid("tessxParameterLayout: signature is '%s', which is none", signature ? signature : "NULL");
  }
  FILE* stream = open_memstream(&text, &size);
  fprintf(stream, "{\"parameters\":[");
  for (size_t i = 0; i < entry.count; i++) {
    const Parameter* each = &entry.parameters[i];
    fprintf(stream, "%s{\"name\":\"%s\",\"type\":\"%s\",\"offset\":%d,\"size\":%d}", i ? "," : "", each->name,
            each->type ? dtype_name(each->type) : "ptr", each->offset, each->size);
  }
  fprintf(stream, "],\"end_of_last_argument\":%zu,\"size\":%zu,\"alignment\":8}", entry.end, entry.buffer_size);
  arena_destroy(arena);
  return answer_written(stream, &text, out, capacity, needed);
}

tessStatus_t tessxDtypeIds(char* out, size_t capacity, size_t* needed) {
  char* text = NULL;
  size_t size;
  FILE* stream = open_memstream(&text, &size);
  fprintf(stream, "{\"ids\":{");
  for (int dtype = FP8_E4M3; dtype <= COMPLEX128; dtype++) {
    int id = defect("narrow_dtypes_exchanged") && (dtype == FP16 || dtype == BF16) ? FP16 + BF16 - dtype : dtype;
    fprintf(stream, "%s\"%s\":%d", dtype > 1 ? "," : "", dtype_name(dtype), id);
  }
  fprintf(stream, "}}");
  return answer_written(stream, &text, out, capacity, needed);
}

/* The table of section 9 */
tessStatus_t tessxAddressSpaces(char* out, size_t capacity, size_t* needed) {
  static const struct {
    int number;
    const char* purpose;
  } spaces[] = {{0, "generic"}, {1, "global"}, {3, "shared"}, {4, "constant"}, {5, "local"}};
  char* text = NULL;
  size_t size;
  FILE* stream = open_memstream(&text, &size);
  fprintf(stream, "{\"spaces\":[");
  for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
    int number = spaces[i].number == 4 && defect("constants_in_space_2") ? 2 : spaces[i].number;
    fprintf(stream, "%s{\"number\":%d,\"purpose\":\"%s\",\"llvm\":%d,\"nvvm\":%d,\"rocdl\":%d}", i ? "," : "", number,
            spaces[i].purpose, number, number, number);
  }
  fprintf(stream, "]}");
  return answer_written(stream, &text, out, capacity, needed);
}
