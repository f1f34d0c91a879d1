// Runs policy images (docs/policy_image.md) with the bits of the core, in C99 or C++11. One header,
// no library, no allocation, nothing kept between calls.
//
// An image is an array of 32-bit words, which may stay in flash: nothing of it is copied. All
// memory is the caller's. What `rlt export RUN --to c` writes has this file unchanged, and with it
// an image, the sizes that it needs, and functions of its name that call the ones below:
//
//   rlt_policy_open()      checks an image, and finds its parts
//   rlt_policy_verify()    compares the bits of its examples
//   rlt_policy_evaluate()  gives an action for an observation
//
// A processor without fused multiply-add (Cortex-M4F and M7, x86-64-v3 and AArch64 have it)
// computes it on integers: slower, with the same bits. It is compared bit by bit with the core
// (tests/integrations/c/), where the reasons for each line of the mathematics stand.
#ifndef RLT_POLICY_RUNTIME_H
#define RLT_POLICY_RUNTIME_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "this policy needs IEEE-754 arithmetic: compile without -ffast-math and -ffinite-math-only"
#endif
#if UINT_MAX < 0xffffffff
#error "this policy needs a processor whose int has 32 bits"
#endif

#if defined(__GNUC__)
#define RLT_ALWAYS_INLINE __attribute__((always_inline)) inline
#define RLT_NOINLINE __attribute__((noinline, unused))
#define RLT_FMAF __builtin_fmaf
#define RLT_FABSF __builtin_fabsf
#define RLT_MEMCPY __builtin_memcpy  // in place with -ffreestanding, too
#define RLT_INFINITY __builtin_inff()
#define RLT_NAN __builtin_nanf("")
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wfloat-equal"
#if defined(__cplusplus)
#pragma GCC diagnostic ignored "-Wold-style-cast"
#endif
#else
#include <math.h>
#define RLT_ALWAYS_INLINE inline
#define RLT_NOINLINE inline
#define RLT_FMAF fmaf
#define RLT_FABSF fabsf
#define RLT_MEMCPY memcpy
#define RLT_INFINITY INFINITY
#define RLT_NAN NAN
#endif

// ---- Why an image is refused -------------------------------------------------------------------

// In the order in which a reader checks; PolicyReason of policy/format.h.
typedef enum {
  RLT_REASON_ACCEPTED,
  RLT_REASON_MISALIGNED,
  RLT_REASON_TOO_SHORT,
  RLT_REASON_BAD_MAGIC,
  RLT_REASON_UNKNOWN_VERSION,
  RLT_REASON_WRONG_SIZE,
  RLT_REASON_WRONG_CRC,
  RLT_REASON_MALFORMED,
  RLT_REASON_NOT_FINITE,
  RLT_REASON_OTHER_CONTRACT,
  RLT_REASON_TOO_LARGE,
  RLT_REASON_EXAMPLE_NOT_REPRODUCED
} rlt_reason_t;

static inline const char* rlt_reason_text(rlt_reason_t reason) {
  switch (reason) {
    case RLT_REASON_ACCEPTED: return "accepted";
    case RLT_REASON_MISALIGNED: return "the image does not lie on a four-byte boundary";
    case RLT_REASON_TOO_SHORT: return "too short to hold a header";
    case RLT_REASON_BAD_MAGIC: return "not a policy image";
    case RLT_REASON_UNKNOWN_VERSION: return "written in another version of the format";
    case RLT_REASON_WRONG_SIZE: return "not as long as its header says";
    case RLT_REASON_WRONG_CRC: return "damaged, its checksum does not match";
    case RLT_REASON_MALFORMED: return "a table contradicts itself";
    case RLT_REASON_NOT_FINITE: return "a number is not finite";
    case RLT_REASON_OTHER_CONTRACT: return "made for other observations, actions or rate";
    case RLT_REASON_TOO_LARGE: return "needs more memory than there is";
    case RLT_REASON_EXAMPLE_NOT_REPRODUCED: return "an example gives other bits here";
  }
  return "unknown reason";
}

// ---- Fused multiply-add: core/fma.h, which explains it ------------------------------------------

#define RLT_SIGN_BIT 0x80000000u
#define RLT_INFINITY_BITS 0x7f800000u
#define RLT_QUIET_NAN_BITS 0x7fc00000u

static inline uint32_t rlt_to_bits(float x) {
  uint32_t bits;
  RLT_MEMCPY(&bits, &x, sizeof bits);
  return bits;
}

static inline float rlt_from_bits(uint32_t bits) {
  float x;
  RLT_MEMCPY(&x, &bits, sizeof x);
  return x;
}

// A finite number: mantissa 2^(exponent - 127 - 30), bit 30 of the mantissa set unless it is zero.
// Of a sum: bit 0 is also set where the exact one has digits below it.
typedef struct {
  uint32_t mantissa;
  int32_t exponent;
  uint32_t sign;  // RLT_SIGN_BIT or 0
} rlt_unpacked_t;

#define RLT_ZERO_EXPONENT (-4096)  // below that of everything that is added to zero

static RLT_ALWAYS_INLINE rlt_unpacked_t rlt_unpacked(uint32_t mantissa, int32_t exponent,
                                                     uint32_t sign) {
  rlt_unpacked_t number;
  number.mantissa = mantissa;
  number.exponent = exponent;
  number.sign = sign;
  return number;
}

static RLT_ALWAYS_INLINE rlt_unpacked_t rlt_unpack_finite(uint32_t bits) {
  const uint32_t fraction = bits & 0x007fffffu;
  const uint32_t sign = bits & RLT_SIGN_BIT;
  const int32_t exponent = (int32_t)(bits >> 23 & 0xffu);
  if (exponent > 0) return rlt_unpacked(fraction << 7 | 0x40000000u, exponent, sign);
  if (fraction == 0u) return rlt_unpacked(0u, RLT_ZERO_EXPONENT, sign);
  rlt_unpacked_t number = rlt_unpacked(fraction << 7, 1, sign);
  for (; number.mantissa < 0x40000000u; number.exponent--) number.mantissa <<= 1;
  return number;
}

// Return the sum (high 2^32 + low) with its first bit moved to bit 30.
static RLT_ALWAYS_INLINE rlt_unpacked_t rlt_normalized_sum(uint32_t high, uint32_t low,
                                                           int32_t exponent, uint32_t sign) {
  if (high >> 30 != 1u) {
    if ((high & RLT_SIGN_BIT) != 0u) {
      low |= high << 31;
      high >>= 1;
      exponent++;
    } else {
      if (high == 0u) {
        if (low == 0u) return rlt_unpacked(0u, RLT_ZERO_EXPONENT, 0u);
        high = low >> 1;
        low <<= 31;
        exponent -= 31;
      }
      for (; high < 0x40000000u; exponent--) {
        high = high << 1 | low >> 31;
        low <<= 1;
      }
    }
  }
  return rlt_unpacked(high | (uint32_t)(low != 0u), exponent, sign);
}

