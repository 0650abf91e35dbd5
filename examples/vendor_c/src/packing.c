/* Argument buffers packed and unpacked (section 10.1), by the values of the protocol: numbers, booleans, exact bytes. */
#include "acme.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void skip_blanks(const char** text) {
  while (isspace((unsigned char)**text)) ++*text;
}

static bool skip(const char** text, const char* wanted) {
  skip_blanks(text);
  size_t length = strlen(wanted);
  if (strncmp(*text, wanted, length)) return false;
  *text += length;
  return true;
}

/* {"bits": "hex digits"}, as many bytes as the argument has */
static bool read_exact(const char** text, const Parameter* parameter, unsigned char* place) {
  if (!skip(text, "\"bits\"") || !skip(text, ":") || !skip(text, "\"")) return false;
  for (int i = 0; i < parameter->size; i++) {
    unsigned byte;
    if (!isxdigit((unsigned char)(*text)[0]) || !isxdigit((unsigned char)(*text)[1])) return false;
    if (sscanf(*text, "%2x", &byte) != 1) return false;
    place[i] = (unsigned char)byte;
    *text += 2;
  }
  return skip(text, "\"") && skip(text, "}");
}

static bool read_integer(const char** text, const Parameter* parameter, unsigned char* place) {
  char* end;
  errno = 0;
  bool is_pointer = parameter->type == 0, is_negative = **text == '-';
  uint64_t bits = is_pointer ? strtoull(*text, &end, 10) : (uint64_t)strtoll(*text, &end, 10);
  if (errno || end == *text || (is_pointer && is_negative)) return false;
  int64_t value = (int64_t)bits, limit = INT64_MAX >> (64 - 8 * parameter->size);
  if (!is_pointer && (value > limit || value < -limit - 1)) return false;
  for (int i = 0; i < parameter->size; i++) place[i] = (unsigned char)(bits >> 8 * i);
  *text = end;
  return **text != '.' && **text != 'e' && **text != 'E';
}

static bool read_float(const char** text, const Parameter* parameter, unsigned char* place) {
  char* end;
  /* a whole number may be of any size, and is rounded once; any other is a double */
  bool is_whole = !strchr(".eE", (*text)[strspn(*text, "-0123456789")]);
  Number number = {.f = is_whole && parameter->type == FP32 ? strtof(*text, &end) : strtod(*text, &end)};
  if (end == *text) return false;
  number_store(parameter->type, place, number);
  *text = end;
  return true;
}

static bool read_value(const char** text, const Parameter* parameter, unsigned char* place) {
  skip_blanks(text);
  if (skip(text, "{")) return read_exact(text, parameter, place);
  if (parameter->type == BOOL) {
    *place = skip(text, "true");
    return *place || skip(text, "false");
  }
  if (parameter->type == 0 || (parameter->type >= INT8 && parameter->type <= INT64))
    return read_integer(text, parameter, place);
  return !dtype_is_complex(parameter->type) && read_float(text, parameter, place);
}

static bool pack(const KernelEntry* entry, const char* values, unsigned char* buffer) {
  if (!skip(&values, "[")) return false;
  for (size_t i = 0; i < entry->count; i++) {
    if (i && !skip(&values, ",")) return false;
    if (!read_value(&values, &entry->parameters[i], buffer + entry->parameters[i].offset)) return false;
  }
  return skip(&values, "]");
}

tessStatus_t tessxPack(const char* signature, const char* values, void* out, size_t capacity, size_t* needed) {
  Arena* arena = arena_create();
  KernelEntry entry;
  unsigned char* buffer = NULL;
  bool is_read = arena && signature && values && needed && signature_read(arena, signature, &entry) &&
                 (buffer = arena_take(arena, entry.buffer_size + 16)) && pack(&entry, values, buffer);
  if (is_read) {
    *needed = entry.buffer_size;
    if (*needed <= capacity && out && *needed) memcpy(out, buffer, *needed);
  }
  arena_destroy(arena);
  return is_read ? TESS_OK : invalid("tessxPack: signature or values are none, or do not fit each other");
}

tessStatus_t tessxUnpack(const char* signature, const void* buffer, size_t bufferSize, char* out, size_t capacity,
                         size_t* needed) {
  Arena* arena = arena_create();
  KernelEntry entry;
  char* text = NULL;
  size_t size;
  if (!arena || !signature || !signature_read(arena, signature, &entry) || bufferSize < entry.end) {
    arena_destroy(arena);
    return invalid("tessxUnpack: signature is none, or %zu bytes end before the last argument", bufferSize);
  }
  FILE* stream = open_memstream(&text, &size);
  fprintf(stream, "{\"values\":[");
  for (size_t i = 0; i < entry.count; i++) {
    const unsigned char* place = (const unsigned char*)buffer + entry.parameters[i].offset;
    fprintf(stream, "%s{\"bits\":\"", i ? "," : "");
    for (int k = 0; k < entry.parameters[i].size; k++)
      fprintf(stream, "%02x", entry.parameters[i].type == BOOL ? *place != 0 : place[k]);
    fprintf(stream, "\"}");
  }
  fprintf(stream, "]}");
  arena_destroy(arena);
  return answer_written(stream, &text, out, capacity, needed);
}
