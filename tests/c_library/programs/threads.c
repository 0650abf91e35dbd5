/* Sixteen threads, each with a context, a mesh and a stream of its own, and data that only it has */
#include <pthread.h>
#include <string.h>

#include "session.h"

enum { THREADS = 16, ROUNDS = 20, COUNT = 64 };

static void* work(void* given) {
  const int number = *(const int*)given;
  int round, place;
  for (round = 0; round < ROUNDS; ++round) {
    Session session = begin();
    int sent[COUNT], received[COUNT], wanted[COUNT];
    void* device = NULL;
    for (place = 0; place < COUNT; ++place) {
      sent[place] = number * 1000 + round * 100 + place;
      wanted[place] = 2 * sent[place]; /* the sum over two ranks that have the same */
    }
    OK(tessMalloc(session.mesh, sizeof sent, &device));
    OK(tessMemcpyAsync(device, sent, sizeof sent, TESS_COPY_H2D, session.stream));
    OK(tessAllReduce(session.mesh, device, COUNT, 9, TESS_COLL_SUM, "dp", session.stream));
    OK(tessMemcpyAsync(received, device, sizeof sent, TESS_COPY_D2H, session.stream));
    OK(tessStreamSynchronize(session.stream));
    HOLDS(memcmp(received, wanted, sizeof wanted) == 0);
    INVALID(tessStreamSynchronize(NULL));
    OK(tessShutdown(session.context));
  }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  int numbers[THREADS], place;
  for (place = 0; place < THREADS; ++place) {
    numbers[place] = place;
    HOLDS(pthread_create(&threads[place], NULL, work, &numbers[place]) == 0); /* their first calls come together */
  }
  for (place = 0; place < THREADS; ++place) HOLDS(pthread_join(threads[place], NULL) == 0);
  return failures != 0;
}
