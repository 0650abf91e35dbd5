/* A program that is not linked with the library, and loads it without showing its symbols to others */
#include <dlfcn.h>

#include "expect.h"

int main(int count, char** arguments) {
  void* library = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  const tessApi* (*get)(void);
  const tessApi* api;
  tessContext_t context = NULL;
  int major = -1, minor = -1, patch = -1;
  if (!library) return 2;
  *(void**)&get = dlsym(library, "tessGetApi");
  if (!get) return 2;
  api = get();
  HOLDS(api->struct_size == sizeof *api);
  HOLDS(api->major == TESS_ABI_MAJOR && api->minor == TESS_ABI_MINOR);
  OK(api->tessGetVersion(&major, &minor, &patch));
  HOLDS(major == api->major && minor == api->minor);
  OK(api->tessInit(&context));
  OK(api->tessShutdown(context));
  EXPECT(TESS_ERR_NOT_INITIALIZED, api->tessShutdown(context));
  return failures != 0;
}
