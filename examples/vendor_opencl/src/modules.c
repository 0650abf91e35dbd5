/* Section 4.5: images, read by the sources of ../vendor_c; kernels, a handful that are known by name, arguments and
 * operations, each of which is a kernel of kernels.cl; and launches. Any other kernel is TESS_ERR_UNSUPPORTED. */
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* const source =
#include "kernels.inc"
    ;

/* A kernel of an image and the one of kernels.cl that does the same. */
typedef struct {
  const char *name, *arguments, *operations, *of_opencl;
} Program;

static const Program PROGRAMS[] = {
    {"fill", "int32, tensor<64xint32>", "update[0:64] return", "fill_64"},
    {"digit", "int32, tensor<64xint32>", "constant=10 multiply add return", "digit_64"},
    {"copy", "tensor<64xint32>, tensor<64xint32>", "return", "copy_64"},
    {"axpy", "fp32, tensor<64xfp32>, tensor<64xfp32>", "multiply add return", "axpy_64"},
    {"divide", "int32, tensor<64xint32>", "constant=64 divide update[0] return", "divide_64"},
    {"index", "int32, tensor<64xint32>", "constant=1 update[$0] return", "index_64"},
    {"steps", "int32, tensor<64xint32>", "constant=0 constant=64 for constant=1 update[$0] yield return", "steps_64"},
    {"nothing", "", "return", "nothing"},
    {"digit", "int32, tensor<2xint32>", "constant=10 multiply add return", "digit_2"},
    {"move", "tensor<2xint32>, tensor<2xint32>", "return", "copy_2"},
    {"follow", "tensor<2xint32>, tensor<2xint32>", "constant=10 multiply add return", "follow_2"},
};

