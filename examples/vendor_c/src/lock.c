/* The lock of the runtime, and the condition that something was done. */
#include "acme.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;

void runtime_lock(void) { pthread_mutex_lock(&lock); }
void runtime_unlock(void) { pthread_mutex_unlock(&lock); }
void runtime_wait(pthread_cond_t* condition) { pthread_cond_wait(condition, &lock); }
void progress_wait(void) { runtime_wait(&progress); }
void progress_notify(void) { pthread_cond_broadcast(&progress); }
