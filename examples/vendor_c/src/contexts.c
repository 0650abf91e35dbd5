/* Contexts and the version (section 4.1). What a context owns ends with it, in any order (AMB-RT-50). */
#include "acme.h"

#include <stdlib.h>

bool runtime_is_initialized(void) { return handle_first(CONTEXT, NULL, false) != NULL; }

tessStatus_t context_of(tessContext_t handle, const char* function, Context** out) {
  *out = handle_object(CONTEXT, handle);
  if (*out) return TESS_OK;
  return refuse(TESS_ERR_NOT_INITIALIZED, "%s: context is %p, which is no live context of tessInit", function,
                (void*)handle);
}

tessStatus_t tessInit(tessContext_t* ctx) {
  if (!ctx) return invalid("tessInit: ctx is NULL; it is where the context goes");
  Context* context = calloc(1, sizeof *context);
  if (!context) return refuse(TESS_ERR_OUT_OF_MEMORY, "tessInit: no memory on the host");
  runtime_lock();
  void* known = defect("one_context_for_all") ? handle_first(CONTEXT, NULL, false) : NULL;
  context->handle = known ? known : handle_create(CONTEXT, context, NULL);
  *ctx = context->handle;
  runtime_unlock();
  if (known) free(context);
  if (!*ctx) free(context);
  return *ctx ? TESS_OK : refuse(TESS_ERR_OUT_OF_MEMORY, "tessInit: too many handles are live");
}

static void wait_until_gone(Kind kind, const void* owner) {
  while (handle_first(kind, owner, true)) progress_wait();
}

static void context_destroy(Context* context) {
  void *owner = context, *child;
  handle_retire(context->handle);
  if (defect("shutdown_forgets_work")) {
    /* The work that is still queued is thrown away. */
    for (child = handle_first(STREAM, NULL, false); child; child = handle_next(STREAM, NULL, false, child)) {
      Stream* stream = handle_object(STREAM, child);
      if (stream->mesh->context == context) stream->last = stream->first = NULL;
    }
  }
  if (!defect("shutdown_keeps_memory"))
    while ((child = handle_first(MESH, owner, false))) mesh_destroy(child);
  if (!defect("shutdown_keeps_memory")) wait_until_gone(MESH, owner);
  while ((child = handle_first(MODULE, owner, false))) module_destroy(child);
  wait_until_gone(MODULE, owner);
  while ((child = handle_first(PROFILER, owner, false))) profiler_destroy(child);
  handle_release(context->handle);
  if (!defect("shutdown_keeps_memory")) free(context);
}

tessStatus_t tessShutdown(tessContext_t ctx) {
  Context* context;
  runtime_lock();
  tessStatus_t status = context_of(ctx, "tessShutdown", &context);
  if (!status) context_destroy(context);
  runtime_unlock();
  return status;
}

tessStatus_t tessGetVersion(int* major, int* minor, int* patch) {
  if (!major || !minor || (!patch && !defect("version_without_patch")))
    return invalid("tessGetVersion: an out parameter is NULL; all three are written");
  *major = ABI_MAJOR + defect("version_of_another_major");
  *minor = ABI_MINOR;
  if (patch) *patch = defect("version_negative") ? -1 : VERSION_PATCH;
  return TESS_OK;
}

/* Everything is forgotten, as in a new process. */
tessStatus_t tessxReset(void) {
  void* handle;
  runtime_lock();
  while ((handle = handle_first(CONTEXT, NULL, false))) context_destroy(handle_object(CONTEXT, handle));
  events_destroy_all();
  host_memory_free_all();
  runtime_unlock();
  refuse(TESS_OK, "%s", "");
  return TESS_OK;
}
