/* Seconds of the processor that a call takes, in turns: the median of some rounds of each, on a line with its name. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tessera.h"

enum { ROUNDS = 201, CALLS = 1000, KINDS = 4 };

static tessStatus_t empty_function(int* major, int* minor, int* patch) {
  *major = *minor = *patch = 1;
  return TESS_OK;
}

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static int by_size(const void* one, const void* other) {
  const double difference = *(const double*)one - *(const double*)other;
  return (difference > 0) - (difference < 0);
}

int main(void) {
  static const char* const names[KINDS] = {"empty", "tessGetVersion", "tessStreamSynchronize", "tessEventRecord"};
  tessStatus_t (*volatile empty)(int*, int*, int*) = empty_function; /* volatile: the compiler must call it */
  static double seconds[KINDS][ROUNDS];
  const int devices[1] = {0};
  const tessMeshAxes axes = {0, 0, 0, 0};
  tessContext_t context;
  tessMesh_t mesh;
  tessStream_t stream;
  tessEvent_t event;
  int round, kind, call, major, minor, patch;
  if (tessInit(&context) || tessMeshCreate(context, devices, 1, axes, &mesh)) return 1;
  if (tessStreamCreate(mesh, 0, &stream) || tessEventCreate(&event)) return 1;
  for (round = 0; round < ROUNDS; ++round)
    for (kind = 0; kind < KINDS; ++kind) {
      const double started = now();
      for (call = 0; call < CALLS; ++call)
        if (kind == 0 ? empty(&major, &minor, &patch)
            : kind == 1 ? tessGetVersion(&major, &minor, &patch)
            : kind == 2 ? tessStreamSynchronize(stream)
                        : tessEventRecord(event, stream))
          return 1;
      seconds[kind][round] = (now() - started) / CALLS;
      tessStreamSynchronize(stream);
    }
  for (kind = 0; kind < KINDS; ++kind) {
    qsort(seconds[kind], ROUNDS, sizeof(double), by_size);
    printf("%s %.12f\n", names[kind], seconds[kind][ROUNDS / 2]);
  }
  return tessShutdown(context);
}
