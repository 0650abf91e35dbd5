/*
 * The program of the runtime specification, section 18, as it is printed there between the two lines of dashes, completed
 * to a translation unit: includes, sizes, data, and a check that every call returns TESS_OK.
 *
 *   section_18 IMAGE INPUTS   writes the output to standard output; INPUTS are Q, K and V, one behind the other
 */
#include <stdio.h>
#include <stdlib.h>

#include "tessera.h"

enum { B = 1, H = 2, L = 4, D = 8, Q_BYTES = B * H * L * D * 4, K_BYTES = Q_BYTES, V_BYTES = Q_BYTES, O_BYTES = Q_BYTES };

static unsigned char* fatbin_image;
static size_t fatbin_size;
static unsigned char* inputs;
static unsigned char output[O_BYTES];

static void check(const char* call, tessStatus_t status) {
  if (status == TESS_OK) return;
  fprintf(stderr, "%s: status %d\n", call, (int)status);
  exit(1);
}

#define CHECKED(call) check(#call, call)

/* The launch, with its inputs copied before it and its output behind it, which the printed program leaves out */
static tessStatus_t launch_with_data(tessKernel_t kernel, tessMesh_t mesh, tessLaunchConfig cfg, const void* argBuffer,
                                     size_t argSize, tessStream_t stream) {
  void* const* pointers = (void* const*)argBuffer;
  size_t place;
  for (place = 0; place < 3; ++place)
    CHECKED(tessMemcpyAsync(pointers[place], inputs + place * Q_BYTES, Q_BYTES, TESS_COPY_H2D, stream));
  CHECKED(tessLaunch(kernel, mesh, cfg, argBuffer, argSize, stream));
  return tessMemcpyAsync(output, pointers[3], O_BYTES, TESS_COPY_D2H, stream);
}

#define tessInit(...) CHECKED(tessInit(__VA_ARGS__))
#define tessMeshCreate(...) CHECKED(tessMeshCreate(__VA_ARGS__))
#define tessStreamCreate(...) CHECKED(tessStreamCreate(__VA_ARGS__))
#define tessMalloc(...) CHECKED(tessMalloc(__VA_ARGS__))
#define tessModuleLoad(...) CHECKED(tessModuleLoad(__VA_ARGS__))
#define tessKernelGet(...) CHECKED(tessKernelGet(__VA_ARGS__))
#define tessLaunch(...) CHECKED(launch_with_data(__VA_ARGS__))
#define tessStreamSynchronize(...) CHECKED(tessStreamSynchronize(__VA_ARGS__))
#define tessStreamDestroy(...) CHECKED(tessStreamDestroy(__VA_ARGS__))
#define tessModuleUnload(...) CHECKED(tessModuleUnload(__VA_ARGS__))
#define tessFree(...) CHECKED(tessFree(__VA_ARGS__))
#define tessMeshDestroy(...) CHECKED(tessMeshDestroy(__VA_ARGS__))
#define tessShutdown(...) CHECKED(tessShutdown(__VA_ARGS__))

static void section_18(void) {
/* -------- */
tessContext_t ctx; tessInit(&ctx);
tessMesh_t mesh; int devs[8]={0,1,2,3,4,5,6,7};
tessMeshCreate(ctx, devs, 8, (tessMeshAxes){.tp=2,.pp=1,.dp=4,.ep=0}, &mesh);

tessStream_t s; tessStreamCreate(mesh, /*priority=*/0, &s);

void* Q; tessMalloc(mesh, Q_BYTES, &Q);
void* K; tessMalloc(mesh, K_BYTES, &K);
void* V; tessMalloc(mesh, V_BYTES, &V);
void* O; tessMalloc(mesh, O_BYTES, &O);

tessModule_t mod;
tessModuleLoad(ctx, fatbin_image, fatbin_size, &mod);
tessKernel_t ker;
tessKernelGet(mod, "flash_attention_fused", &ker);

struct { void* Q; void* K; void* V; void* O; int B,H,L,D; float scale; } args = {Q,K,V,O,B,H,L,D,1.0f};
tessLaunchConfig cfg = { .grid={256,1,1}, .block={128,1,1}, .shmemBytes=0, .flags=TESS_LAUNCH_DETERMINISTIC };
tessLaunch(ker, mesh, cfg, &args, sizeof(args), s);

tessStreamSynchronize(s);
tessStreamDestroy(s);
tessModuleUnload(mod);
tessFree(mesh, Q); tessFree(mesh, K); tessFree(mesh, V); tessFree(mesh, O);
tessMeshDestroy(mesh);
tessShutdown(ctx);
/* -------- */
}

static unsigned char* contents(const char* path, size_t* size) {
  unsigned char* data = NULL;
  size_t got;
  FILE* file = fopen(path, "rb");
  if (!file) exit(2);
  *size = 0;
  do {
    data = (unsigned char*)realloc(data, *size + 4096);
    if (!data) exit(2);
    got = fread(data + *size, 1, 4096, file);
    *size += got;
  } while (got);
  fclose(file);
  return data;
}

int main(int count, char** arguments) {
  size_t size;
  if (count != 3) return 2;
  fatbin_image = contents(arguments[1], &fatbin_size);
  inputs = contents(arguments[2], &size);
  if (size != 3 * Q_BYTES) return 2;
  section_18();
  free(fatbin_image);
  free(inputs);
  return fwrite(output, 1, O_BYTES, stdout) == O_BYTES ? 0 : 2;
}
