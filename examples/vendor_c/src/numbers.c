/* The dtypes of the ABI (Appendix B): names, sizes, loading, rounding, adding.
 *
 * A float travels as a double, which holds every value of every format. It is rounded once, to nearest even, when it is
 * stored; fp8 saturates. Additions happen in the accumulator: fp32 for the narrow floats, int32 for the narrow integers.
 */
#include "acme.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

typedef struct {
  const char* name;
  size_t size;
} Dtype;

static const Dtype dtypes[] = {
    [FP8_E4M3] = {"fp8_e4m3", 1}, [FP8_E5M2] = {"fp8_e5m2", 1},   [FP16] = {"fp16", 2},
    [BF16] = {"bf16", 2},         [FP32] = {"fp32", 4},           [FP64] = {"fp64", 8},
    [INT8] = {"int8", 1},         [INT16] = {"int16", 2},         [INT32] = {"int32", 4},
    [INT64] = {"int64", 8},       [BOOL] = {"bool", 1},           [COMPLEX64] = {"complex64", 8},
    [COMPLEX128] = {"complex128", 16}};

int dtype_of_name(const char* name) {
  for (int dtype = FP8_E4M3; dtype <= COMPLEX128; dtype++)
    if (strcmp(dtypes[dtype].name, name) == 0) return dtype;
  return 0;
}

const char* dtype_name(int dtype) { return dtypes[dtype].name; }
size_t dtype_size(int dtype) { return dtypes[dtype].size; }
bool dtype_is_float(int dtype) { return dtype <= FP64; }
bool dtype_is_complex(int dtype) { return dtype >= COMPLEX64; }

/* Narrow floats */

typedef struct {
  int exponent_bits, fraction_bits;
  double largest;
  bool has_infinity;
} Format;

static Format format_of(int dtype) {
  switch (dtype) {
    case FP8_E4M3: return (Format){4, 3, 448, false};
    case FP8_E5M2: return (Format){5, 2, 57344, true};
    case FP16: return (Format){5, 10, 65504, true};
    default: return (Format){8, 7, 0x1.FEp127, true}; /* bf16 */
  }
}

static double decoded(Format format, unsigned code) {
  int exponent_mask = (1 << format.exponent_bits) - 1, bias = exponent_mask >> 1;
  int exponent = (int)(code >> format.fraction_bits) & exponent_mask;
  unsigned fraction = code & ((1u << format.fraction_bits) - 1);
  double sign = code >> (format.exponent_bits + format.fraction_bits) & 1 ? -1.0 : 1.0;
  if (exponent == exponent_mask && format.has_infinity) return fraction ? NAN : sign * INFINITY;
  if (exponent == exponent_mask && fraction == 7) return NAN; /* e4m3 has one NaN and no infinity */
  if (exponent == 0) return sign * ldexp(fraction, 1 - bias - format.fraction_bits);
  return sign * ldexp((1u << format.fraction_bits) + fraction, exponent - bias - format.fraction_bits);
}

static unsigned encoded(Format format, double value, bool saturates) {
  int exponent_mask = (1 << format.exponent_bits) - 1, bias = exponent_mask >> 1, exponent = 0;
  unsigned sign = signbit(value) ? 1u << (format.exponent_bits + format.fraction_bits) : 0;
  unsigned infinity = (unsigned)exponent_mask << format.fraction_bits;
  if (isnan(value)) return sign | infinity | ((1u << format.fraction_bits) - 1);
  double magnitude = fabs(value);
  frexp(magnitude, &exponent);
  int lowest = 1 - bias, quantum = (exponent - 1 > lowest ? exponent - 1 : lowest) - format.fraction_bits;
  double rounded = isinf(magnitude) ? magnitude : ldexp(nearbyint(ldexp(magnitude, -quantum)), quantum);
  if (defect("narrow_floats_truncated")) rounded = ldexp(floor(ldexp(magnitude, -quantum)), quantum);
  if (rounded > format.largest && !saturates) return sign | infinity;
  if (rounded > format.largest) rounded = format.largest;
  frexp(rounded, &exponent);
  if (rounded == 0 || exponent - 1 < lowest) return sign | (unsigned)ldexp(rounded, format.fraction_bits - lowest);
  unsigned fraction = (unsigned)ldexp(rounded, format.fraction_bits - (exponent - 1)) - (1u << format.fraction_bits);
  return sign | (unsigned)(exponent - 1 + bias) << format.fraction_bits | fraction;
}

/* Memory */

#define LOADED(type, member)               \
  {                                        \
    type loaded;                           \
    memcpy(&loaded, place, sizeof loaded); \
    number.member = loaded;                \
    break;                                 \
  }

Number number_load(int dtype, const unsigned char* place) {
  Number number = {.i = 0};
  switch (dtype) {
    case FP32: LOADED(float, f)
    case FP64: LOADED(double, f)
    case INT8: LOADED(int8_t, i)
    case INT16: LOADED(int16_t, i)
    case INT32: LOADED(int32_t, i)
    case INT64: LOADED(int64_t, i)
    case BOOL: number.i = *place != 0; break;
    default: {
      unsigned code = place[0] | (dtype_size(dtype) == 2 ? (unsigned)place[1] << 8 : 0);
      number.f = decoded(format_of(dtype), code);
    }
  }
  return number;
}

#define STORED(type, number)               \
  {                                        \
    type stored = (type)(number);          \
    memcpy(place, &stored, sizeof stored); \
    break;                                 \
  }

void number_store(int dtype, unsigned char* place, Number value) {
  switch (dtype) {
    case FP32: STORED(float, value.f)
    case FP64: STORED(double, value.f)
    case INT8: STORED(int8_t, (uint64_t)value.i)
    case INT16: STORED(int16_t, (uint64_t)value.i)
    case INT32: STORED(int32_t, (uint64_t)value.i)
    case INT64: STORED(int64_t, value.i)
    case BOOL: *place = value.i != 0; break;
    default: {
      unsigned code = encoded(format_of(dtype), value.f, dtype <= FP8_E5M2);
      place[0] = (unsigned char)code;
      if (dtype_size(dtype) == 2) place[1] = (unsigned char)(code >> 8);
    }
  }
}

Number number_add(int dtype, Number a, Number b) {
  if (dtype == FP64) return (Number){.f = a.f + b.f};
  if (dtype_is_float(dtype)) return (Number){.f = (float)a.f + (float)b.f};
  if (dtype == INT64) return (Number){.i = (int64_t)((uint64_t)a.i + (uint64_t)b.i)};
  if (dtype == INT32 && defect("integers_saturate")) {
    int64_t sum = a.i + b.i;
    return (Number){.i = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum};
  }
  return (Number){.i = (int32_t)((uint32_t)a.i + (uint32_t)b.i)};
}