// Return x y + addend, for finite x and y that are not zero. `x_exponent` is that of x less 126;
// the mantissa of y has bit 31 set, and `sign` is that of the product.
static RLT_ALWAYS_INLINE rlt_unpacked_t rlt_add_product(rlt_unpacked_t addend, uint32_t x_mantissa,
                                                        int32_t x_exponent, uint32_t y_mantissa,
                                                        int32_t y_exponent, uint32_t sign) {
  const uint64_t product = (uint64_t)x_mantissa * y_mantissa;  // from 2^61
  uint32_t high = (uint32_t)(product >> 32);
  uint32_t low = (uint32_t)product;
  int32_t exponent = x_exponent + y_exponent;
  uint32_t addend_high = addend.mantissa, addend_low = 0u;
  int32_t shift = exponent - addend.exponent;
  if (shift < -1) {
    // Most often. The product is below half of the addend, so that one word is enough.
    shift = shift > -31 ? -shift : 31;
    high = high >> shift | (uint32_t)((high << (32 - shift) | low) != 0u);
    high = sign == addend.sign ? addend_high + high : addend_high - high;
    return rlt_normalized_sum(high, 0u, addend.exponent, addend.sign);
  }
  if (shift >= 32) {
    shift = shift < 63 ? shift - 32 : 31;
    addend_low = addend_high >> shift | (uint32_t)((addend_high << 1) << (31 - shift) != 0u);
    addend_high = 0u;
  } else if (shift >= 0) {
    addend_low = (addend_high << 1) << (31 - shift);
    addend_high >>= shift;
  } else {
    exponent = addend.exponent;
    low = high << 31 | low >> 1;  // the last digit of a product of 24 and 24 digits is further up
    high >>= 1;
  }
  if (sign == addend.sign) {
    low += addend_low;
    high += addend_high + (uint32_t)(low < addend_low);
  } else {
    high -= addend_high + (uint32_t)(low < addend_low);
    low -= addend_low;
    if ((high & RLT_SIGN_BIT) != 0u) {
      sign = addend.sign;
      low = 0u - low;
      high = ~high + (uint32_t)(low == 0u);
    }
  }
  return rlt_normalized_sum(high, low, exponent, sign);
}

// Return the sum without what is below bit 7, rounded to nearest with ties to even. It may reach
// bit 31.
static RLT_ALWAYS_INLINE uint32_t rlt_rounded(uint32_t high) {
  return (high + 0x3fu + (high >> 7 & 1u)) & ~0x7fu;
}

// Return the bits of fma(a, b, c).
static inline uint32_t rlt_fma_bits(uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t sign = (a ^ b) & RLT_SIGN_BIT;
  const uint32_t abs_a = a & ~RLT_SIGN_BIT, abs_b = b & ~RLT_SIGN_BIT, abs_c = c & ~RLT_SIGN_BIT;
  const uint32_t infinity = sign | RLT_INFINITY_BITS;
  if (abs_a >= RLT_INFINITY_BITS || abs_b >= RLT_INFINITY_BITS || abs_c >= RLT_INFINITY_BITS) {
    if (abs_a > RLT_INFINITY_BITS || abs_b > RLT_INFINITY_BITS || abs_c > RLT_INFINITY_BITS) {
      return RLT_QUIET_NAN_BITS;
    }
    if (abs_a < RLT_INFINITY_BITS && abs_b < RLT_INFINITY_BITS) return c;
    if (abs_a == 0u || abs_b == 0u || (abs_c == RLT_INFINITY_BITS && c != infinity)) {
      return RLT_QUIET_NAN_BITS;
    }
    return infinity;
  }
  if (abs_a == 0u || abs_b == 0u) return abs_c != 0u || c == sign ? c : 0u;
  const rlt_unpacked_t x = rlt_unpack_finite(a), y = rlt_unpack_finite(b);
  const rlt_unpacked_t sum = rlt_add_product(rlt_unpack_finite(c), x.mantissa, x.exponent - 126,
                                             y.mantissa << 1, y.exponent, sign);
  if (sum.exponent == RLT_ZERO_EXPONENT) return 0u;
  if (sum.exponent >= 1) {
    // The mantissa's bit 30 adds 1 to the exponent; so does a carry into bit 31.
    const uint32_t exponent = (uint32_t)sum.exponent - 1u;
    if (exponent >= 254u) return sum.sign | RLT_INFINITY_BITS;
    return sum.sign | ((exponent << 23) + (rlt_rounded(sum.mantissa) >> 7));
  }
  // Below the normal numbers the digits end at 2^-149; the sum may be a fraction of that.
  const int32_t shift = sum.exponent > -30 ? 1 - sum.exponent : 31;
  const uint32_t lost = (uint32_t)(sum.mantissa << (32 - shift) != 0u);
  return sum.sign | rlt_rounded(sum.mantissa >> shift | lost) >> 7;
}

static RLT_NOINLINE float rlt_exact_fma(float a, float b, float c) {
  return rlt_from_bits(rlt_fma_bits(rlt_to_bits(a), rlt_to_bits(b), rlt_to_bits(c)));
}

// Return fma(a, b, c): the processor's where it has one. C libraries without it multiply and add,
// or round twice.
static RLT_ALWAYS_INLINE float rlt_fma(float a, float b, float c) {
#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__ARM_FEATURE_FMA) || \
    defined(__aarch64__) || defined(__riscv_flen)
  return RLT_FMAF(a, b, c);
#else
  return rlt_exact_fma(a, b, c);
#endif
}

// ---- Functions: core/math.h, which explains them ------------------------------------------------

static inline float rlt_lesser(float a, float b) { return a < b ? a : b; }
static inline float rlt_greater(float a, float b) { return a > b ? a : b; }

// Return x clamped to [low, high]; NaN where x is NaN.
static inline float rlt_clamp(float x, float low, float high) {
  const float raised = x < low ? low : x;
  return raised > high ? high : raised;
}

static inline bool rlt_is_finite(float x) {
  return (rlt_to_bits(x) & ~RLT_SIGN_BIT) < RLT_INFINITY_BITS;
}

// Return a sum or product with a zero that has no sign; x + 0.0f might be contracted with what x is
// made of.
static inline float rlt_without_negative_zero(float x) { return x == 0.0f ? 0.0f : x; }

#define RLT_ROUND_TO_INTEGER 12582912.0f

// exp(x) = 2^n (1 + expm1) for |x| <= 104; n stands in the low bits of n_bits.
typedef struct {
  uint32_t n_bits;
  float expm1;
} rlt_exponential_t;