static cl_program built(void) {
  static cl_program program;
  if (program) return program;
  program = clCreateProgramWithSource(the_context, 1, (const char**)&source, NULL, NULL);
  if (clBuildProgram(program, (cl_uint)device_count, the_devices, CHECKS ? "" : "-DUNCHECKED", NULL, NULL)) {
    char log[4096] = "";
    clGetProgramBuildInfo(program, the_devices[0], CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
    fprintf(stderr, "kernels.cl: %s\n", log);
  }
  return program;
}

/* A kernel of kernels.cl, made once. */
cl_kernel kernel_named(const char* name) {
  static struct { char name[32]; cl_kernel kernel; } made[64];
  int i = 0;
  while (i < 63 && made[i].kernel && strcmp(made[i].name, name)) i++;
  if (!made[i].kernel) {
    snprintf(made[i].name, sizeof made[i].name, "%s", name);
    made[i].kernel = clCreateKernel(built(), name, NULL);
  }
  return made[i].kernel;
}

/* Modules */

tessStatus_t tessModuleLoad(tessContext_t ctx, const void* image, size_t size, tessModule_t* outModule) {
  ENTER(context, ctx, CONTEXT);
  REQUIRE(image && outModule, INVALID);
  char* graph_ir;
  tessStatus_t status = read_image(image, size, &graph_ir);
  REQUIRE(!status, status);
  CREATE(module, MODULE, context);
  module->graph_ir = graph_ir;
  *outModule = (tessModule_t)module;
  return leave(TESS_OK);
}

tessStatus_t tessModuleUnload(tessModule_t handle) {
  ENTER(module, handle, MODULE);
  finish_all();
  end(module);
  return leave(TESS_OK);
}

static void append(char* text, size_t size, const char* more, size_t length) {
  if (strlen(text) + length + 1 < size) strncat(text, more, length);
}

/* The operations between two places, with the values of constants and the places of updates. */
static void read_operations(const char* begin, const char* end, char* text, size_t size) {
  static const char prefix[] = "\"tessera.graph.";
  for (const char* at = begin; (at = strstr(at, prefix)) && at < end;) {
    const char *line_end = strchr(at, '\n'), *value = strstr(at, "{value = "), *spec = strstr(at, "{spec = [\"");
    at += sizeof prefix - 1;
    if (*text) append(text, size, " ", 1);
    append(text, size, at, strcspn(at, "\""));
    if (value && value < line_end) append(text, size, "=", 1), append(text, size, value + 9, strcspn(value + 9, "}"));
    if (spec && spec < line_end)
      append(text, size, "[", 1), append(text, size, spec + 10, strcspn(spec + 10, "\"")), append(text, size, "]", 1);
  }
}

/* Whether the module has a kernel of this name, and the program that it is, if it is one of them. */
static bool find(const Object* module, const char* name, const Program** program) {
  char *pattern, arguments[256] = "", operations[256] = "";
  if (asprintf(&pattern, "{sym_name = \"%s\", function_type = (", name) < 0) return false;
  const char *tail = strstr(module->graph_ir, pattern), *begin = module->graph_ir, *next;
  const size_t length = strlen(pattern);
  free(pattern);
  if (!tail) return false;
  while ((next = strstr(begin + 1, "\"tessera.graph.kernel\"")) && next < tail) begin = next;
  append(arguments, sizeof arguments, tail + length, strcspn(tail + length, ")"));
  read_operations(begin + 1, tail, operations, sizeof operations);
  for (size_t i = 0; i < sizeof PROGRAMS / sizeof *PROGRAMS; i++)
    if (!strcmp(PROGRAMS[i].name, name) && !strcmp(PROGRAMS[i].arguments, arguments) &&
        !strcmp(PROGRAMS[i].operations, operations))
      *program = &PROGRAMS[i];
  return true;
}

tessStatus_t tessKernelGet(tessModule_t handle, const char* name, tessKernel_t* out) {
  ENTER(module, handle, MODULE);
  REQUIRE(name && out, INVALID);
  const Program* program = NULL;
  REQUIRE(find(module, name, &program), INVALID);
  REQUIRE(program, TESS_ERR_UNSUPPORTED);
  CREATE(kernel, KERNEL, module);
  kernel->program = program;
  *out = (tessKernel_t)kernel;
  return leave(TESS_OK);
}

/* Launches: a tensor is a buffer and the place in it, a number is itself, and what fails says so in `failures`. */

static bool set_arguments(cl_kernel kernel, const char* types, const char* buffer, size_t size, int rank) {
  size_t at = 0;
  cl_uint place = 0;
  for (const char* type = types; *type; type += strcspn(type, ","), type += strspn(type, ", ")) {
    bool tensor = strncmp(type, "tensor", 6) == 0;
    size_t bytes = tensor ? 8 : 4, offset, length = strtoul(tensor ? type + 7 : "0", NULL, 10) * 4;
    at = (at + bytes - 1) / bytes * bytes;
    if (at + bytes > size) return false;
    if (tensor) {
      void* pointer;
      memcpy(&pointer, buffer + at, sizeof pointer);
      Object* memory = device_memory_at(pointer, length, &offset);
      if (!memory || offset % 4 || !memory->buffers[rank]) return false;
      cl_ulong start = offset / 4;
      clSetKernelArg(kernel, place++, sizeof(cl_mem), &memory->buffers[rank]);
      clSetKernelArg(kernel, place++, sizeof start, &start);
    } else clSetKernelArg(kernel, place++, 4, buffer + at);
    at += bytes;
  }
  return (at + 7) / 8 * 8 == size;
}

tessStatus_t tessLaunch(tessKernel_t kernel_handle, tessMesh_t mesh_handle, tessLaunchConfig cfg, const void* argBuffer,
                        size_t argSize, tessStream_t stream_handle) {
  ENTER(mesh, mesh_handle, MESH);
  Object *entry = living(kernel_handle, KERNEL), *stream = living(stream_handle, STREAM);
  REQUIRE(entry && stream && stream->owner == mesh && (argBuffer || !argSize) && !(cfg.flags >> 4), INVALID);
  for (int i = 0; i < 3; i++) REQUIRE(cfg.grid[i] >= 1 && cfg.block[i] >= 0 && cfg.block[i] <= 1024, INVALID);
  REQUIRE((long long)(cfg.block[0] ? cfg.block[0] : 1) * (cfg.block[1] ? cfg.block[1] : 1) *
                  (cfg.block[2] ? cfg.block[2] : 1) <= 1024, INVALID);
  REQUIRE(cfg.shmemBytes <= 48 << 10, INVALID);
  REQUIRE(!(cfg.flags & (TESS_LAUNCH_CAPTURE | TESS_LAUNCH_PERSISTENT)), TESS_ERR_UNSUPPORTED);
  const Program* program = entry->program;
  cl_kernel kernel = kernel_named(program->of_opencl);
  REQUIRE(kernel, TESS_ERR_UNSUPPORTED);
  cl_uint count = 0;
  clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL);
  for (int rank = 0; rank < mesh->ranks; rank++) {
    const size_t one = 1;
    const cl_int place = rank;
    REQUIRE(set_arguments(kernel, program->arguments, argBuffer, argSize, rank), INVALID);
    clSetKernelArg(kernel, count - 2, sizeof(cl_mem), &stream->failures);
    clSetKernelArg(kernel, count - 1, sizeof place, &place);
    cl_int error = clEnqueueNDRangeKernel(stream->queues[rank], kernel, 1, NULL, &one, &one, 0, NULL, NULL);
    REQUIRE(!error, status_of(error));
    clFlush(stream->queues[rank]);
  }
  return leave(TESS_OK);
}
