/* Checks of the programs here: what is not as expected is told, and makes the program fail */
#include <stdio.h>

#include "tessera.h"
#include "tessera_ext.h"

static int failures;

#define EXPECT(wanted, call)                                                                           \
  do {                                                                                                 \
    const int found_ = (int)(call);                                                                    \
    if (found_ != (int)(wanted)) {                                                                     \
      ++failures;                                                                                      \
      fprintf(stderr, "line %d: %s is %d, expected %s\n", __LINE__, #call, found_, #wanted);           \
    }                                                                                                  \
  } while (0)

#define OK(call) EXPECT(TESS_OK, call)
#define INVALID(call) EXPECT(TESS_ERR_INVALID_VALUE, call)
#define HOLDS(condition) EXPECT(1, (condition) != 0)