static RLT_ALWAYS_INLINE rlt_exponential_t rlt_reduce_exponential(float x) {
  const float shifted = rlt_fma(x, 1.442695f, RLT_ROUND_TO_INTEGER);
  const float n = shifted - RLT_ROUND_TO_INTEGER;
  const float high = rlt_fma(n, -0.6931472f, x);
  const float low = n * 1.9046542e-09f;
  const float r = rlt_fma(n, 1.9046542e-09f, high);
  float q = 0.0013912847f;
  q = rlt_fma(q, r, 0.008366711f);
  q = rlt_fma(q, r, 0.041666698f);
  q = rlt_fma(q, r, 0.16666542f);
  q = rlt_fma(q, r, 0.5f);
  rlt_exponential_t reduced;
  reduced.n_bits = rlt_to_bits(shifted);
  reduced.expm1 = high + rlt_fma(r * r, q, low);
  return reduced;
}

// Return 2^n for -126 <= n <= 127; only the low 8 bits of n count.
static inline float rlt_power_of_two(uint32_t n) { return rlt_from_bits((n << 23) + 0x3f800000u); }

static inline float rlt_exp(float x) {
  const rlt_exponential_t reduced =
      rlt_reduce_exponential(rlt_greater(rlt_lesser(x, 89.0f), -104.0f));
  const uint32_t biased = reduced.n_bits - rlt_to_bits(RLT_ROUND_TO_INTEGER) + 512u;
  const uint32_t half = biased >> 1;
  const float first = rlt_power_of_two(half - 256u);
  const float second = rlt_power_of_two(biased - half - 256u);
  const float y = rlt_fma(first, reduced.expm1, first) * second;
  return x == x ? y : RLT_NAN;
}

static inline float rlt_tanh(float x) {
  const float a = rlt_lesser(RLT_FABSF(x), 9.02f);
  const rlt_exponential_t reduced = rlt_reduce_exponential(a + a);
  const float scale = rlt_power_of_two(reduced.n_bits);
  const float large = 1.0f - 2.0f / rlt_fma(scale, reduced.expm1, scale + 1.0f);
  const float s = a * a;
  float q = -0.006175951f;
  q = rlt_fma(q, s, 0.02100429f);
  q = rlt_fma(q, s, -0.053836513f);
  q = rlt_fma(q, s, 0.13332441f);
  q = rlt_fma(q, s, -0.33333313f);
  const float small = rlt_fma(s * q, a, a);
  const float y = a < 0.5625f ? small : large;
  const float result = rlt_from_bits(rlt_to_bits(y) | (rlt_to_bits(x) & RLT_SIGN_BIT));
  return x == x ? result : RLT_NAN;
}

static inline float rlt_sigmoid(float x) {
  const float y = rlt_greater(rlt_lesser(-x, 104.0f), -40.0f);
  const rlt_exponential_t reduced = rlt_reduce_exponential(y);
  const float scale = rlt_power_of_two(reduced.n_bits - 64u);
  const float sum = scale + 5.421011e-20f;
  const float lost = 5.421011e-20f - (sum - scale);
  const float result = 1.0f / (sum + rlt_fma(scale, reduced.expm1, lost)) * 5.421011e-20f;
  return x == x ? result : RLT_NAN;
}

static inline float rlt_elu(float x) {
  const rlt_exponential_t reduced =
      rlt_reduce_exponential(rlt_greater(rlt_lesser(x, 0.0f), -26.0f));
  const float scale = rlt_power_of_two(reduced.n_bits);
  const float below = rlt_fma(scale, reduced.expm1, scale - 1.0f);
  const float y = x > 0.0f ? x : below;
  return x == x ? y : RLT_NAN;
}

static inline float rlt_erf(float x) {
  const float a = rlt_lesser(RLT_FABSF(x), 4.0f);
  float q = -9.263882e-06f;
  q = rlt_fma(q, a, 0.00011770949f);
  q = rlt_fma(q, a, -0.000633081f);
  q = rlt_fma(q, a, 0.0016674759f);
  q = rlt_fma(q, a, -0.00016084738f);
  q = rlt_fma(q, a, -0.019152818f);
  q = rlt_fma(q, a, 0.102777764f);
  q = rlt_fma(q, a, 0.6366194f);
  q = rlt_fma(q, a, 6.495172e-08f);
  const rlt_exponential_t reduced = rlt_reduce_exponential(-rlt_fma(a, 1.1283791f, a * q));
  const float scale = rlt_power_of_two(reduced.n_bits);
  const float y = rlt_fma(-scale, reduced.expm1, 1.0f - scale);
  const float result = rlt_from_bits(rlt_to_bits(y) | (rlt_to_bits(x) & RLT_SIGN_BIT));
  return x == x ? result : RLT_NAN;
}

static inline float rlt_log1p(float x) {
  const uint32_t biased = (rlt_to_bits(1.0f + x) - 0x3f2aaaabu + (256u << 23)) >> 23;
  const float scale = rlt_power_of_two(258u - biased) * 0.25f;
  const float f = rlt_fma(x, scale, scale - 1.0f);
  const float e = (float)(int32_t)biased - 256.0f;
  float q = -0.12893032f;
  q = rlt_fma(q, f, 0.13986897f);
  q = rlt_fma(q, f, -0.121839724f);
  q = rlt_fma(q, f, 0.14005306f);
  q = rlt_fma(q, f, -0.16680506f);
  q = rlt_fma(q, f, 0.20010446f);
  q = rlt_fma(q, f, -0.24999797f);
  q = rlt_fma(q, f, 0.33333215f);
  q = rlt_fma(q, f, -0.5f);
  float y = rlt_fma(e, 0.6931472f, rlt_fma(f * f, q, f));
  y = x == 0.0f ? x : y;
  y = x == -1.0f ? -RLT_INFINITY : y;
  y = x == RLT_INFINITY ? RLT_INFINITY : y;
  return x >= -1.0f ? y : RLT_NAN;
}

static inline float rlt_softplus(float x) {
  return rlt_greater(x, 0.0f) + rlt_log1p(rlt_exp(-RLT_FABSF(x)));
}

// Parts that a program may leave out: a bit for each activation, in the order of
// RLT_ACTIVATION_LIST of nn/activation.h, and for each kind of recurrent layer. An image that has
// another one is malformed.
enum {
  RLT_WITH_IDENTITY = 0x01,
  RLT_WITH_RELU = 0x02,
  RLT_WITH_GELU = 0x04,
  RLT_WITH_TANH = 0x08,
  RLT_WITH_SIGMOID = 0x10,
  RLT_WITH_SOFTPLUS = 0x20,
  RLT_WITH_ELU = 0x40,
  RLT_WITH_SILU = 0x80,
  RLT_WITH_HARDTANH = 0x100,
  RLT_WITH_GRU = 0x10000000,
  RLT_WITH_LSTM = 0x20000000,
  RLT_WITH_ALL = 0x300001ff
};

