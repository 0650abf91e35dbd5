/* Statuses of calls, and the text of the last failure (section 7). The text belongs to the thread that made the call. */
#include "acme.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char text[512];

static void write_text(const char* format, va_list arguments) {
  vsnprintf(text, sizeof text, format, arguments);
}

tessStatus_t refuse(tessStatus_t status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_text(format, arguments);
  va_end(arguments);
  return status;
}

tessStatus_t invalid(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_text(format, arguments);
  va_end(arguments);
  return TESS_ERR_INVALID_VALUE;
}

const char* last_error(void) { return text; }

/* The convention of every extension that gives text: nothing is written where it does not fit. */
tessStatus_t answer_text(char* out, size_t capacity, size_t* needed, const char* answer) {
  size_t size = strlen(answer) + 1;
  if (!needed) return TESS_ERR_INVALID_VALUE;
  *needed = size;
  if (size <= capacity && out) memcpy(out, answer, size);
  return TESS_OK;
}

tessStatus_t tessxLastError(char* out, size_t capacity, size_t* needed) {
  return answer_text(out, capacity, needed, text);
}
