// A kernel library behind the Tessera conformance suite: add the operations that yours has.
// Names and attributes of operations: docs/protocol.md of the project, under `numerics`.
import { readTensor, returned, serve, unsupported, writeTensor } from "./protocol.mjs";

const hello = {
  protocol: { minimum: 1, maximum: 1 },
  implementation: { name: "my-implementation", version: "0.1" },
  documents: ["language_ir"],
  capabilities: { "operation-access": "enforced" }, // claim only what works
  arithmetic: { level: "strict" },
  parallel: true, // several processes may answer at once; take it away where they share a device
};

const elementwise = {
  add: (a, b) => Math.fround(a + b),
  multiply: (a, b) => Math.fround(a * b),
};

const methods = {
  "numerics.evaluate": ({ operation, inputs }) => {
    if (!Object.hasOwn(elementwise, operation)) return unsupported(`numerics.evaluate ${operation}`);
    const [a, b] = inputs.map(readTensor);
    if (a.dtype !== "fp32" || b.dtype !== "fp32" || String(a.shape) !== String(b.shape)) {
      return unsupported(`${operation} of ${a.dtype} [${a.shape}] and ${b.dtype} [${b.shape}]`);
    }
    const data = Buffer.alloc(a.data.length);
    for (let at = 0; at < data.length; at += 4) {
      data.writeFloatLE(elementwise[operation](a.data.readFloatLE(at), b.data.readFloatLE(at)), at);
    }
    return returned({ outputs: [writeTensor({ dtype: "fp32", shape: a.shape, data })] });
  },
};

await serve(hello, methods);