// Replace values (count) by the activation of them. A NaN passes through each.
static inline void rlt_activate(uint32_t with, uint32_t activation, uint32_t count, float* x) {
  const uint32_t chosen = 1u << activation & with;
  uint32_t i;
  if (chosen == RLT_WITH_RELU) {
    for (i = 0; i < count; i++) x[i] = x[i] <= 0.0f ? 0.0f : x[i];
  } else if ((with & RLT_WITH_TANH) != 0 && chosen == RLT_WITH_TANH) {
    for (i = 0; i < count; i++) x[i] = rlt_tanh(x[i]);
  } else if ((with & RLT_WITH_GELU) != 0 && chosen == RLT_WITH_GELU) {
    for (i = 0; i < count; i++) x[i] = 0.5f * x[i] * (1.0f + rlt_erf(x[i] * 0.70710677f));
  } else if ((with & RLT_WITH_SIGMOID) != 0 && chosen == RLT_WITH_SIGMOID) {
    for (i = 0; i < count; i++) x[i] = rlt_sigmoid(x[i]);
  } else if ((with & RLT_WITH_SOFTPLUS) != 0 && chosen == RLT_WITH_SOFTPLUS) {
    for (i = 0; i < count; i++) x[i] = rlt_softplus(x[i]);
  } else if ((with & RLT_WITH_ELU) != 0 && chosen == RLT_WITH_ELU) {
    for (i = 0; i < count; i++) x[i] = rlt_elu(x[i]);
  } else if ((with & RLT_WITH_SILU) != 0 && chosen == RLT_WITH_SILU) {
    for (i = 0; i < count; i++) x[i] = rlt_sigmoid(x[i]) * x[i];
  } else if ((with & RLT_WITH_HARDTANH) != 0 && chosen == RLT_WITH_HARDTANH) {
    for (i = 0; i < count; i++) x[i] = x[i] < -1.0f ? -1.0f : x[i] > 1.0f ? 1.0f : x[i];
  }
}

// ---- Images: policy/reader.h --------------------------------------------------------------------

#define RLT_HEADER_WORDS 36u
#define RLT_RECURRENCE_WORDS 4u
#define RLT_LAYER_WORDS 2u
#define RLT_CHANNEL_WORDS 12u
#define RLT_CHOICE_WORDS 6u
#define RLT_ENTRY_WORDS 6u
#define RLT_CHANNEL_UNIT 6u  // words of a channel before its unit, and its range
#define RLT_CHANNEL_RANGE 10u
#define RLT_LONGEST_INTERVAL_US 600000000u

enum { RLT_HAS_NORMALIZER = 1, RLT_HAS_CHOICES = 2, RLT_HAS_ENTRY = 4, RLT_KNOWN_FLAGS = 31 };
enum { RLT_RESET_AT_START = 1, RLT_RESET_AT_FAULT = 2, RLT_RESET_AT_STALE = 4 };
enum { RLT_RESET_AT_PAUSE = 8, RLT_RESET_AT_ALL = 15 };
enum { RLT_DENSE, RLT_GRU, RLT_LSTM };

// The parts of an image, and their sizes.
typedef struct {
  const uint32_t* layers;
  const uint32_t* observations;
  const uint32_t* actions;
  const uint32_t* choices;  // null: no action is one
  const uint32_t* entry;    // five bounds; null: the image states none
  const uint32_t* mean;     // null: there is no normalizer
  const uint32_t* inverse_std;
  const uint32_t* parameters;
  const uint32_t* examples;
  uint32_t observation_dim, action_dim, output_dim, layer_count, example_count;
  uint32_t step_interval_us;
  uint32_t state_dim;  // numbers of the hidden state; 0: the policy remembers nothing
  uint32_t trained_interval_us, max_pause_us, reset_at;
  uint32_t widest, max_products;
  uint32_t with;  // RLT_WITH_*: what the caller's program has
} rlt_policy_t;

static RLT_ALWAYS_INLINE float rlt_number(const uint32_t* words, uint32_t index) {
#if defined(__GNUC__)  // one load where a copy would be of bytes, as their alignment is not known
  typedef float __attribute__((__may_alias__)) aliasing_float_t;
  return ((const aliasing_float_t*)words)[index];
#else
  return rlt_from_bits(words[index]);
#endif
}

static inline char rlt_letter(const uint32_t* text, uint32_t index) {
  return (char)(text[index / 4u] >> 8u * (index % 4u) & 0xffu);
}

// Return the CRC-32, as zlib's, of the words' bytes in little-endian order.
static RLT_NOINLINE uint32_t rlt_crc32(const uint32_t* words, size_t count, uint32_t previous) {
  static const uint32_t table[16] = {0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu,
                                     0x76dc4190u, 0x6b6b51f4u, 0x4db26158u, 0x5005713cu,
                                     0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu,
                                     0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu};
  uint32_t remainder = ~previous;
  for (size_t i = 0; i < count; i++) {
    remainder ^= words[i];
    for (int k = 0; k < 8; k++) remainder = remainder >> 4 ^ table[remainder & 15u];
  }
  return ~remainder;
}

static inline uint32_t rlt_crc32_of_numbers(const float* values, uint32_t count,
                                            uint32_t previous) {
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t bits = rlt_to_bits(values[i]);
    previous = rlt_crc32(&bits, 1, previous);
  }
  return previous;
}

static RLT_NOINLINE bool rlt_are_finite(const uint32_t* words, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    if ((words[i] & ~RLT_SIGN_BIT) >= RLT_INFINITY_BITS) return false;
  }
  return true;
}

// Return whether it is a text: at least one byte, then zeros, at least one.
static RLT_NOINLINE bool rlt_is_text(const uint32_t* text, uint32_t words, bool may_have_bar) {
  uint32_t length = 0;
  for (uint32_t i = 0; i < 4u * words; i++) {
    const char letter = rlt_letter(text, i);
    if (letter == '|' && !may_have_bar) return false;
    if (letter != '\0' && length < i) return false;
    length += letter != '\0' ? 1u : 0u;
  }
  return length > 0 && length < 4u * words;
}

