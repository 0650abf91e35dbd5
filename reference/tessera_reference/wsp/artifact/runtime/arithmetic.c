/* Values: division, the hash of keys, floating-point results, and elements of tensors as u64. */
#include "runtime.h"

static void divided_by_zero(Machine *m, u64 a) {
    wsp_fail(m, "DIVISION_BY_ZERO", NULL, NULL, "%" PRIu64 " is divided by zero", a);
}

u64 wsp_div(Machine *m, u64 a, u64 b) {
    if (b == 0) divided_by_zero(m, a);
    return a / b;
}

u64 wsp_mod(Machine *m, u64 a, u64 b) {
    if (b == 0) divided_by_zero(m, a);
    return a % b;
}

/* Functions, as compilers warn of comparisons whose outcome is known, which programs may have. */
u64 wsp_eq(u64 a, u64 b) { return a == b; }
u64 wsp_ne(u64 a, u64 b) { return a != b; }
u64 wsp_lt(u64 a, u64 b) { return a < b; }
u64 wsp_le(u64 a, u64 b) { return a <= b; }
u64 wsp_gt(u64 a, u64 b) { return a > b; }
u64 wsp_ge(u64 a, u64 b) { return a >= b; }
u64 wsp_min(u64 a, u64 b) { return a < b ? a : b; }
u64 wsp_max(u64 a, u64 b) { return a > b ? a : b; }

/* FNV-1a over the 8 little-endian bytes of a key. */
void wsp_bad_worker(Machine *m, u64 task, u64 worker) {
    wsp_fail(m, "WORKER_OUT_OF_RANGE", NULL, NULL,
             "the policy places task %" PRIu64 " on worker %" PRIu64 " of %" PRIu32, task, worker, m->info->workers);
}

/* Every NaN becomes the quiet one. */
float wsp_settled_float(float value) {
    uint32_t quiet = UINT32_C(0x7FC00000);
    if (isnan(value)) memcpy(&value, &quiet, sizeof value);
    return value;
}

double wsp_settled_double(double value) {
    u64 quiet = UINT64_C(0x7FF8000000000000);
    if (isnan(value)) memcpy(&value, &quiet, sizeof value);
    return value;
}

/* The canon's minimum and maximum: a NaN goes on, and -0 is below +0. */
#define EXTREMES(type, name)                                                                   \
    static bool below_##name(type a, type b) { return a < b || (a == b && signbit(a)); }       \
    type wsp_min_##name(type a, type b) {                                                      \
        return isnan(a) || isnan(b) ? wsp_settled_##name(a + b) : below_##name(a, b) ? a : b;  \
    }                                                                                          \
    type wsp_max_##name(type a, type b) {                                                      \
        return isnan(a) || isnan(b) ? wsp_settled_##name(a + b) : below_##name(a, b) ? b : a;  \
    }

EXTREMES(float, float)
EXTREMES(double, double)

static u64 bits_of(const uint8_t *data, u64 element, unsigned width) {
    u64 found = 0;
    for (unsigned each = 0; each < width; each++) found |= (u64)data[element * width + each] << 8 * each;
    return found;
}

/* Shortest digits that read back as the value, as Python writes a float. */
static void shortest(char *text, size_t room, double value) {
    char digits[40];
    int precision = 0;
    if (isnan(value) || isinf(value)) {
        snprintf(text, room, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    do snprintf(digits, sizeof digits, "%.*e", precision, value);
    while (strtod(digits, NULL) != value && ++precision < 17);
    int exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent < -4 || exponent >= 16) {
        *strchr(digits, 'e') = 0;
        snprintf(text, room, "%se%c%02d", digits, exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    int decimals = precision > exponent ? precision - exponent : 1;
    snprintf(text, room, "%.*f", decimals, value);
}

static u64 whole_float(Machine *m, const TensorInfo *info, u64 element, double value) {
    if (!(value >= 0 && value < 18446744073709551616.0 && (double)(u64)value == value)) {
        char text[64];
        shortest(text, sizeof text, value);
        wsp_fail(m, "SLOT_VALUE", NULL, NULL, "%s[%" PRIu64 "] is %s, expected a whole number from 0 below 2^64",
                 info->name, element, text);
    }
    return (u64)value;
}

/* An element as u64: integers extend in two's complement, floats must be whole. */
u64 wsp_element(Machine *m, const TensorInfo *info, const uint8_t *data, u64 element) {
    unsigned width = (unsigned)(info->bytes / info->count);
    u64 bits = bits_of(data, element, width), sign = UINT64_C(1) << (8 * width - 1);
    if (info->dtype <= I64) return (bits ^ sign) - sign;
    if (info->dtype == FP32) {
        float value;
        memcpy(&value, data + element * width, sizeof value);
        return whole_float(m, info, element, value);
    }
    if (info->dtype == FP64) {
        double value;
        memcpy(&value, data + element * width, sizeof value);
        return whole_float(m, info, element, value);
    }
    return bits;
}
