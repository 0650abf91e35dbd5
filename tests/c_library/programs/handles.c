/* Handles that are NULL, dead, of another kind or garbage give the statuses of the specification */
#include <stdint.h>

#include "session.h"

int main(void) {
  Session session = begin();
  const int devices[1] = {0};
  const tessMeshAxes axes = {0, 0, 0, 0};
  void* const garbage[] = {&session, (void*)(uintptr_t)0xdeadbeefdeadbeefu, (void*)~(uintptr_t)0, (void*)4096};
  tessMesh_t mesh = NULL;
  tessStream_t stream = NULL;
  tessEvent_t event = NULL;
  size_t place;

  HOLDS(session.context && session.mesh && session.stream);
  for (place = 0; place < sizeof garbage / sizeof *garbage; ++place) {
    EXPECT(TESS_ERR_NOT_INITIALIZED, tessShutdown((tessContext_t)garbage[place]));
    EXPECT(TESS_ERR_NOT_INITIALIZED, tessMeshDestroy((tessMesh_t)garbage[place]));
    INVALID(tessStreamSynchronize((tessStream_t)garbage[place]));
    INVALID(tessEventDestroy((tessEvent_t)garbage[place]));
    INVALID(tessModuleUnload((tessModule_t)garbage[place]));
    INVALID(tessProfilerStop((tessProfiler_t)garbage[place], "nowhere.json"));
  }
  EXPECT(TESS_ERR_NOT_INITIALIZED, tessShutdown(NULL));
  INVALID(tessStreamSynchronize(NULL));

  INVALID(tessStreamSynchronize((tessStream_t)session.context));
  INVALID(tessShutdown((tessContext_t)session.stream));
  INVALID(tessMeshCreate((tessContext_t)session.mesh, devices, 1, axes, &mesh));

  INVALID(tessInit(NULL));
  INVALID(tessStreamCreate(session.mesh, 0, NULL));
  INVALID(tessMeshCreate(session.context, NULL, 1, axes, &mesh));
  INVALID(tessMeshCreate(session.context, devices, 1 << 30, axes, &mesh)); /* far more ids than there is memory */
  INVALID(tessGetNumericsPolicy(session.context, NULL));
  INVALID(tessGetVersion(NULL, NULL, NULL));
  HOLDS(mesh == NULL); /* what fails writes nothing */

  OK(tessStreamCreate(session.mesh, 0, &stream));
  OK(tessStreamDestroy(stream));
  INVALID(tessStreamSynchronize(stream));
  INVALID(tessStreamDestroy(stream));
  OK(tessEventCreate(&event));
  OK(tessEventDestroy(event));
  INVALID(tessEventRecord(event, session.stream));
  OK(tessShutdown(session.context));
  EXPECT(TESS_ERR_NOT_INITIALIZED, tessShutdown(session.context));
  EXPECT(TESS_ERR_NOT_INITIALIZED, tessMeshDestroy(session.mesh));
  EXPECT(TESS_ERR_NOT_INITIALIZED, tessEventCreate(&event));
  return failures != 0;
}
