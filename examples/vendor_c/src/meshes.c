/* Meshes of the machine's devices (section 4.2). An axis of 0 is absent and counts as one (AMB-RT-01). */
#include "acme.h"

#include <stdlib.h>
#include <string.h>

tessStatus_t mesh_of(tessMesh_t handle, const char* function, Mesh** out) {
  *out = handle_object(MESH, handle);
  if (*out) return TESS_OK;
  return refuse(TESS_ERR_NOT_INITIALIZED, "%s: mesh is %p, which is no live mesh", function, (void*)handle);
}

int axis_of_name(const char* name) {
  static const char* const names[] = {"tp", "pp", "dp", "ep"};
  if (name)
    for (int axis = 0; axis < 4; axis++)
      if (strcmp(name, names[axis]) == 0) return axis;
  return -1;
}

static tessStatus_t read_devices(const int* ids, int count, Mesh* mesh) {
  if (!ids) return invalid("tessMeshCreate: deviceIds is NULL");
  if (count < 1 || count > DEVICES) return invalid("tessMeshCreate: nDevices is %d; 1 to %d are allowed", count, DEVICES);
  for (int rank = 0; rank < count; rank++) {
    if (ids[rank] < 0 || ids[rank] >= DEVICES)
      return invalid("tessMeshCreate: device %d is not of this machine, which has 0 to %d", ids[rank], DEVICES - 1);
    if (mesh->device_mask >> ids[rank] & 1 && !defect("device_named_twice"))
      return invalid("tessMeshCreate: device %d is named twice", ids[rank]);
    mesh->device_mask |= 1u << ids[rank];
    mesh->devices[rank] = ids[rank];
  }
  mesh->ranks = count;
  return TESS_OK;
}

static tessStatus_t read_axes(tessMeshAxes axes, Mesh* mesh) {
  const int sizes[4] = {axes.tp, axes.pp, axes.dp, axes.ep};
  int64_t product = 1;
  for (int axis = 0; axis < 4; axis++) {
    if (sizes[axis] < 0) return invalid("tessMeshCreate: an axis has %d ranks", sizes[axis]);
    if (sizes[axis] == 0 && defect("absent_axis_refused")) return invalid("tessMeshCreate: an axis is 0");
    mesh->axes[axis] = sizes[axis] ? sizes[axis] : 1;
    if (mesh->axes[axis] > mesh->ranks && !defect("axes_multiplied_in_32_bits"))
      return invalid("tessMeshCreate: an axis has %d ranks, the mesh %d", sizes[axis], mesh->ranks);
    product *= mesh->axes[axis];
    if (defect("axes_multiplied_in_32_bits")) product = (int32_t)product;
  }
  if (product != mesh->ranks)
    return invalid("tessMeshCreate: the axes hold %lld ranks, nDevices is %d", (long long)product, mesh->ranks);
  return TESS_OK;
}

tessStatus_t tessMeshCreate(tessContext_t ctx, const int* deviceIds, int nDevices, tessMeshAxes axes,
                            tessMesh_t* outMesh) {
  Mesh* mesh = calloc(1, sizeof *mesh);
  if (!mesh) return refuse(TESS_ERR_OUT_OF_MEMORY, "tessMeshCreate: no memory on the host");
  runtime_lock();
  tessStatus_t status = context_of(ctx, "tessMeshCreate", &mesh->context);
  if (!status && !outMesh) status = invalid("tessMeshCreate: outMesh is NULL");
  if (!status) status = read_devices(deviceIds, nDevices, mesh);
  if (!status) status = read_axes(axes, mesh);
  if (!status) {
    mesh->context_handle = ctx;
    mesh->handle = handle_create(MESH, mesh, mesh->context);
    if (mesh->handle) *outMesh = mesh->handle;
    else status = refuse(TESS_ERR_OUT_OF_MEMORY, "tessMeshCreate: too many handles are live");
  }
  runtime_unlock();
  if (status) free(mesh);
  return status;
}

void mesh_destroy(void* handle) {
  Mesh* mesh = handle_object(MESH, handle);
  void* stream;
  handle_retire(handle);
  streams_drain(mesh->context, NULL); /* another mesh of the same devices may use the memory */
  while ((stream = handle_first(STREAM, mesh, false))) stream_destroy(stream);
  while (handle_first(STREAM, mesh, true)) progress_wait();
  memory_free_of(mesh);
  handle_release(handle);
  free(mesh);
}

tessStatus_t tessMeshDestroy(tessMesh_t mesh) {
  Mesh* found;
  runtime_lock();
  tessStatus_t status = mesh_of(mesh, "tessMeshDestroy", &found);
  if (!status) mesh_destroy(mesh);
  runtime_unlock();
  return status;
}
