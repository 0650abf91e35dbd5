// Prints the name and the first values of every vector in a file: node read_vectors.mjs ../vectors/ir/matmul.jsonl
// A vector file is JSON Lines: a header, then one case a line. Tensors are storage codes in hexadecimal, most significant
// digit first and row-major, or, when large, a file of little-endian words beside the vector file.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const BYTES = { fp8_e4m3: 1, fp8_e5m2: 1, int8: 1, bool: 1, fp16: 2, bf16: 2, int16: 2, tf32: 4, fp32: 4, int32: 4, fp64: 8, int64: 8 };
const VALUE = {
  bf16: (word) => VALUE.fp32(word << 16n),
  fp32: (word) => view(word).getFloat32(4),
  tf32: (word) => VALUE.fp32(word),
  fp64: (word) => view(word).getFloat64(0),
  int32: (word) => Number(BigInt.asIntN(32, word)),
};

function view(word) {
  const bytes = new DataView(new ArrayBuffer(8));
  bytes.setBigUint64(0, word);
  return bytes;
}

function words({ dtype, bits, file }, folder) {
  const width = 2 * BYTES[dtype];
  if (bits !== undefined) return bits.match(new RegExp(`.{${width}}`, "g"))?.map((digits) => BigInt(`0x${digits}`)) ?? [];
  const digits = readFileSync(join(folder, file)).reverse().toString("hex"); // reversed: most significant first, last word first
  return digits.match(new RegExp(`.{${width}}`, "g")).reverse().map((word) => BigInt(`0x${word}`));
}

const [path] = process.argv.slice(2);
if (!path) {
  console.error("usage: node read_vectors.mjs FILE.jsonl");
  process.exit(2);
}
const [header, ...cases] = readFileSync(path, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
console.log(`${header.topic}: ${cases.length} vectors`);
for (const { name, expected } of cases) {
  const tensor = expected.outputs[0].$tensor;
  const decode = VALUE[tensor.dtype] ?? ((word) => `0x${word.toString(16).padStart(2 * BYTES[tensor.dtype], "0")}`);
  const first = words(tensor, dirname(path)).slice(0, 4).map((word) => (Object.is(decode(word), -0) ? "-0" : decode(word)));
  console.log(`${name}  ${tensor.dtype}[${tensor.shape.join("x")}]  ${first.join(" ")}`);
}
