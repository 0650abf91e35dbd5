// Tensors, element by element: index, hexadecimal storage code, decimal value. Joined before case.js into one script.

/** Hexadecimal digits of a word; by dtype, 8 where it is not named. */
const DIGITS = {
  fp8_e4m3: 2, fp8_e5m2: 2, int8: 2, bool: 2, fp16: 4, bf16: 4, int16: 4, fp64: 16, int64: 16, complex128: 16,
};
/** Exponent and fraction bits of the formats that a DataView does not read; E4M3 has no infinity. */
const SMALL_FLOATS = { fp8_e4m3: [4, 3], fp8_e5m2: [5, 2], fp16: [5, 10], bf16: [8, 7] };
const SIGNED = { int8: 8, int16: 16, int32: 32, int64: 64 };
const COMPLEX = { complex64: "fp32", complex128: "fp64" };
const MOST_ROWS = 256;

function smallFloat(code, exponentBits, fractionBits, hasInfinity) {
  const sign = code >> (exponentBits + fractionBits) ? -1 : 1;
  const exponent = (code >> fractionBits) & ((1 << exponentBits) - 1), fraction = code & ((1 << fractionBits) - 1);
  const top = (1 << exponentBits) - 1, bias = (1 << (exponentBits - 1)) - 1;
  if (hasInfinity && exponent === top) return fraction ? NaN : sign * Infinity;
  if (!hasInfinity && exponent === top && fraction === (1 << fractionBits) - 1) return NaN;
  if (exponent === 0) return sign * fraction * 2 ** (1 - bias - fractionBits);
  return sign * (1 + fraction / 2 ** fractionBits) * 2 ** (exponent - bias);
}

function read32(digits) {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, Number.parseInt(digits, 16));
  return view.getFloat32(0);
}

function read64(digits) {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, BigInt(`0x${digits}`));
  return view.getFloat64(0);
}

/** The shortest decimal that reads back as the same float of 32 bits. */
function shortest32(value) {
  for (let digits = 1; digits < 9; digits += 1) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(Number(value.toPrecision(9)));
}

/** The decimal of one word of a dtype. */
function decimal(dtype, digits) {
  if (dtype === "bool") return String(Number.parseInt(digits, 16) !== 0);
  if (dtype in SIGNED) return String(BigInt.asIntN(SIGNED[dtype], BigInt(`0x${digits}`)));
  const small = SMALL_FLOATS[dtype], wide = dtype === "fp64";
  const value = small ? smallFloat(Number.parseInt(digits, 16), ...small, dtype !== "fp8_e4m3")
    : wide ? read64(digits) : read32(digits);
  if (Object.is(value, -0)) return "-0";
  return Number.isFinite(value) && !wide && value !== 0 ? shortest32(value) : String(value);
}

/** The elements of a tensor that are shown, each as its words in hexadecimal and its decimal. */
function elementsOf({ dtype, bits, head }) {
  const one = COMPLEX[dtype] ?? dtype, width = (DIGITS[dtype] ?? 8), words = dtype in COMPLEX ? 2 : 1;
  const elements = (bits ?? head ?? "").match(new RegExp(`.{${width * words}}`, "g")) ?? [];
  return elements.map((digits) => {
    const parts = words === 1 ? [digits] : [digits.slice(0, width), digits.slice(width)];
    const values = parts.map((part) => decimal(one, part));
    return { hex: parts.join(" "), decimal: words === 1 ? values[0] : `(${values.join(", ")})` };
  });
}

/** The index of an element by its place in row-major order. */
function indexOf(place, shape) {
  const index = [];
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    index.unshift(place % shape[axis]);
    place = Math.floor(place / shape[axis]);
  }
  return `[${index.join(", ")}]`;
}

/** Type and elements, a row each; those in which the other tensor differs are marked, and shown wherever they stand. */
function tensorRows(tensor, other) {
  const elements = elementsOf(tensor), others = comparable(tensor, other) ? elementsOf(other) : null;
  const differs = (place) => others !== null && elements[place].hex !== others[place]?.hex &&
    !(elements[place].decimal.includes("NaN") && elements[place].decimal === others[place]?.decimal);
  const indices = elements.map((_, place) => indexOf(place, tensor.shape));
  const wide = Math.max(0, ...indices.map((index) => index.length));
  const rows = [`${tensor.dtype}[${tensor.shape.join(", ")}]`];
  let omitted = 0;
  elements.forEach(({ hex, decimal }, place) => {
    const text = `${indices[place].padEnd(wide)}  ${hex}  ${decimal}`;
    if (differs(place)) rows.push("\n  ", make("mark", "", text));
    else if (place < MOST_ROWS) rows.push(`\n  ${text}`);
    else omitted += 1;
  });
  if (omitted) rows.push(`\n  ... ${plural(omitted, "more element")}`);
  if (tensor.bits === undefined && tensor.sha256) rows.push(`\n  ... sha256 ${tensor.sha256}`);
  return make("span", "tensor", ...rows);
}

const comparable = (one, other) =>
  other !== undefined && one.dtype === other.dtype && String(one.shape) === String(other.shape);

