/* Defects for trials of a suite: the environment variable ACME_DEFECT switches one of `defects.toml` on, or several, between commas.
 *
 * ACME_DELAY makes each piece of work wait so many microseconds before it runs. A runtime that is shipped has none of this; `defect(...)` marks the places where a vendor's mistake would sit.
 */
#include "acme.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

bool defect(const char* name) {
  size_t length = strlen(name);
  for (const char* chosen = getenv("ACME_DEFECT"); chosen; chosen = strchr(chosen, ',')) {
    chosen += *chosen == ',';
    if (strncmp(chosen, name, length) == 0 && (chosen[length] == '\0' || chosen[length] == ',')) return true;
  }
  return false;
}

bool defect_once_in(const char* name, unsigned turns) {
  static _Atomic unsigned calls;
  return defect(name) && ++calls % turns == 0;
}

void delay_of_trials(void) {
  const char* microseconds = getenv("ACME_DELAY");
  if (microseconds) nanosleep(&(struct timespec){.tv_nsec = 1000 * atol(microseconds) % 1000000000}, NULL);
}
