/*
 * The line protocol of the Tessera conformance suite in C11, without any library: one JSON-RPC 2.0 message a line.
 *
 * docs/protocol.md of the project describes it. Standard output carries messages only: log to standard error. What a
 * request takes is allocated with `take` and freed once it is answered.
 */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory of one request */

typedef struct Block {
  struct Block* next;
  max_align_t bytes[];
} Block;

static Block* blocks;

static void* take(size_t bytes) {
  Block* block = calloc(1, sizeof(Block) + bytes);
  if (!block) {
    fputs("out of memory\n", stderr);
    exit(1);
  }
  block->next = blocks;
  blocks = block;
  return block->bytes;
}

static void give_back(void) {
  while (blocks) {
    Block* next = blocks->next;
    free(blocks);
    blocks = next;
  }
}

/* JSON: an array or object is a list of its items, of which those of an object have a key */

typedef enum { NOTHING, TRUTH, NUMBER, TEXT, ARRAY, OBJECT } Kind;

typedef struct Json {
  Kind kind;
  double number; /* of a truth value 0 or 1 */
  char* text;
  char* key;
  size_t count;
  struct Json* first;
  struct Json* next;
} Json;

static void skip_blanks(const char** at) {
  while (**at == ' ' || **at == '\t' || **at == '\r' || **at == '\n') ++*at;
}

static void fail(const char* what) {
  fprintf(stderr, "a request is not JSON: %s\n", what);
  exit(1);
}

static unsigned read_unit(const char** at) {
  unsigned unit = 0;
  for (int digit = 0; digit < 4; ++digit) {
    char c = *(*at)++;
    unit = unit * 16 + (unsigned)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
  }
  return unit;
}

static char* write_utf8(char* out, unsigned code) {
  if (code < 0x80) {
    *out++ = (char)code;
    return out;
  }
  int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  *out++ = (char)((0xFF << (7 - more) & 0xFF) | code >> 6 * more);
  while (more--) *out++ = (char)(0x80 | (code >> 6 * more & 0x3F));
  return out;
}

static char* read_text(const char** at) {
  char* text = take(strlen(*at) + 1); /* no text is longer than what is left, and UTF-8 than its escape */
  char* out = text;
  for (++*at; **at != '"';) {
    if (!**at) fail("a text has no end");
    if (**at != '\\') {
      *out++ = *(*at)++;
      continue;
    }
    char escape = (*at)[1];
    *at += 2;
    if (escape != 'u') {
      const char* known = strchr("b\bf\fn\nr\rt\t", escape);
      *out++ = known && escape ? known[1] : escape;
      continue;
    }
    unsigned code = read_unit(at);
    if (code >= 0xD800 && code < 0xDC00 && (*at)[0] == '\\') {
      *at += 2;
      code = 0x10000 + ((code - 0xD800) << 10) + (read_unit(at) - 0xDC00);
    }
    out = write_utf8(out, code);
  }
  ++*at;
  return text;
}

static Json* read_json(const char** at) {
  Json* value = take(sizeof *value);
  skip_blanks(at);
  char opening = **at;
  if (opening == '{' || opening == '[') {
    char closing = opening == '{' ? '}' : ']';
    Json** end = &value->first;
    value->kind = opening == '{' ? OBJECT : ARRAY;
    for (++*at, skip_blanks(at); **at != closing; ++value->count) {
      char* key = NULL;
      if (value->kind == OBJECT) {
        key = read_text(at);
        skip_blanks(at);
        if (*(*at)++ != ':') fail("a key has no value");
      }
      *end = read_json(at);
      (*end)->key = key;
      end = &(*end)->next;
      skip_blanks(at);
      if (**at == ',') {
        ++*at;
        skip_blanks(at);
      } else if (**at != closing) {
        fail("a list has no end");
      }
    }
    ++*at;
  } else if (opening == '"') {
    value->kind = TEXT;
    value->text = read_text(at);
  } else if (opening == 't' || opening == 'f') {
    value->kind = TRUTH;
    value->number = opening == 't';
    *at += opening == 't' ? 4 : 5;
  } else if (opening == 'n') {
    *at += 4;
  } else {
    char* end;
    value->kind = NUMBER;
    value->number = strtod(*at, &end);
    if (end == *at) fail("a value is missing");
    *at = end;
  }
  return value;
}

/* The member of an object, or NULL. */
static const Json* member(const Json* object, const char* key) {
  const Json* each = object ? object->first : NULL;
  while (each && strcmp(each->key, key)) each = each->next;
  return each;
}

/* The text of a member, or "" where there is none. */
static const char* text_of(const Json* object, const char* key) {
  const Json* found = member(object, key);
  return found && found->kind == TEXT ? found->text : "";
}

static void print_text(const char* text) {
  putchar('"');
  for (; *text; ++text) {
    if (*text == '"' || *text == '\\') putchar('\\');
    if ((unsigned char)*text < ' ') {
      printf("\\u%04x", *text);
    } else {
      putchar(*text);
    }
  }
  putchar('"');
}

/* Tensors: the words of all elements as little-endian bytes, row-major */

