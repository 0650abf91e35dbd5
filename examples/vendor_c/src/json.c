/* JSON in the one spelling that an image may have (docs/fatbin.md, "The metadata"): members in order of name, no blanks,
 * whole numbers, UTF-8 with nothing escaped that need not be. Anything else is no JSON here.
 */
#include "acme.h"

#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 32 };

typedef struct {
  Arena* arena;
  const char *next, *end;
  int depth;
} Reader;

static Json* read_value(Reader* reader);

static bool skip(Reader* reader, const char* text) {
  size_t length = strlen(text);
  if ((size_t)(reader->end - reader->next) < length || memcmp(reader->next, text, length)) return false;
  reader->next += length;
  return true;
}

/* The bytes of one character of UTF-8, 0 where it is none: overlong forms and surrogates are none. */
static size_t utf8_length(const unsigned char* at, size_t left) {
  size_t length = at[0] < 0x80 ? 1 : at[0] < 0xC2 ? 0 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : at[0] < 0xF5 ? 4 : 0;
  if (!length || length > left) return 0;
  for (size_t i = 1; i < length; i++)
    if (at[i] >> 6 != 2) return 0;
  if ((at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xED && at[1] > 0x9F)) return 0;
  if ((at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] > 0x8F)) return 0;
  return length;
}

/* An escaped character where the spelling has to escape it: quotes, backslashes and controls, by the short form. */
static int escaped(Reader* reader) {
  static const char shorts[] = "\"\\bfnrt", meant[] = "\"\\\b\f\n\r\t";
  if (reader->next == reader->end) return -1;
  const char* found = *reader->next ? strchr(shorts, *reader->next) : NULL;
  if (found) {
    reader->next++;
    return (unsigned char)meant[found - shorts];
  }
  if (!skip(reader, "u00") || reader->end - reader->next < 2) return -1;
  int value = 0;
  for (int i = 0; i < 2; i++) {
    static const char digits[] = "0123456789abcdef";
    const char* digit = *reader->next ? strchr(digits, *reader->next) : NULL;
    if (!digit) return -1;
    value = 16 * value + (int)(digit - digits);
    reader->next++;
  }
  return value < 0x20 && value && !strchr(meant, value) ? value : -1; /* NUL has no place in names */
}

static const char* read_text(Reader* reader, size_t* count) {
  if (!skip(reader, "\"")) return NULL;
  char* out = arena_take(reader->arena, (size_t)(reader->end - reader->next) + 1);
  size_t length = 0;
  while (out && reader->next < reader->end && *reader->next != '"') {
    unsigned char first = (unsigned char)*reader->next;
    if (first == '\\') {
      reader->next++;
      int value = escaped(reader);
      if (value < 0) return NULL;
      out[length++] = (char)value;
      continue;
    }
    size_t bytes = utf8_length((const unsigned char*)reader->next, (size_t)(reader->end - reader->next));
    if (!bytes || first < 0x20) return NULL;
    memcpy(out + length, reader->next, bytes);
    length += bytes;
    reader->next += bytes;
  }
  *count = length;
  return out && skip(reader, "\"") ? out : NULL;
}

static bool read_integer(Reader* reader, int64_t* out) {
  bool negative = skip(reader, "-");
  const char* first = reader->next;
  uint64_t value = 0, limit = (uint64_t)INT64_MAX + negative;
  for (; reader->next < reader->end && *reader->next >= '0' && *reader->next <= '9'; reader->next++) {
    uint64_t digit = (uint64_t)(*reader->next - '0');
    if (value > (limit - digit) / 10) return false;
    value = 10 * value + digit;
  }
  bool plain = reader->next > first && (*first != '0' || (reader->next == first + 1 && !negative));
  *out = negative ? (int64_t)(0 - value) : (int64_t)value;
  return plain;
}

/* Room for one more element; lists grow in the arena by doubling. */
static bool append(Arena* arena, Json* list, Json* element, const char* key) {
  if (!element) return false;
  size_t count = list->count;
  if ((count & (count - 1)) == 0) {
    size_t room = count ? 2 * count : 1;
    Json** elements = arena_take(arena, room * sizeof *elements);
    const char** keys = arena_take(arena, room * sizeof *keys);
    if (!elements || !keys) return false;
    if (count) memcpy(elements, list->elements, count * sizeof *elements);
    if (count) memcpy(keys, list->keys, count * sizeof *keys);
    list->elements = elements;
    list->keys = keys;
  }
  list->elements[count] = element;
  list->keys[count] = key;
  list->count = count + 1;
  return true;
}

static bool read_elements(Reader* reader, Json* out, bool is_object) {
  const char* close = is_object ? "}" : "]";
  if (skip(reader, close)) return true;
  do {
    const char* key = NULL;
    size_t length;
    if (is_object) {
      key = read_text(reader, &length);
      if (!key || !skip(reader, ":") || strlen(key) != length) return false;
      if (out->count && strcmp(out->keys[out->count - 1], key) >= 0) return false;
    }
    if (!append(reader->arena, out, read_value(reader), key)) return false;
  } while (skip(reader, ","));
  return skip(reader, close);
}

static Json* read_value(Reader* reader) {
  Json* out = arena_take(reader->arena, sizeof *out);
  bool is_read = false;
  if (!out || reader->next == reader->end || reader->depth == DEEPEST) return NULL;
  reader->depth++;
  if (*reader->next == '"') {
    out->type = JSON_TEXT;
    is_read = (out->text = read_text(reader, &out->count)) != NULL;
  } else if (skip(reader, "{")) {
    out->type = JSON_OBJECT;
    is_read = read_elements(reader, out, true);
  } else if (skip(reader, "[")) {
    out->type = JSON_LIST;
    is_read = read_elements(reader, out, false);
  } else if (skip(reader, "null")) {
    is_read = true;
  } else if (skip(reader, "true")) {
    out->type = JSON_TRUE;
    is_read = true;
  } else if (skip(reader, "false")) {
    out->type = JSON_FALSE;
    is_read = true;
  } else {
    out->type = JSON_INTEGER;
    is_read = read_integer(reader, &out->integer);
  }
  reader->depth--;
  return is_read ? out : NULL;
}

Json* json_read(Arena* arena, const char* text, size_t size) {
  Reader reader = {.arena = arena, .next = text, .end = text + size};
  Json* value = read_value(&reader);
  return value && reader.next == reader.end ? value : NULL;
}

const Json* json_member(const Json* object, const char* name) {
  if (object->type == JSON_OBJECT)
    for (size_t i = 0; i < object->count; i++)
      if (strcmp(object->keys[i], name) == 0) return object->elements[i];
  return NULL;
}
