// A complete adapter for the Tessera conformance protocol, without any package: node minimal.mjs
// It parses nothing but the empty program; replace `methods` by calls into your implementation.
import { createInterface } from "node:readline";

const hello = {
  protocol: { minimum: 1, maximum: 1 },
  implementation: { name: "minimal", version: "0.1" },
  documents: ["language_ir"],
  capabilities: {},
  arithmetic: { level: "strict" },
};

const methods = {
  "session.reset": () => ({ returned: {} }),
  "session.close": () => ({ returned: {} }),
  "language.parse": ({ source }) =>
    source.trim() === ""
      ? { returned: { modules: [] } }
      : { unsupported: { feature: "language.module" } },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  const answer = { jsonrpc: "2.0", id };
  if (method === "session.open") {
    answer.result = hello;
  } else if (method in methods) {
    answer.result = methods[method](params);
  } else {
    answer.error = { code: -32601, message: `no method ${method}` };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
  if (method === "session.close") break;
}
