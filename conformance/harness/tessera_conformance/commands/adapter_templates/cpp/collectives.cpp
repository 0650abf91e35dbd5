// A collectives library behind the Tessera conformance suite: fill in the methods that yours has.
//
// What each method takes and returns: docs/protocol.md of the project, under `collectives`.
#include <cstring>

#include "protocol.hpp"

using namespace protocol;

// Claim only what works. The clauses of an all-reduce stand in three documents.
const char hello[] = R"({"protocol":{"minimum":1,"maximum":1},)"
                     R"("implementation":{"name":"my-implementation","version":"0.1"},)"
                     R"("documents":["collectives","language_ir","runtime_abi"],)"
                     R"("capabilities":{"operation-access":"enforced"},)"
                     // several processes may answer at once; take it away where they share a device
                     R"("parallel":true,)"
                     R"("arithmetic":{"level":"strict","trees":{"all_reduce":"pairwise"}}})";

void add(Tensor& a, const Tensor& b) {
  for (std::size_t at = 0; at < a.data.size(); at += sizeof(float)) {
    float x, y;  // the machine is little-endian, as the bytes are
    std::memcpy(&x, &a.data[at], sizeof x);
    std::memcpy(&y, &b.data[at], sizeof y);
    x += y;
    std::memcpy(&a.data[at], &x, sizeof x);
  }
}

// The sum over ranks by the balanced tree of neighbours; an odd one is carried on unchanged.
std::string all_reduce(const Json& params) {
  std::vector<Tensor> rows;
  for (const Json& input : params["inputs"].items) rows.push_back(read_tensor(input));
  const std::size_t ranks = rows.size();
  for (const Tensor& row : rows) {
    if (params["op"].string != "sum" || row.dtype != "fp32") {
      return unsupported("collectives.all_reduce " + params["op"].string + " of " + row.dtype);
    }
  }
  for (std::size_t left = ranks; left > 1; left = (left + 1) / 2) {
    for (std::size_t at = 0; at < left; at += 2) {
      if (at + 1 < left) add(rows[at], rows[at + 1]);
      if (at) rows[at / 2] = rows[at];
    }
  }
  return returned(std::vector<Tensor>(ranks, rows.at(0)));
}

int main() { return serve(hello, {{"collectives.all_reduce", all_reduce}}); }