// Return whether `text` continues at *index with `part` (words); move *index behind it.
static inline bool rlt_has_part(const uint32_t* text, uint32_t words, uint32_t* index,
                                const uint32_t* part, uint32_t part_words) {
  for (uint32_t i = 0; i < 4u * part_words && rlt_letter(part, i) != '\0'; i++, ++*index) {
    if (*index >= 4u * words || rlt_letter(text, *index) != rlt_letter(part, i)) return false;
  }
  return true;
}
static inline bool rlt_has_letters(const uint32_t* text, uint32_t words, uint32_t* index,
                                   const char* letters) {
  for (; *letters != '\0'; letters++, ++*index) {
    if (*index >= 4u * words || rlt_letter(text, *index) != *letters) return false;
  }
  return true;
}
static inline bool rlt_ends(const uint32_t* text, uint32_t words, uint32_t index) {
  return index >= 4u * words || rlt_letter(text, index) == '\0';
}

static inline const uint32_t* rlt_channel(const uint32_t* channels, uint32_t index) {
  return channels + (size_t)index * RLT_CHANNEL_WORDS;
}
static inline float rlt_minimum_of(const uint32_t* channel) {
  return rlt_number(channel, RLT_CHANNEL_RANGE);
}
static inline float rlt_maximum_of(const uint32_t* channel) {
  return rlt_number(channel, RLT_CHANNEL_RANGE + 1u);
}

// Return whether an action's unit is "choice"; also the number of choices, 0 where its range is
// none of a choice's.
static inline bool rlt_is_choice(const uint32_t* action) {
  const uint32_t* unit = action + RLT_CHANNEL_UNIT;
  return unit[0] == 0x696f6863u && (unit[1] & 0x00ffffffu) == 0x00006563u;
}
static inline uint32_t rlt_choice_count(const uint32_t* action) {
  const float low = rlt_minimum_of(action), high = rlt_maximum_of(action);
  if (!rlt_is_choice(action) || !(high >= 1.0f && high < 256.0f) || low != 0.0f) return 0;
  return (float)(uint32_t)high == high ? (uint32_t)high + 1u : 0u;
}

static inline uint32_t rlt_layer_outputs(const uint32_t* layer) { return layer[0] >> 16; }
static inline uint32_t rlt_layer_kind(const uint32_t* layer) { return layer[1] >> 8 & 0xffu; }
static inline uint32_t rlt_layer_gates(const uint32_t* layer) {
  return rlt_layer_kind(layer) == RLT_LSTM ? 4u : 3u;
}
static inline uint32_t rlt_layer_state(const uint32_t* layer) {
  return (rlt_layer_kind(layer) == RLT_LSTM ? 2u : 1u) * rlt_layer_outputs(layer);
}

// Return whether a layer is right. A recurrent one stands in format 2 only, and has no activation
// but its own.
static inline bool rlt_is_layer(const uint32_t* layer, const rlt_policy_t* policy) {
  const uint32_t kind = rlt_layer_kind(layer), activation = layer[1] & 0xffu;
  if (rlt_layer_outputs(layer) == 0 || layer[1] >> 16 != 0) return false;
  if (kind == RLT_DENSE)
    return activation < 28u && (policy->with & RLT_WITH_ALL & 1u << activation) != 0;
  if (kind != RLT_GRU && kind != RLT_LSTM) return false;
  return policy->trained_interval_us != 0 && activation == 0 &&
         (policy->with & (kind == RLT_GRU ? RLT_WITH_GRU : RLT_WITH_LSTM)) != 0;
}

static inline uint32_t rlt_example_words(const rlt_policy_t* policy) {
  return (policy->trained_interval_us != 0 ? 1u : 0u) + policy->observation_dim + 1u +
         policy->output_dim + policy->action_dim;
}
static inline const uint32_t* rlt_example_observation(const rlt_policy_t* policy, uint32_t index) {
  return policy->examples + (size_t)index * rlt_example_words(policy) +
         (policy->trained_interval_us != 0 ? 1u : 0u);
}

static inline rlt_reason_t rlt_check_envelope(const uint32_t* image, size_t bytes) {
  if ((uintptr_t)image % 4u != 0) return RLT_REASON_MISALIGNED;
  if (bytes < 4u * RLT_HEADER_WORDS) return RLT_REASON_TOO_SHORT;
  if (image[0] != 0x50544c52u) return RLT_REASON_BAD_MAGIC;
  const uint32_t version = image[1] & 0xffffu;
  if (version != 1u && version != 2u) return RLT_REASON_UNKNOWN_VERSION;
  const uint32_t words = RLT_HEADER_WORDS + (version == 2u ? RLT_RECURRENCE_WORDS : 0u);
  if (image[1] >> 16 != 4u * words || image[2] != bytes || bytes < 4u * words) {
    return RLT_REASON_WRONG_SIZE;
  }
  if (bytes % 4u != 0) return RLT_REASON_WRONG_SIZE;  // no sections add up to that
  const uint32_t sum = rlt_crc32(image + 4, bytes / 4u - 4u, rlt_crc32(image, 3, 0));
  return sum == image[3] ? RLT_REASON_ACCEPTED : RLT_REASON_WRONG_CRC;
}

static inline bool rlt_is_interval(uint32_t us) {
  return us >= 1u && us <= RLT_LONGEST_INTERVAL_US;
}

