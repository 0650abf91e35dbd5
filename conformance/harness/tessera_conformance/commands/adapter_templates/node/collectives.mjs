// A collectives library behind the Tessera conformance suite: fill in the methods that yours has.
// What each method takes and returns: docs/protocol.md of the project, under `collectives`.
import { readTensor, returned, serve, unsupported, writeTensor } from "./protocol.mjs";

const hello = {
  protocol: { minimum: 1, maximum: 1 },
  implementation: { name: "my-implementation", version: "0.1" },
  documents: ["collectives", "language_ir", "runtime_abi"], // the clauses of an all-reduce stand in three documents
  capabilities: { "operation-access": "enforced" }, // claim only what works
  arithmetic: { level: "strict", trees: { all_reduce: "pairwise" } },
  parallel: true, // several processes may answer at once; take it away where they share a device
};

const sum = (a, b) => {
  const data = Buffer.alloc(a.length);
  for (let at = 0; at < data.length; at += 4) data.writeFloatLE(Math.fround(a.readFloatLE(at) + b.readFloatLE(at)), at);
  return data;
};

const methods = {
  "collectives.all_reduce": ({ inputs, op }) => {
    const tensors = inputs.map(readTensor);
    if (op !== "sum" || tensors.some(({ dtype }) => dtype !== "fp32")) {
      return unsupported(`collectives.all_reduce ${op} of ${tensors[0].dtype}`);
    }
    let rows = tensors.map(({ data }) => data);
    while (rows.length > 1) {
      const next = []; // neighbours are added; an odd one is carried on unchanged
      for (let at = 0; at < rows.length; at += 2) {
        next.push(at + 1 < rows.length ? sum(rows[at], rows[at + 1]) : rows[at]);
      }
      rows = next;
    }
    return returned({ outputs: tensors.map(({ shape }) => writeTensor({ dtype: "fp32", shape, data: rows[0] })) });
  },
};

await serve(hello, methods);
