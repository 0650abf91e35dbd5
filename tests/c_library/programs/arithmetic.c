/* A program that flushes subnormals and rounds upwards gets the same bits, and keeps its own arithmetic */
#include <fenv.h>
#include <string.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "session.h"

static float sum(Session session, float value) {
  void* device = NULL;
  OK(tessMalloc(session.mesh, sizeof value, &device));
  OK(tessMemcpyAsync(device, &value, sizeof value, TESS_COPY_H2D, session.stream));
  OK(tessAllReduce(session.mesh, device, 1, 5, TESS_COLL_SUM, "dp", session.stream));
  OK(tessMemcpyAsync(&value, device, sizeof value, TESS_COPY_D2H, session.stream));
  OK(tessStreamSynchronize(session.stream));
  return value;
}

static int is(float found, unsigned wanted) { return memcmp(&found, &wanted, sizeof wanted) == 0; }

static float from(unsigned bits) {
  float made;
  memcpy(&made, &bits, sizeof made);
  return made;
}

int main(void) {
  Session session = begin();
  volatile float one = 1.0f, little = 1e-10f, found;
#if defined(__SSE__)
  _mm_setcsr(_mm_getcsr() | 0x8040u); /* flush results and operands that are subnormal */
#endif
  HOLDS(fesetround(FE_UPWARD) == 0);
  HOLDS(is(sum(session, from(3)), 6)); /* subnormals stay: 3 + 3 units in the last place */
  HOLDS(is(sum(session, from(0x3f800001u)), 0x40000001u));
  HOLDS(fegetround() == FE_UPWARD);
  found = one + little;
  HOLDS(is(found, 0x3f800001u)); /* the program still rounds upwards */
  HOLDS(fesetround(FE_TONEAREST) == 0);
  return failures != 0;
}
