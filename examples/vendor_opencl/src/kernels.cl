/* Kernels of one work item: a tensor is a buffer and the place of its first element, and failures[rank] is set where
   the program fails (AMB-RT-61). With UNCHECKED what fails, and whether products are fused, is left to the engine. */
#ifdef UNCHECKED
#define FAILS(condition) false
#else
#define FAILS(condition) (condition)
#pragma OPENCL FP_CONTRACT OFF
#endif

#define TAIL global int *failures, int rank
#define DIGIT(n)                                                                              \
  kernel void digit_##n(int v, global int* x, ulong at, TAIL) {                               \
    for (int i = 0; i < n; i++) x[at + i] = (int)((uint)x[at + i] * 10u + (uint)v);           \
  }
#define COPY(n)                                                                               \
  kernel void copy_##n(global const int* x, ulong from, global int* y, ulong to, TAIL) {      \
    for (int i = 0; i < n; i++) y[to + i] = x[from + i];                                      \
  }
DIGIT(2)
DIGIT(64)
COPY(2)
COPY(64)

kernel void follow_2(global const int* x, ulong from, global int* y, ulong to, TAIL) {
  for (int i = 0; i < 2; i++) y[to + i] = (int)((uint)y[to + i] * 10u + (uint)x[from + i]);
}

kernel void fill_64(int v, global int* x, ulong at, TAIL) {
  for (int i = 0; i < 64; i++) x[at + i] = v;
}

kernel void axpy_64(float a, global const float* x, ulong from, global float* y, ulong to, TAIL) {
  for (int i = 0; i < 64; i++) y[to + i] = x[from + i] * a + y[to + i];
}

kernel void divide_64(int n, global int* x, ulong at, TAIL) {
  if (FAILS(n == 0)) failures[rank] = 1;
  else x[at] = 64 / n;
}

kernel void index_64(int n, global int* x, ulong at, TAIL) {
  if (FAILS(n < 0 || n >= 64)) failures[rank] = 1;
  else x[at + n] = 1;
}

kernel void steps_64(int n, global int* x, ulong at, TAIL) {
  if (FAILS(n == 0)) failures[rank] = 1;
  else
    for (int i = 0; n > 0 && i < 64; i += n) x[at + i] = 1;
}

kernel void nothing(TAIL) {}

/* Collectives: `into` takes the combination of itself and `with`, `count` elements from a place on. */
#define COMBINE(name, type, expression)                                                       \
  kernel void name(global type* into, global const type* with, ulong at, ulong count) {       \
    for (ulong i = 0; i < count; i++) {                                                       \
      type a = into[i], b = with[at + i];                                                     \
      into[i] = expression;                                                                   \
    }                                                                                         \
  }
#define INTEGERS(id, type)                                                                    \
  COMBINE(combine_##id##_0, type, (type)(a + b))                                              \
  COMBINE(combine_##id##_1, type, a > b ? a : b)                                              \
  COMBINE(combine_##id##_2, type, a < b ? a : b)
INTEGERS(7, char)
INTEGERS(8, short)
INTEGERS(9, int)
INTEGERS(10, long)
COMBINE(combine_11_1, uchar, a | b)
COMBINE(combine_11_2, uchar, a & b)

/* NaN spreads, and -0 is below +0 */
#define GREATER(a, b) (isnan(a) ? a : isnan(b) ? b : a > b ? a : b > a ? b : signbit(a) ? b : a)
#define LESSER(a, b) (isnan(a) ? a : isnan(b) ? b : a < b ? a : b < a ? b : signbit(a) ? a : b)
#define FLOATS(id, type)                                                                      \
  COMBINE(combine_##id##_0, type, a + b)                                                      \
  COMBINE(combine_##id##_1, type, GREATER(a, b))                                              \
  COMBINE(combine_##id##_2, type, LESSER(a, b))
FLOATS(5, float)
FLOATS(6, double)

/* The narrow floats are combined in fp32, and rounded once, to even, at the end; fp8 saturates. */
float bf16_value(ushort bits) { return as_float((uint)bits << 16); }
ushort bf16_bits(float value) {
  uint bits = as_uint(value);
  return isnan(value) ? (ushort)0x7fc0 : (ushort)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
float half_value(ushort bits) { return vload_half(0, (const half*)&bits); }
ushort half_bits(float value) {
  ushort bits;
  vstore_half_rte(value, 0, (half*)&bits);
  return bits;
}
float e4m3_value(uchar bits) {
  int e = bits >> 3 & 15, m = bits & 7;
  float value = e ? ldexp((float)(8 + m), e - 10) : ldexp((float)m, -9);
  return (bits & 127) == 127 ? NAN : bits & 128 ? -value : value;
}
float e5m2_value(uchar bits) { return half_value((ushort)(bits << 8)); }
uchar narrowed(float value, int fraction, int bias, float largest) {
  uchar sign = signbit(value) ? 128 : 0;
  if (isnan(value)) return 127;
  value = fabs(value);
  if (value == 0) return sign;
  int e = max(value < 1e30f ? ilogb(value) : 99, 1 - bias);
  value = fmin(e == 99 ? largest : ldexp(rint(ldexp(value, fraction - e)), e - fraction), largest);
  e = value < ldexp(1.0f, 1 - bias) ? 1 - bias : ilogb(value);
  int unit = (int)ldexp(value, fraction - e), whole = 1 << fraction; /* of a subnormal, below `whole` */
  return sign | (uchar)(unit < whole ? unit : (e + bias) << fraction | (unit - whole));
}
uchar e4m3_bits(float value) { return narrowed(value, 3, 7, 448.0f); }
uchar e5m2_bits(float value) { return narrowed(value, 2, 15, 57344.0f); }

#define WIDEN(name, type, value, expression)                                                  \
  kernel void name(global float* into, global const type* with, ulong at, ulong count) {      \
    for (ulong i = 0; i < count; i++) {                                                       \
      float a = into[i], b = value(with[at + i]);                                             \
      into[i] = expression;                                                                   \
    }                                                                                         \
  }
#define NARROW_FLOATS(id, type, value, bits)                                                  \
  WIDEN(widen_##id, type, value, b)                                                           \
  WIDEN(combine_##id##_0, type, value, a + b)                                                 \
  WIDEN(combine_##id##_1, type, value, GREATER(a, b))                                         \
  WIDEN(combine_##id##_2, type, value, LESSER(a, b))                                          \
  kernel void narrow_##id(global type* into, global const float* from, ulong at, ulong count) { \
    for (ulong i = 0; i < count; i++) into[i] = bits(from[at + i]);                           \
  }
NARROW_FLOATS(1, uchar, e4m3_value, e4m3_bits)
NARROW_FLOATS(2, uchar, e5m2_value, e5m2_bits)
NARROW_FLOATS(3, ushort, half_value, half_bits)
NARROW_FLOATS(4, ushort, bf16_value, bf16_bits)
