/* Defects for trials of a suite: the environment variable ACME_DEFECT switches one of `defects.toml` on.
 *
 * ACME_DELAY makes each piece of work wait so many microseconds before it runs. A runtime that is shipped has none of this; `defect(...)` marks the places where a vendor's mistake would sit.
 */
#include "acme.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

bool defect(const char* name) {
  const char* chosen = getenv("ACME_DEFECT");
  return chosen && strcmp(chosen, name) == 0;
}

bool defect_once_in(const char* name, unsigned turns) {
  static _Atomic unsigned calls;
  return defect(name) && ++calls % turns == 0;
}

void delay_of_trials(void) {
  const char* microseconds = getenv("ACME_DELAY");
  if (microseconds) nanosleep(&(struct timespec){.tv_nsec = 1000 * atol(microseconds) % 1000000000}, NULL);
}
