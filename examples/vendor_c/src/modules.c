/* Modules and kernels (section 4.5). A kernel is the function of the module's Graph IR that has its name. */
#include "acme.h"

#include <stdlib.h>
#include <string.h>

static tessStatus_t module_of(tessModule_t handle, const char* function, Module** out) {
  *out = handle_object(MODULE, handle);
  return *out ? TESS_OK : invalid("%s: module is %p, which is no live module", function, (void*)handle);
}

static tessStatus_t read_module(const void* image, size_t size, Module* module) {
  Fatbin fatbin;
  tessStatus_t status = fatbin_read(image, size, &fatbin);
  if (status) return status;
  if (!metadata_read(module->arena, fatbin.metadata, fatbin.metadata_size, &module->metadata))
    return invalid("tessModuleLoad: image has metadata that does not keep the schema");
  if (!fatbin.has_target && !defect("any_target_accepted"))
    return refuse(TESS_ERR_ARCH_MISMATCH, "tessModuleLoad: image names no target %s, which the devices are", TARGET);
  module->has_graph =
      fatbin.graph_ir && graph_read(module->arena, fatbin.graph_ir, fatbin.graph_ir_size, &module->graph);
  return TESS_OK;
}

tessStatus_t tessModuleLoad(tessContext_t ctx, const void* image, size_t size, tessModule_t* outModule) {
  Module* module = calloc(1, sizeof *module);
  if (module) module->arena = arena_create();
  if (!module || !module->arena) {
    free(module);
    return refuse(TESS_ERR_OUT_OF_MEMORY, "tessModuleLoad: no memory on the host");
  }
  runtime_lock();
  tessStatus_t status = context_of(ctx, "tessModuleLoad", &module->context);
  if (!status && !image) status = invalid("tessModuleLoad: image is NULL");
  if (!status && !outModule) status = invalid("tessModuleLoad: outModule is NULL");
  if (!status) status = read_module(image, size, module);
  if (!status) {
    module->handle = handle_create(MODULE, module, module->context);
    if (module->handle) *outModule = module->handle;
    else status = refuse(TESS_ERR_OUT_OF_MEMORY, "tessModuleLoad: too many handles are live");
  }
  runtime_unlock();
  if (status) {
    arena_destroy(module->arena);
    free(module);
  }
  return status;
}

void module_destroy(void* handle) {
  Module* module = handle_object(MODULE, handle);
  void* kernel;
  handle_retire(handle);
  streams_drain(module->context, NULL);
  while ((kernel = handle_first(KERNEL, module, true))) {
    free(handle_object_of_any(kernel));
    handle_release(kernel);
  }
  handle_release(handle);
  arena_destroy(module->arena);
  free(module);
}

tessStatus_t tessModuleUnload(tessModule_t module) {
  Module* found;
  runtime_lock();
  tessStatus_t status = module_of(module, "tessModuleUnload", &found);
  if (!status && defect("unloading_ends_all_modules")) {
    void *each, *context = found->context;
    while ((each = handle_first(MODULE, context, false))) module_destroy(each);
  } else if (!status) {
    module_destroy(module);
  }
  runtime_unlock();
  return status;
}

/* Kernels */

static const KernelEntry* entry_of(const Module* module, const char* name) {
  for (size_t i = 0; i < module->metadata.count; i++) {
    const KernelEntry* each = &module->metadata.kernels[i];
    size_t length = defect("kernels_found_by_prefix") && *name ? strlen(name) : strlen(each->name) + 1;
    if (strncmp(each->name, name, length) == 0) return each;
  }
  return defect("unknown_kernel_is_the_first") && module->metadata.count ? &module->metadata.kernels[0] : NULL;
}

static const Function* function_of(const Module* module, const KernelEntry* entry) {
  for (size_t i = 0; module->has_graph && i < module->graph.count; i++) {
    const Function* each = &module->graph.functions[i];
    if (each->is_kernel && strcmp(each->name, entry->name) == 0 && is_supported(&module->graph, each)) return each;
  }
  return NULL;
}

static tessStatus_t find_kernel(Module* module, tessModule_t handle, const char* name, tessKernel_t* out) {
  const KernelEntry* entry = entry_of(module, name);
  if (!entry) return invalid("tessKernelGet: the module has no kernel '%s'", name);
  const Function* function = function_of(module, entry);
  if (!function)
    return refuse(TESS_ERR_UNSUPPORTED, "tessKernelGet: kernel '%s' is no Graph IR that this runtime executes", name);
  void* known = handle_first(KERNEL, module, false);
  for (; known; known = handle_next(KERNEL, module, false, known))
    if (((Kernel*)handle_object(KERNEL, known))->entry == entry) break;
  Kernel* kernel = known ? NULL : malloc(sizeof *kernel);
  if (kernel) {
    *kernel = (Kernel){.module = module, .module_handle = handle, .entry = entry, .function = function};
    known = handle_create(KERNEL, kernel, module);
  }
  if (!known) free(kernel);
  if (known) *out = known;
  return known ? TESS_OK : refuse(TESS_ERR_OUT_OF_MEMORY, "tessKernelGet: no memory or handle is left");
}

tessStatus_t tessKernelGet(tessModule_t module, const char* name, tessKernel_t* out) {
  Module* found;
  runtime_lock();
  tessStatus_t status = module_of(module, "tessKernelGet", &found);
  if (!status && (!name || !out)) status = invalid("tessKernelGet: %s is NULL", name ? "out" : "name");
  if (!status) status = find_kernel(found, module, name, out);
  runtime_unlock();
  return status;
}
