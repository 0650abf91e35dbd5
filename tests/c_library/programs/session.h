#include "expect.h"

/* A context, a mesh of two devices and a stream */
typedef struct {
  tessContext_t context;
  tessMesh_t mesh;
  tessStream_t stream;
} Session;

static Session begin(void) {
  Session made = {NULL, NULL, NULL};
  const int devices[2] = {0, 1};
  const tessMeshAxes axes = {0, 0, 2, 0};
  OK(tessInit(&made.context));
  OK(tessMeshCreate(made.context, devices, 2, axes, &made.mesh));
  OK(tessStreamCreate(made.mesh, 0, &made.stream));
  return made;
}
