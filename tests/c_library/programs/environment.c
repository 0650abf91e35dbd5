/* A context finds the environment variables as they are when it is made, also those that the program has set */
#define _DEFAULT_SOURCE
#include <stdlib.h>
#include <string.h>

#include "expect.h"

static void settings(tessContext_t context, const char* wanted) {
  char text[1024];
  size_t needed = 0;
  OK(tessxSettings(context, text, sizeof text, &needed));
  HOLDS(needed == strlen(text) + 1);
  if (!strstr(text, wanted)) {
    ++failures;
    fprintf(stderr, "%s, expected %s in it\n", text, wanted);
  }
}

int main(void) {
  tessContext_t context = NULL, other = NULL;
  OK(tessInit(&context));
  settings(context, "\"log_level\":null");
  HOLDS(setenv("TESS_LOG_LEVEL", "debug", 1) == 0);
  OK(tessInit(&other));
  settings(other, "\"log_level\":\"debug\"");
  settings(context, "\"log_level\":null");
  HOLDS(setenv("TESS_LOG_LEVEL", "loud", 1) == 0);
  INVALID(tessInit(&other));
  OK(tessxSetEnvironment("{\"TESS_NUMERICS\": \"promote\"}")); /* instead of those of the process, until a reset */
  OK(tessInit(&other));
  settings(other, "\"numerics\":\"promote\"");
  OK(tessxReset());
  INVALID(tessInit(&other));
  HOLDS(unsetenv("TESS_LOG_LEVEL") == 0);
  OK(tessInit(&other));
  settings(other, "\"log_level\":null");
  return failures != 0;
}
