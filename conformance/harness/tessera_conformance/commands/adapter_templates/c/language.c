/*
 * A compiler behind the Tessera conformance suite: fill in the methods that yours has.
 *
 * What each method takes and returns: docs/protocol.md of the project, under `language`.
 */
#include <ctype.h>

#include "protocol.h"

static const char HELLO[] =
    "{\"protocol\":{\"minimum\":1,\"maximum\":1},"
    "\"implementation\":{\"name\":\"my-implementation\",\"version\":\"0.1\"},"
    "\"documents\":[\"language_ir\"],"
    "\"capabilities\":{}," /* claim only what works */
    "\"parallel\":true," /* several processes may answer at once; take it away where they share a device */
    "\"arithmetic\":{\"level\":\"strict\"}}";

static const char* const DECLARATIONS[] = {"func", "kernel", "type", "let", "const", "mesh"};

static bool is_letter(char c) { return isalpha((unsigned char)c) || c == '_'; }

/* The next word or character, behind blanks and comments; "" at the end. */
static const char* next_token(const char** at) {
  for (;;) {
    while (isspace((unsigned char)**at)) ++*at;
    if (!strncmp(*at, "//", 2)) {
      *at += strcspn(*at, "\n");
    } else if (!strncmp(*at, "/*", 2) && strstr(*at + 2, "*/")) {
      *at = strstr(*at + 2, "*/") + 2;
    } else {
      break;
    }
  }
  size_t length = 0;
  while (is_letter((*at)[length]) || (length && isdigit((unsigned char)(*at)[length]))) ++length;
  if (!length && **at) length = 1;
  char* token = take(length + 1);
  memcpy(token, *at, length);
  *at += length;
  return token;
}

/* The modules and their declarations, in source order. This one knows modules that declare nothing. */
static void parse(const char* source) {
  const char *at = source, *names[64];
  size_t count = 0;
  for (const char* word = next_token(&at); *word; word = next_token(&at)) {
    const char *name = next_token(&at), *opening = next_token(&at), *closing = next_token(&at);
    if (strcmp(word, "module") || !is_letter(*name) || strcmp(opening, "{")) {
      print_rejected("syntax", "parse", "expected module NAME {");
      return;
    }
    for (size_t i = 0; i < sizeof DECLARATIONS / sizeof *DECLARATIONS; ++i) {
      if (!strcmp(closing, DECLARATIONS[i])) {
        print_unsupported("declarations");
        return;
      }
    }
    if (strcmp(closing, "}")) {
      print_rejected("syntax", "parse", "expected a declaration or }");
      return;
    }
    if (count == sizeof names / sizeof *names) {
      print_unsupported("so many modules");
      return;
    }
    names[count++] = name;
  }
  printf("{\"returned\":{\"modules\":[");
  for (size_t i = 0; i < count; ++i) printf("%s{\"name\":\"%s\",\"declarations\":[]}", i ? "," : "", names[i]);
  printf("]}}");
}

static bool answer(const char* method, const Json* params) {
  if (strcmp(method, "language.parse")) return false;
  parse(text_of(params, "source"));
  return true;
}

int main(void) { return serve(HELLO, answer); }
