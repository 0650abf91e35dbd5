// The line protocol of the Tessera conformance suite, without any package: one JSON-RPC 2.0 message a line.
// docs/protocol.md of the project describes it. Standard output carries messages only: log to standard error.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

// The bytes of one word of each dtype; an element of complex64 or complex128 is two words.
const WORD_BYTES = {
  fp8_e4m3: 1, fp8_e5m2: 1, fp16: 2, bf16: 2, tf32: 4, fp32: 4, fp64: 8, int8: 1, int16: 2, int32: 4, int64: 8,
  bool: 1, complex64: 4, complex128: 8,
};

export const returned = (value) => ({ returned: value });
export const unsupported = (feature) => ({ unsupported: { feature } });
export const rejected = (code, phase, message, diagnostics = []) => ({ rejected: { code, phase, message, diagnostics } });

// A tensor of a request: its words as little-endian bytes, row-major. A large one comes as a file of just these.
export function readTensor({ $tensor: { dtype, shape, bits, file } }) {
  if (file !== undefined) return { dtype, shape, data: readFileSync(file) };
  return { dtype, shape, data: swapped(Buffer.from(bits, "hex"), WORD_BYTES[dtype]) };
}

// A tensor of an answer. It may stand inline whatever its size.
export function writeTensor({ dtype, shape, data }) {
  return { $tensor: { dtype, shape, bits: swapped(Buffer.from(data), WORD_BYTES[dtype]).toString("hex") } };
}

// The words with their bytes in the other order: hexadecimal digits begin with the most significant one.
function swapped(data, width) {
  for (let start = 0; start < data.length; start += width) data.subarray(start, start + width).reverse();
  return data;
}

// Answer requests until the session is closed; a method that is not among `methods` reads as unsupported.
export async function serve(hello, methods) {
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);
    const answer = { jsonrpc: "2.0", id };
    if (method === "session.open") {
      answer.result = hello;
    } else if (Object.hasOwn(methods, method)) {
      answer.result = methods[method](params);
    } else if (method.startsWith("session.")) {
      answer.result = returned({});
    } else {
      answer.error = { code: -32601, message: `no method ${method}` };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
    if (method === "session.close") break;
  }
}
