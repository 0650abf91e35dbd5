/* Any memory of the program works in place; device pointers cannot be taken for it; what is not there is refused */
#define _DEFAULT_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "session.h"

#define BYTES 4096

static unsigned char of_the_image[BYTES];

static void round_trip(Session session, unsigned char* there, unsigned char* back, unsigned char seed) {
  void* device = NULL;
  size_t place;
  for (place = 0; place < BYTES; ++place) there[place] = (unsigned char)(seed + place * 7);
  OK(tessMalloc(session.mesh, BYTES, &device));
  HOLDS((uintptr_t)device >= (uintptr_t)1 << 48); /* above every address that the program can have */
  OK(tessMemcpyAsync(device, there, BYTES, TESS_COPY_H2D, session.stream));
  there[0] = (unsigned char)(seed + 1); /* before the copy has to run: it reads the memory, not a copy of it */
  OK(tessMemcpyAsync(back, device, BYTES, TESS_COPY_D2H, session.stream));
  OK(tessStreamSynchronize(session.stream));
  HOLDS(memcmp(there, back, BYTES) == 0);
  OK(tessFree(session.mesh, device));
}

int main(void) {
  Session session = begin();
  unsigned char on_the_stack[BYTES];
  unsigned char* allocated = (unsigned char*)malloc(BYTES + 1);
  unsigned char* pages = (unsigned char*)mmap(NULL, 3 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void *pinned = NULL, *device = NULL;

  round_trip(session, on_the_stack, of_the_image, 1);
  round_trip(session, allocated + 1, on_the_stack, 2);
  round_trip(session, of_the_image, allocated + 1, 3);
  OK(tessHostAlloc(BYTES, &pinned, TESS_MEM_PINNED_HOST));
  round_trip(session, (unsigned char*)pinned, on_the_stack, 4);
  round_trip(session, on_the_stack, (unsigned char*)pinned, 5);
  HOLDS(((unsigned char*)pinned)[9] == on_the_stack[9]);

  OK(tessMalloc(session.mesh, BYTES, &device));
  INVALID(tessMemcpyAsync(device, (void*)(uintptr_t)4096, BYTES, TESS_COPY_H2D, session.stream));
  INVALID(tessMemcpyAsync(device, (void*)~(uintptr_t)0, BYTES, TESS_COPY_H2D, session.stream));
  INVALID(tessMemcpyAsync(on_the_stack, of_the_image, BYTES, TESS_COPY_H2D, session.stream));
  INVALID(tessMemcpyAsync(device, device, BYTES, TESS_COPY_H2D, session.stream));
  INVALID(tessMemcpyAsync(device, pinned, BYTES + 1, TESS_COPY_H2D, session.stream)); /* past the end of both */
  HOLDS(munmap(pages + 2 * BYTES, BYTES) == 0);
  INVALID(tessMemcpyAsync(pages + BYTES, device, BYTES + 1, TESS_COPY_D2H, session.stream));
  OK(tessMemcpyAsync(pages + BYTES, of_the_image, 0, TESS_COPY_H2D, session.stream)); /* of nothing: anything goes */
  INVALID(tessHostFree(allocated));
  OK(tessHostFree(pinned));
  INVALID(tessHostFree(pinned));
  INVALID(tessMemcpyAsync(device, pinned, 1, TESS_COPY_H2D, session.stream));
  INVALID(tessFree(session.mesh, on_the_stack));
  INVALID(tessModuleLoad(session.context, device, BYTES, (tessModule_t*)&pinned));
  INVALID(tessModuleLoad(session.context, of_the_image, (size_t)-1, (tessModule_t*)&pinned));
  OK(tessStreamSynchronize(session.stream));
  OK(tessHostAlloc(BYTES, &pinned, TESS_MEM_PINNED_HOST));
  HOLDS(((unsigned char*)pinned)[BYTES - 1] == 0);
  OK(tessShutdown(session.context));
  free(allocated);
  return failures != 0;
}
