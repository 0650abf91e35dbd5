/* Defects for trials of a suite: the environment variable ACME_DEFECT switches one of `defects.toml` on.
 *
 * A runtime that is shipped has none of this; `defect(...)` marks the places where a vendor's mistake would sit.
 */
#include "acme.h"

#include <stdlib.h>
#include <string.h>

bool defect(const char* name) {
  const char* chosen = getenv("ACME_DEFECT");
  return chosen && strcmp(chosen, name) == 0;
}

bool defect_once_in(const char* name, unsigned turns) {
  static _Atomic unsigned calls;
  return defect(name) && ++calls % turns == 0;
}