// Locate the parts of an image whose header has been checked, in order; all tables lie within it,
// and the sections add up to its length.
static RLT_NOINLINE rlt_reason_t rlt_locate(const uint32_t* image, uint32_t with,
                                            rlt_policy_t* policy) {
  const bool is_recurrent = (image[1] & 0xffffu) == 2u;
  const uint32_t flags = image[6];
  uint32_t i, choices = 0;
  policy->with = with;
  policy->observation_dim = image[4] & 0xffffu;
  policy->action_dim = image[4] >> 16;
  policy->layer_count = image[5] & 0xffffu;
  policy->example_count = image[5] >> 16;
  policy->step_interval_us = image[7];
  policy->trained_interval_us = policy->max_pause_us = policy->state_dim = policy->reset_at = 0;
  const uint32_t channels = policy->observation_dim + policy->action_dim;
  uint64_t words = (image[1] >> 16) / 4u + policy->layer_count * (uint64_t)RLT_LAYER_WORDS +
                   channels * (uint64_t)RLT_CHANNEL_WORDS;
  if (4u * words > image[2]) return RLT_REASON_MALFORMED;
  if (is_recurrent) {
    policy->trained_interval_us = image[RLT_HEADER_WORDS];
    policy->max_pause_us = image[RLT_HEADER_WORDS + 1u];
    policy->state_dim = image[RLT_HEADER_WORDS + 2u] & 0xffffu;
    policy->reset_at = image[RLT_HEADER_WORDS + 2u] >> 16;
    if (!rlt_is_interval(policy->trained_interval_us) ||
        policy->trained_interval_us % policy->step_interval_us != 0 ||
        policy->max_pause_us < policy->step_interval_us || !rlt_is_interval(policy->max_pause_us) ||
        policy->state_dim == 0 || (policy->reset_at & RLT_RESET_AT_START) == 0 ||
        policy->reset_at > RLT_RESET_AT_ALL || image[RLT_HEADER_WORDS + 3u] != 0) {
      return RLT_REASON_MALFORMED;
    }
  }
  policy->layers = image + (image[1] >> 16) / 4u;
  policy->observations = policy->layers + policy->layer_count * RLT_LAYER_WORDS;
  policy->actions = rlt_channel(policy->observations, policy->observation_dim);
  policy->choices = NULL;
  policy->output_dim = policy->action_dim;
  if ((flags & RLT_HAS_CHOICES) != 0) {
    policy->choices = rlt_channel(policy->actions, policy->action_dim);
    policy->output_dim = 0;
    for (i = 0; i < policy->action_dim; i++) {
      const uint32_t* action = rlt_channel(policy->actions, i);
      const uint32_t count = rlt_choice_count(action);
      if (count == 0 && rlt_is_choice(action)) return RLT_REASON_MALFORMED;
      choices += count;
      policy->output_dim += count == 0 ? 1u : count;
    }
    if (choices == 0) return RLT_REASON_MALFORMED;
    words += choices * (uint64_t)RLT_CHOICE_WORDS;
  }
  policy->entry = (flags & RLT_HAS_ENTRY) != 0 ? image + words : NULL;
  words += (flags & RLT_HAS_ENTRY) != 0 ? RLT_ENTRY_WORDS : 0u;

  uint32_t width = policy->observation_dim;
  uint64_t state = 0, parameters = 0;
  policy->widest = width;
  policy->max_products = 0;
  for (i = 0; i < policy->layer_count; i++) {
    const uint32_t* layer = policy->layers + i * RLT_LAYER_WORDS;
    if ((layer[0] & 0xffffu) != width || !rlt_is_layer(layer, policy)) return RLT_REASON_MALFORMED;
    uint64_t rows = width + (uint64_t)1;
    uint32_t columns = width = rlt_layer_outputs(layer);
    if (rlt_layer_kind(layer) != RLT_DENSE) {
      rows += width + (uint64_t)1;
      columns *= rlt_layer_gates(layer);
      state += rlt_layer_state(layer);
      if (2u * columns > policy->max_products) policy->max_products = 2u * columns;
    }
    parameters += rows * columns;
    if (width > policy->widest) policy->widest = width;
  }
  if (width != policy->output_dim || state != policy->state_dim) return RLT_REASON_MALFORMED;
  const uint64_t normalizer = (flags & RLT_HAS_NORMALIZER) != 0 ? 2u * policy->observation_dim : 0u;
  const uint64_t numbers =
      normalizer + parameters + policy->example_count * (uint64_t)rlt_example_words(policy);
  if (4u * (words + numbers) != image[2]) return RLT_REASON_MALFORMED;
  policy->mean = normalizer != 0 ? image + words : NULL;
  policy->inverse_std = normalizer != 0 ? image + words + policy->observation_dim : NULL;
  policy->parameters = image + words + normalizer;
  policy->examples = policy->parameters + parameters;
  return RLT_REASON_ACCEPTED;
}

static inline rlt_reason_t rlt_check_tables(const rlt_policy_t* policy) {
  const uint32_t channels = policy->observation_dim + policy->action_dim;
  const uint32_t choices = policy->choices == NULL ? 0u : policy->output_dim;
  uint32_t i;
  for (i = 0; i < channels; i++) {
    const uint32_t* channel = rlt_channel(policy->observations, i);
    const float low = rlt_minimum_of(channel), high = rlt_maximum_of(channel);
    if (!rlt_is_text(channel, RLT_CHANNEL_UNIT, true) ||
        !rlt_is_text(channel + RLT_CHANNEL_UNIT, 4u, false)) {
      return RLT_REASON_MALFORMED;
    }
    if (!rlt_is_finite(low) || !rlt_is_finite(high) || !rlt_is_finite(high - low)) {
      return RLT_REASON_NOT_FINITE;
    }
    if (!(low < high)) return RLT_REASON_MALFORMED;
  }
  // Outputs that stand for no choice are as many as actions that are none.
  uint32_t names = choices;
  for (i = 0; choices > 0 && i < policy->action_dim; i++) {
    names -= rlt_is_choice(rlt_channel(policy->actions, i)) ? 0u : 1u;
  }
  for (i = 0; i < names; i++) {
    if (!rlt_is_text(policy->choices + i * RLT_CHOICE_WORDS, RLT_CHOICE_WORDS, false)) {
      return RLT_REASON_MALFORMED;
    }
  }
  if (policy->entry != NULL) {
    if (!rlt_are_finite(policy->entry, 5)) return RLT_REASON_NOT_FINITE;
    for (i = 0; i < 5u; i++) {
      if (rlt_number(policy->entry, i) < 0.0f) return RLT_REASON_MALFORMED;
    }
    if (policy->entry[5] != 0) return RLT_REASON_MALFORMED;
  }
  return RLT_REASON_ACCEPTED;
}

// Check that every number is finite but the examples' traces, which are none, and that the first
// example begins.
static inline rlt_reason_t rlt_check_numbers(const rlt_policy_t* policy) {
  const uint32_t* first = policy->mean != NULL ? policy->mean : policy->parameters;
  const uint32_t outputs = policy->output_dim + policy->action_dim;
  if (!rlt_are_finite(first, (uint64_t)(policy->examples - first))) return RLT_REASON_NOT_FINITE;
  for (uint32_t i = 0; i < policy->example_count; i++) {
    const uint32_t* example = rlt_example_observation(policy, i);
    const uint32_t begins = policy->trained_interval_us == 0 ? 1u : example[-1];
    if (begins > 1u || (i == 0 && begins == 0)) return RLT_REASON_MALFORMED;
    if (!rlt_are_finite(example, policy->observation_dim) ||
        !rlt_are_finite(example + policy->observation_dim + 1u, outputs)) {
      return RLT_REASON_NOT_FINITE;
    }
  }
  return RLT_REASON_ACCEPTED;
}

// Check all of an image that can be checked without running it, and fill `policy`, which points
// into it. `with`: RLT_WITH_ALL, or what of it the program needs.
static inline rlt_reason_t rlt_policy_open(const uint32_t* image, size_t bytes, uint32_t with,
                                           rlt_policy_t* policy) {
  rlt_reason_t reason = rlt_check_envelope(image, bytes);
  if (reason != RLT_REASON_ACCEPTED) return reason;
  if ((image[4] & 0xffffu) == 0 || image[4] >> 16 == 0 || (image[5] & 0xffffu) == 0 ||
      image[5] >> 16 == 0 || (image[6] & ~(uint32_t)RLT_KNOWN_FLAGS) != 0 || image[11] != 0 ||
      !rlt_is_interval(image[7]) || !rlt_is_text(image + 20, 8u, true) ||
      !rlt_is_text(image + 28, 8u, true)) {
    return RLT_REASON_MALFORMED;
  }
  reason = rlt_locate(image, with, policy);
  if (reason == RLT_REASON_ACCEPTED) reason = rlt_check_tables(policy);
  if (reason == RLT_REASON_ACCEPTED) reason = rlt_check_numbers(policy);
  return reason;
}

