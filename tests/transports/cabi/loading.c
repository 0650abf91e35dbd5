/* A library that does at loading what it was compiled for: EXITS, CRASHES, HANGS, LACKS a symbol, or is EMPTY. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef LACKS
int acme_driver_open(void);
#endif

__attribute__((constructor)) static void loaded(void) {
#ifdef EXITS
  fprintf(stderr, "acme: no licence\n");
  exit(3);
#endif
#ifdef CRASHES
  *(volatile int*)8 = 1;
#endif
#ifdef HANGS
  for (;;) sleep(1);
#endif
}

#ifndef EMPTY
int tessGetVersion(int* major, int* minor, int* patch) {
  *major = 1, *minor = 0, *patch = 0;
#ifdef LACKS
  return acme_driver_open();
#else
  return 0;
#endif
}
#endif
