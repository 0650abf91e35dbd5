/*
 * A runtime as a C library for the Tessera conformance suite: fill in the functions that yours has.
 *
 * tessera.h declares them all and says what each does. A function that the library does not export reads as
 * unsupported, which is never a pass. The harness loads the library in a process of its own.
 */
#include "tessera.h"

#include <pthread.h>
#include <stdbool.h>

#define MOST_CONTEXTS 1024

struct tessContext {
  bool live;
};

static struct tessContext contexts[MOST_CONTEXTS]; /* a handle is never used again, so that a stale one is noticed */
static size_t created;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

tessStatus_t tessGetVersion(int* major, int* minor, int* patch) {
  if (!major || !minor || !patch) return TESS_ERR_INVALID_VALUE;
  *major = 1;
  *minor = *patch = 0;
  return TESS_OK;
}

tessStatus_t tessInit(tessContext_t* ctx) {
  if (!ctx) return TESS_ERR_INVALID_VALUE;
  tessStatus_t status = TESS_ERR_OUT_OF_MEMORY;
  pthread_mutex_lock(&lock);
  if (created < MOST_CONTEXTS) {
    contexts[created].live = true;
    *ctx = &contexts[created++];
    status = TESS_OK;
  }
  pthread_mutex_unlock(&lock);
  return status;
}

tessStatus_t tessShutdown(tessContext_t ctx) {
  tessStatus_t status = TESS_ERR_INVALID_VALUE;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < created; ++i) {
    if (ctx == &contexts[i] && ctx->live) {
      ctx->live = false;
      status = TESS_OK;
    }
  }
  pthread_mutex_unlock(&lock);
  return status;
}