// ---- Evaluation: policy/runtime.h ---------------------------------------------------------------

// Floats of scratch memory: of rlt_policy_evaluate(), and of rlt_policy_verify(). `products` is six
// times the widest GRU, or eight times the widest LSTM.
#define RLT_SCRATCH_FLOATS(widest, products, state) (2 * (widest) + (products) + (state))
static inline size_t rlt_scratch_floats(const rlt_policy_t* policy) {
  return RLT_SCRATCH_FLOATS((size_t)policy->widest, policy->max_products, policy->state_dim);
}
static inline size_t rlt_verify_floats(const rlt_policy_t* policy) {
  return rlt_scratch_floats(policy) + policy->output_dim + policy->action_dim;
}
// Return where in the scratch memory the hidden state lies that the last step has led to.
static inline float* rlt_next_state(const rlt_policy_t* policy, float* scratch) {
  return scratch + rlt_scratch_floats(policy) - policy->state_dim;
}

// Compute output (outputs) = input (inputs) . weights (inputs, outputs) + bias: each begins with
// its bias and takes the inputs in order. What is zero adds nothing, as all weights are finite.
static RLT_NOINLINE void rlt_product(uint32_t inputs, uint32_t outputs, const uint32_t* weights,
                                     const float* input, float* output) {
  const uint32_t* bias = weights + (size_t)inputs * outputs;
  uint32_t i, k = 0;
  for (; k + 8u <= outputs; k += 8u) {
    const uint32_t* row = weights + k;
    float a = rlt_number(bias, k), b = rlt_number(bias, k + 1u), c = rlt_number(bias, k + 2u);
    float d = rlt_number(bias, k + 3u), e = rlt_number(bias, k + 4u), f = rlt_number(bias, k + 5u);
    float g = rlt_number(bias, k + 6u), h = rlt_number(bias, k + 7u);
    for (i = 0; i < inputs; i++, row += outputs) {
      const float x = input[i];
      if (rlt_to_bits(x) << 1 == 0u) continue;
      a = rlt_fma(x, rlt_number(row, 0), a);
      b = rlt_fma(x, rlt_number(row, 1), b);
      c = rlt_fma(x, rlt_number(row, 2), c);
      d = rlt_fma(x, rlt_number(row, 3), d);
      e = rlt_fma(x, rlt_number(row, 4), e);
      f = rlt_fma(x, rlt_number(row, 5), f);
      g = rlt_fma(x, rlt_number(row, 6), g);
      h = rlt_fma(x, rlt_number(row, 7), h);
    }
    output[k] = a + 0.0f;
    output[k + 1u] = b + 0.0f;
    output[k + 2u] = c + 0.0f;
    output[k + 3u] = d + 0.0f;
    output[k + 4u] = e + 0.0f;
    output[k + 5u] = f + 0.0f;
    output[k + 6u] = g + 0.0f;
    output[k + 7u] = h + 0.0f;
  }
  for (; k < outputs; k++) {
    const uint32_t* weight = weights + k;
    float sum = rlt_number(bias, k);
    for (i = 0; i < inputs; i++, weight += outputs) {
      if (rlt_to_bits(input[i]) << 1 != 0u) sum = rlt_fma(input[i], rlt_number(weight, 0), sum);
    }
    output[k] = sum + 0.0f;
  }
}

// Compute a recurrent layer as nn/recurrent_at_run_time.h: output (width) and next (of an LSTM h,
// then c) from `state`, which may be `next`. Gates are r, z and n of a GRU, and i, f, g and o of an
// LSTM.
static inline const uint32_t* rlt_recurrent(const uint32_t* layer, const uint32_t* parameters,
                                            const float* input, const float* state, float* products,
                                            float* next, float* output) {
  const uint32_t inputs = layer[0] & 0xffffu, width = rlt_layer_outputs(layer);
  const uint32_t columns = rlt_layer_gates(layer) * width;
  const uint32_t* hidden_parameters = parameters + (size_t)(inputs + 1u) * columns;
  const float* u = products + columns;
  float* x = products;
  rlt_product(inputs, columns, parameters, input, x);
  rlt_product(width, columns, hidden_parameters, state, products + columns);
  for (uint32_t i = 0; i < width; i++) {
    const uint32_t second = width + i, third = 2u * width + i, fourth = 3u * width + i;
    const float one = rlt_sigmoid(x[i] + u[i]), two = rlt_sigmoid(x[second] + u[second]);
    if (rlt_layer_kind(layer) == RLT_GRU) {
      const float candidate = rlt_tanh(rlt_fma(one, u[third], x[third]));
      output[i] = rlt_fma(two, state[i] - candidate, candidate) + 0.0f;
    } else {
      const float candidate = rlt_tanh(x[third] + u[third]);
      const float out = rlt_sigmoid(x[fourth] + u[fourth]);
      const float cell = rlt_fma(two, state[second], one * candidate) + 0.0f;
      next[second] = cell;
      output[i] = rlt_without_negative_zero(out * rlt_tanh(cell));
    }
    next[i] = output[i];
  }
  return hidden_parameters + (size_t)(width + 1u) * columns;
}

// Run the network on `observation`, which may be `scratch`, and return where in `scratch`
// (rlt_scratch_floats) its outputs lie; rlt_next_state() is the hidden state after it. `state`: the
// one before, null where that is zero. Where `trace` is not null, it becomes the CRC-32 of every
// layer's output.
static RLT_NOINLINE const float* rlt_outputs(uint32_t with, const rlt_policy_t* policy,
                                             const float* observation, const float* state,
                                             float* scratch, uint32_t* trace) {
  float* input = scratch;
  float* result = scratch + policy->widest;
  float* products = result + policy->widest;
  float* next = rlt_next_state(policy, scratch);
  const uint32_t* parameters = policy->parameters;
  uint32_t i;
  if (state == NULL) {
    for (i = 0; i < policy->state_dim; i++) next[i] = 0.0f;
    state = next;
  }
  for (i = 0; i < policy->observation_dim; i++) {
    input[i] = policy->mean == NULL ? observation[i]
                                    : (observation[i] - rlt_number(policy->mean, i)) *
                                          rlt_number(policy->inverse_std, i);
  }
  for (i = 0; i < policy->layer_count; i++) {
    const uint32_t* layer = policy->layers + i * RLT_LAYER_WORDS;
    const uint32_t inputs = layer[0] & 0xffffu, outputs = rlt_layer_outputs(layer);
    if ((with & (RLT_WITH_GRU | RLT_WITH_LSTM)) != 0 && rlt_layer_kind(layer) != RLT_DENSE) {
      parameters = rlt_recurrent(layer, parameters, input, state, products, next, result);
      state += rlt_layer_state(layer);
      next += rlt_layer_state(layer);
    } else {
      rlt_product(inputs, outputs, parameters, input, result);
      rlt_activate(with, layer[1] & 0xffu, outputs, result);
      parameters += (size_t)(inputs + 1u) * outputs;
    }
    if (trace != NULL) *trace = rlt_crc32_of_numbers(result, outputs, *trace);
    float* previous = input;
    input = result;
    result = previous;
  }
  return input;
}

