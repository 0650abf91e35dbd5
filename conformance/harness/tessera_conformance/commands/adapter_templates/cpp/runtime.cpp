// A runtime as a C library, in C++, for the Tessera conformance suite: fill in the functions that yours has.
//
// tessera.h declares them all and says what each does. A function that the library does not export reads as
// unsupported, which is never a pass. The harness loads the library in a process of its own.
#include "tessera.h"

#include <map>
#include <memory>
#include <mutex>

struct tessContext {};

namespace {
std::map<tessContext_t, std::unique_ptr<tessContext>> contexts;
std::mutex lock;
}  // namespace

extern "C" {

tessStatus_t tessGetVersion(int* major, int* minor, int* patch) {
  if (!major || !minor || !patch) return TESS_ERR_INVALID_VALUE;
  *major = 1;
  *minor = *patch = 0;
  return TESS_OK;
}

tessStatus_t tessInit(tessContext_t* ctx) {
  if (!ctx) return TESS_ERR_INVALID_VALUE;
  auto made = std::make_unique<tessContext>();
  const std::lock_guard<std::mutex> guard(lock);
  *ctx = made.get();
  contexts[*ctx] = std::move(made);
  return TESS_OK;
}

tessStatus_t tessShutdown(tessContext_t ctx) {
  const std::lock_guard<std::mutex> guard(lock);
  return contexts.erase(ctx) ? TESS_OK : TESS_ERR_INVALID_VALUE;
}

}  // extern "C"