typedef struct {
  const char* dtype;
  int rank;
  size_t shape[8];
  size_t bytes;
  unsigned char* data;
} Tensor;

/* The bytes of one word; an element of complex64 or complex128 is two words. */
static size_t word_bytes(const char* dtype) {
  static const char* const EIGHT[] = {"fp64", "int64", "complex128"};
  static const char* const FOUR[] = {"fp32", "tf32", "int32", "complex64"};
  static const char* const TWO[] = {"fp16", "bf16", "int16"};
  for (size_t i = 0; i < sizeof EIGHT / sizeof *EIGHT; ++i) if (!strcmp(dtype, EIGHT[i])) return 8;
  for (size_t i = 0; i < sizeof FOUR / sizeof *FOUR; ++i) if (!strcmp(dtype, FOUR[i])) return 4;
  for (size_t i = 0; i < sizeof TWO / sizeof *TWO; ++i) if (!strcmp(dtype, TWO[i])) return 2;
  return 1;
}

/* A large tensor comes as a file of its bytes. */
static void read_file(Tensor* tensor, const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) fail(path);
  tensor->bytes = (size_t)ftell(file);
  tensor->data = take(tensor->bytes + 1);
  rewind(file);
  if (fread(tensor->data, 1, tensor->bytes, file) != tensor->bytes) fail(path);
  fclose(file);
}

static inline Tensor read_tensor(const Json* message) {
  const Json* value = member(message, "$tensor");
  const Json* shape = member(value, "shape");
  Tensor tensor = {.dtype = text_of(value, "dtype")};
  for (const Json* each = shape ? shape->first : NULL; each && tensor.rank < 8; each = each->next) {
    tensor.shape[tensor.rank++] = (size_t)each->number;
  }
  if (member(value, "file")) {
    read_file(&tensor, text_of(value, "file"));
    return tensor;
  }
  const char* bits = text_of(value, "bits");
  size_t width = word_bytes(tensor.dtype);
  tensor.bytes = strlen(bits) / 2;
  tensor.data = take(tensor.bytes + 1);
  for (size_t i = 0; i < tensor.bytes; ++i) { /* digits begin with the most significant byte of a word */
    char digits[3] = {bits[2 * i], bits[2 * i + 1], 0};
    tensor.data[i / width * width + (width - 1 - i % width)] = (unsigned char)strtoul(digits, NULL, 16);
  }
  return tensor;
}

static inline bool same_shape(const Tensor* a, const Tensor* b) {
  return a->rank == b->rank && !memcmp(a->shape, b->shape, sizeof a->shape);
}

static inline void print_tensor(const Tensor* tensor) {
  size_t width = word_bytes(tensor->dtype);
  printf("{\"$tensor\":{\"dtype\":\"%s\",\"shape\":[", tensor->dtype);
  for (int axis = 0; axis < tensor->rank; ++axis) printf("%s%zu", axis ? "," : "", tensor->shape[axis]);
  printf("],\"bits\":\"");
  for (size_t i = 0; i < tensor->bytes; ++i) {
    printf("%02x", tensor->data[i / width * width + (width - 1 - i % width)]);
  }
  printf("\"}}");
}

/* Outcomes */

static void print_unsupported(const char* feature) {
  printf("{\"unsupported\":{\"feature\":");
  print_text(feature);
  printf("}}");
}

/* `code` is a category of diagnostics, such as syntax, or a status, such as TESS_ERR_INVALID_VALUE. */
static inline void print_rejected(const char* code, const char* phase, const char* message) {
  printf("{\"rejected\":{\"code\":\"%s\",\"phase\":\"%s\",\"message\":", code, phase);
  print_text(message);
  if (strncmp(code, "TESS_", 5)) {
    printf(",\"diagnostics\":[{\"category\":\"%s\",\"message\":", code);
    print_text(message);
    printf("}]");
  }
  printf("}}");
}

/* Answer requests until the session is closed. `answer` prints an outcome, or returns false for an unknown method. */
static int serve(const char* hello, bool (*answer)(const char* method, const Json* params)) {
  size_t size = 1 << 16, length = 0;
  char* line = malloc(size);
  bool open = line != NULL;
  while (open && fgets(line + length, (int)(size - length), stdin)) {
    length += strlen(line + length);
    if (line[length - 1] != '\n') {
      if (length + 1 == size) line = realloc(line, size *= 2);
      if (!line) return 1;
      if (!feof(stdin)) continue;
    }
    const char* at = line;
    const Json* request = read_json(&at);
    const char* method = text_of(request, "method");
    printf("{\"jsonrpc\":\"2.0\",\"id\":%.0f,", member(request, "id")->number);
    if (!strcmp(method, "session.open")) {
      printf("\"result\":%s}\n", hello);
    } else if (!strncmp(method, "session.", 8)) {
      printf("\"result\":{\"returned\":{}}}\n");
    } else {
      printf("\"result\":");
      if (!answer(method, member(request, "params"))) print_unsupported(method);
      printf("}\n");
    }
    fflush(stdout);
    open = strcmp(method, "session.close") != 0;
    length = 0;
    give_back();
  }
  free(line);
  return 0;
}

#endif
