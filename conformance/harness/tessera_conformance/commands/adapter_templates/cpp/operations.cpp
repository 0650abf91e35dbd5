// A kernel library behind the Tessera conformance suite: add the operations that yours has.
//
// Names and attributes of operations: docs/protocol.md of the project, under `numerics`.
#include <cstring>

#include "protocol.hpp"

using namespace protocol;

// Claim only what works.
const char hello[] = R"({"protocol":{"minimum":1,"maximum":1},)"
                     R"("implementation":{"name":"my-implementation","version":"0.1"},)"
                     R"("documents":["language_ir"],)"
                     R"("capabilities":{"operation-access":"enforced"},)"
                     // several processes may answer at once; take it away where they share a device
                     R"("parallel":true,)"
                     R"("arithmetic":{"level":"strict"}})";

const std::map<std::string, std::function<float(float, float)>> elementwise = {
    {"add", [](float a, float b) { return a + b; }},
    {"multiply", [](float a, float b) { return a * b; }},
};

std::string evaluate(const Json& params) {
  const std::string& operation = params["operation"].string;
  const auto found = elementwise.find(operation);
  const auto& inputs = params["inputs"].items;
  if (found == elementwise.end() || inputs.size() != 2) return unsupported("numerics.evaluate " + operation);
  Tensor a = read_tensor(inputs[0]);
  const Tensor b = read_tensor(inputs[1]);
  if (a.dtype != "fp32" || b.dtype != "fp32" || a.shape != b.shape) return unsupported(operation + " of these operands");
  for (std::size_t at = 0; at < a.data.size(); at += sizeof(float)) {
    float x, y;  // the machine is little-endian, as the bytes are
    std::memcpy(&x, &a.data[at], sizeof x);
    std::memcpy(&y, &b.data[at], sizeof y);
    const float result = found->second(x, y);
    std::memcpy(&a.data[at], &result, sizeof result);
  }
  return returned(std::vector<Tensor>{a});
}

int main() { return serve(hello, {{"numerics.evaluate", evaluate}}); }
