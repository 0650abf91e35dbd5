/*
 * A collectives library behind the Tessera conformance suite: fill in the methods that yours has.
 *
 * What each method takes and returns: docs/protocol.md of the project, under `collectives`.
 */
#include "protocol.h"

static const char HELLO[] =
    "{\"protocol\":{\"minimum\":1,\"maximum\":1},"
    "\"implementation\":{\"name\":\"my-implementation\",\"version\":\"0.1\"},"
    "\"documents\":[\"collectives\",\"language_ir\",\"runtime_abi\"]," /* where the clauses of an all-reduce stand */
    "\"capabilities\":{\"operation-access\":\"enforced\"},"            /* claim only what works */
    "\"parallel\":true," /* several processes may answer at once; take it away where they share a device */
    "\"arithmetic\":{\"level\":\"strict\",\"trees\":{\"all_reduce\":\"pairwise\"}}}";

/* The sum over ranks by the balanced tree of neighbours; an odd one is carried on unchanged. */
static void all_reduce(const Json* inputs, const char* op) {
  size_t ranks = inputs->count, left = ranks;
  Tensor* tensors = take(ranks * sizeof *tensors);
  bool known = !strcmp(op, "sum");
  const Json* input = inputs->first;
  for (size_t rank = 0; rank < ranks; ++rank, input = input->next) {
    tensors[rank] = read_tensor(input);
    known = known && !strcmp(tensors[rank].dtype, "fp32");
  }
  if (!known) {
    print_unsupported("collectives.all_reduce of this op or dtype");
    return;
  }
  for (; left > 1; left = (left + 1) / 2) {
    for (size_t at = 0; at < left; at += 2) {
      float *x = (float*)tensors[at].data, *y = at + 1 < left ? (float*)tensors[at + 1].data : NULL;
      for (size_t i = 0; y && i < tensors[at].bytes / sizeof *x; ++i) x[i] += y[i];
      tensors[at / 2] = tensors[at];
    }
  }
  printf("{\"returned\":{\"outputs\":[");
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (rank) putchar(',');
    print_tensor(&tensors[0]);
  }
  printf("]}}");
}

static bool answer(const char* method, const Json* params) {
  if (strcmp(method, "collectives.all_reduce")) return false;
  all_reduce(member(params, "inputs"), text_of(params, "op"));
  return true;
}

int main(void) { return serve(HELLO, answer); }
