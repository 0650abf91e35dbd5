/* Images are read and checked by sources of ../vendor_c (the Makefile names them), of which nothing else is used. */
#include <string.h>

#include "../../vendor_c/src/acme.h"

tessStatus_t read_image(const void* image, size_t size, char** graph_ir);

/* What they ask of their own library: no defects, and statuses without texts */
bool defect(const char* name) { return (void)name, false; }
tessStatus_t refuse(tessStatus_t status, const char* format, ...) { return (void)format, status; }
tessStatus_t invalid(const char* format, ...) { return (void)format, TESS_ERR_INVALID_VALUE; }

tessStatus_t read_image(const void* image, size_t size, char** graph_ir) {
  Fatbin fatbin;
  tessStatus_t status = fatbin_read(image, size, &fatbin);
  if (status) return status;
  Arena* arena = arena_create();
  if (!arena) return TESS_ERR_OUT_OF_MEMORY;
  Metadata metadata;
  bool sound = metadata_read(arena, fatbin.metadata, fatbin.metadata_size, &metadata);
  arena_destroy(arena);
  if (!sound) return TESS_ERR_INVALID_VALUE;
  if (!fatbin.has_target) return TESS_ERR_ARCH_MISMATCH;
  if (!fatbin.graph_ir) return TESS_ERR_UNSUPPORTED;
  *graph_ir = strndup(fatbin.graph_ir, fatbin.graph_ir_size);
  return *graph_ir ? TESS_OK : TESS_ERR_OUT_OF_MEMORY;
}