static inline bool rlt_all_finite(const float* values, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (!rlt_is_finite(values[i])) return false;
  }
  return true;
}

static inline float rlt_middle_of(float low, float high) { return 0.5f * (high + low); }

// Return a normalized action in its channel's unit: -1 is the minimum, 1 the maximum.
static inline float rlt_physical_action(float action, float low, float high) {
  const float half_range = 0.5f * (high - low);
  const float physical =
      rlt_fma(rlt_clamp(action, -1.0f, 1.0f), half_range, rlt_middle_of(low, high));
  return rlt_clamp(physical, low, high);
}

// Return whether the observation `<action>:<choice>`, where there is one, is one half at least.
static inline bool rlt_is_allowed(const rlt_policy_t* policy, const uint32_t* action,
                                  const uint32_t* choice, const float* observation) {
  for (uint32_t i = 0; i < policy->observation_dim; i++) {
    const uint32_t* name = rlt_channel(policy->observations, i);
    uint32_t k = 0;
    if (rlt_has_part(name, 6u, &k, action, 6u) && rlt_has_letters(name, 6u, &k, ":") &&
        rlt_has_part(name, 6u, &k, choice, RLT_CHOICE_WORDS) && rlt_ends(name, 6u, k)) {
      return observation[i] >= 0.5f;
    }
  }
  return true;
}

// Compute action (action_dim) in the channels' units from the outputs of the network (output_dim),
// which are finite. A choice is the number of its largest output that the observation allows, the
// first of equal ones; of all where it allows none.
static inline void rlt_scale_action(const rlt_policy_t* policy, const float* observation,
                                    const float* output, float* action) {
  const uint32_t* choice = policy->choices;
  for (uint32_t i = 0; i < policy->action_dim; i++) {
    const uint32_t* channel = rlt_channel(policy->actions, i);
    const uint32_t count = choice == NULL ? 0u : rlt_choice_count(channel);
    if (count == 0) {
      action[i] = rlt_physical_action(*output++, rlt_minimum_of(channel), rlt_maximum_of(channel));
      continue;
    }
    uint32_t largest = 0, best = count;
    for (uint32_t k = 0; k < count; k++, choice += RLT_CHOICE_WORDS) {
      if (output[k] > output[largest]) largest = k;
      if (!rlt_is_allowed(policy, channel, choice, observation)) continue;
      if (best == count || output[k] > output[best]) best = k;
    }
    action[i] = (float)(best == count ? largest : best);
    output += count;
  }
}

// Compute output (output_dim), and unless it is null action (action_dim), for an observation in its
// units. Return false where an element of the observation or of the output is infinite or not a
// number: then neither is set. `state` (state_dim) moves on; where it is null, it is zero before.
// After false it is zero, or as it was, as the image says. `with`: that of rlt_policy_open(), best
// as a constant.
static inline bool rlt_policy_evaluate(uint32_t with, const rlt_policy_t* policy,
                                       const float* observation, float* state, float* output,
                                       float* action, float* scratch) {
  const float* found = NULL;
  uint32_t i;
  if (rlt_all_finite(observation, policy->observation_dim)) {
    found = rlt_outputs(with, policy, observation, state, scratch, NULL);
  }
  if (found != NULL && rlt_all_finite(found, policy->output_dim)) {
    const float* next = rlt_next_state(policy, scratch);
    for (i = 0; state != NULL && i < policy->state_dim; i++) state[i] = next[i];
    for (i = 0; i < policy->output_dim; i++) output[i] = found[i];
    if (action != NULL) rlt_scale_action(policy, observation, output, action);
    return true;
  }
  const bool resets = (policy->reset_at & RLT_RESET_AT_FAULT) != 0;
  for (i = 0; state != NULL && resets && i < policy->state_dim; i++) state[i] = 0.0f;
  return false;
}

// Copy example `index` of example_count, as the device that wrote the image computed it.
static inline void rlt_policy_example(const rlt_policy_t* policy, uint32_t index,
                                      float* observation, float* output, float* action) {
  const uint32_t* example = rlt_example_observation(policy, index);
  uint32_t i;
  for (i = 0; i < policy->observation_dim; i++) observation[i] = rlt_number(example++, 0);
  example++;  // the trace
  for (i = 0; i < policy->output_dim; i++) output[i] = rlt_number(example++, 0);
  for (i = 0; i < policy->action_dim; i++) action[i] = rlt_number(example++, 0);
}

// Run the image's examples, in `scratch` (rlt_verify_floats), and compare every bit: of all layers,
// outputs and actions, and so of the hidden states.
static inline bool rlt_policy_verify(uint32_t with, const rlt_policy_t* policy, float* scratch) {
  float* output = scratch + rlt_scratch_floats(policy);
  float* action = output + policy->output_dim;
  for (uint32_t i = 0; i < policy->example_count; i++) {
    const uint32_t* example = rlt_example_observation(policy, i);
    const uint32_t* expected = example + policy->observation_dim;
    const bool begins = policy->trained_interval_us == 0 || example[-1] != 0;
    const float* state = begins ? NULL : rlt_next_state(policy, scratch);
    uint32_t k, trace = 0;
    for (k = 0; k < policy->observation_dim; k++) scratch[k] = rlt_number(example, k);
    const float* found = rlt_outputs(with, policy, scratch, state, scratch, &trace);
    for (k = 0; k < policy->output_dim; k++) output[k] = found[k];
    for (k = 0; k < policy->observation_dim; k++) scratch[k] = rlt_number(example, k);
    rlt_scale_action(policy, scratch, output, action);
    // Output and action lie one behind the other, in the image as here.
    bool is_same = trace == *expected++;
    for (k = 0; k < policy->output_dim + policy->action_dim; k++) {
      is_same = is_same && rlt_to_bits(output[k]) == expected[k];
    }
    if (!is_same) return false;
  }
  return true;
}

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // RLT_POLICY_RUNTIME_H
