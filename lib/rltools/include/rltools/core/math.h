// Scalar mathematics with the same bits on every device with IEEE-754 arithmetic: range reduction
// after Cody and Waite (1980), minimax polynomials with coefficients in float. Fused multiply-add
// is the processor's, or exact on integers (fma.h) where it has none.
//
// For `float` everything is our own and straight-line (no table, no branch on data, no double), so
// that compilers vectorize a loop that calls it (-O3 -fno-math-errno -fno-trapping-math). Where a
// rounded product is added, an explicit fma adds it: contraction cannot change a value. For
// `double`, which only tests on the host use, it is the C library's.
//
// Largest error in units in the last place over all 2^32 floats
// (tests/lib/core/exhaustive_math.cpp):
//   exp 0.90   log 0.94   log1p 1.55   tanh 1.31   sigmoid 1.70   elu 1.03   softplus 1.81
//   erf 1.91   sin 1.53   cos 1.53   for |x| <= 65536; beyond, and for infinity, they return NaN.
// Infinities, overflow, gradual underflow and the sign of zero are as in IEEE-754. NaN gives NaN,
// always the quiet one kQuietNan. Needs round to nearest and no flush to zero, the usual defaults.
#pragma once

#include <cstdint>

#include "rltools/core/fma.h"

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "rltools needs IEEE-754 arithmetic: compile without -ffast-math and -ffinite-math-only."
#endif

// Comparisons for equality are exact here, and meant so; users' builds may warn of them.
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wfloat-equal"
#endif

namespace rlt {
namespace math {

// True if an instruction computes fmaf: GCC says so on every processor, Clang names instruction
// sets. (Without one the C library's fmaf may multiply and add, or round twice.) That of
// WebAssembly's relaxed SIMD rounds once where the engine has it of the processor, and twice where
// not: a program of such a module asks core/self_test.h before it relies on any bit.
inline constexpr bool kHasFastFma =
#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__ARM_FEATURE_FMA) || \
    defined(__aarch64__) || defined(__riscv_flen) || defined(__wasm_relaxed_simd__)
    true;
#else
    false;
#endif

// True if binary64 is in hardware where that is not.
inline constexpr bool kHasBinary64 =
#if defined(__wasm__)
    true;
#else
    false;
#endif

inline constexpr float kInfinity = __builtin_inff();

inline constexpr float kQuietNan = __builtin_nanf("");

// The smallest number with all its digits.
template <class T>
inline constexpr T kSmallestNormal = T(0x1p-126);
template <>
inline constexpr double kSmallestNormal<double> = 0x1p-1022;

// ---- Exact or correctly rounded operations -----------------------------------------------------

inline float fma(float a, float b, float c) {
#if defined(__wasm_relaxed_simd__)
  typedef float Vector __attribute__((vector_size(16)));
  const Vector x = {a, a, a, a}, y = {b, b, b, b}, z = {c, c, c, c};
  return __builtin_wasm_relaxed_madd_f32x4(x, y, z)[0];
#else
  if constexpr (kHasFastFma) return __builtin_fmaf(a, b, c);
  if constexpr (kHasBinary64) return fma_by_binary64(a, b, c);
  return exact_fma(a, b, c);
#endif
}
inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline double sqrt(double x) { return __builtin_sqrt(x); }

inline float floor(float x) { return __builtin_floorf(x); }
inline double floor(double x) { return __builtin_floor(x); }

inline float absolute(float x) { return __builtin_fabsf(x); }
inline double absolute(double x) { return __builtin_fabs(x); }

// 0 or -0.
inline bool is_zero(float x) { return x == 0.0f; }

// b where either is NaN.
template <class T>
inline T minimum(T a, T b) {
  return a < b ? a : b;
}

// b where either is NaN.
template <class T>
inline T maximum(T a, T b) {
  return a > b ? a : b;
}

// NaN where x is NaN.
template <class T>
inline T clamp(T x, T low, T high) {
  const T raised = x < low ? low : x;
  return raised > high ? high : raised;
}

// ---- Exponentials ------------------------------------------------------------------------------

// Added to a float below 2^22 in magnitude, it rounds to an integer: the low bits of the sum.
inline constexpr float kRoundToInteger = 0x1.8p23f;

// exp(x) = 2^n (1 + expm1), where n = round(x / ln 2) stands in the low bits of n_bits.
struct ReducedExponential {
  std::uint32_t n_bits;
  float expm1;
};

// For |x| <= 104; the largest |expm1| is sqrt(2) - 1.
[[gnu::always_inline]] inline ReducedExponential reduce_exponential(float x) {
  const float shifted = fma(x, 0x1.715476p0f, kRoundToInteger);
  const float n = shifted - kRoundToInteger;
  const float high = fma(n, -0x1.62e43p-1f, x);  // exact
  const float low = n * 0x1.05c61p-29f;
  const float r = fma(n, 0x1.05c61p-29f, high);  // |r| <= ln(2) / 2
  float q = 0x1.6cb78ap-10f;                     // expm1(r) = r + r^2 q(r), to 2^-26.0
  q = fma(q, r, 0x1.12291p-7f);
  q = fma(q, r, 0x1.555566p-5f);
  q = fma(q, r, 0x1.5554aep-3f);
  q = fma(q, r, 0.5f);
  return {to_bits(shifted), high + fma(r * r, q, low)};
}

// 2^n for -126 <= n <= 127; only the low 8 bits of n count.
inline float power_of_two(std::uint32_t n) { return from_bits((n << 23) + 0x3f800000u); }

[[gnu::always_inline]] inline float exp(float x) {
  const ReducedExponential reduced = reduce_exponential(maximum(minimum(x, 89.0f), -104.0f));
  // -150 <= n <= 128: 2^n in two factors, of which only the second can make the result round.
  const std::uint32_t biased = reduced.n_bits - to_bits(kRoundToInteger) + 512u;
  const std::uint32_t half = biased >> 1;
  const float first = power_of_two(half - 256u);
  const float second = power_of_two(biased - half - 256u);
  const float y = fma(first, reduced.expm1, first) * second;
  return x == x ? y : kQuietNan;
}

// 1 - 2 / (exp(2 |x|) + 1), and where that would cancel an odd polynomial.
[[gnu::always_inline]] inline float tanh(float x) {
  const float a = minimum(absolute(x), 9.02f);  // 1 - tanh(9.02) < 2^-25
  const ReducedExponential reduced = reduce_exponential(a + a);
  const float scale = power_of_two(reduced.n_bits);
  const float large = 1.0f - 2.0f / fma(scale, reduced.expm1, scale + 1.0f);
  const float s = a * a;
  float q = -0x1.94bf44p-8f;  // tanh(x) = x + x^3 q(x^2), to 2^-29.4
  q = fma(q, s, 0x1.58226p-6f);
  q = fma(q, s, -0x1.b9075ap-5f);
  q = fma(q, s, 0x1.110c64p-3f);
  q = fma(q, s, -0x1.555548p-2f);
  const float small = fma(s * q, a, a);
  const float y = a < 0.5625f ? small : large;
  const float result = from_bits(to_bits(y) | (to_bits(x) & kSignBit));
  return x == x ? result : kQuietNan;
}

// 1 / (1 + exp(y)) for y of -40 to 104, the denominator scaled by 2^-64 lest it overflow before the
// result underflows.
[[gnu::always_inline]] inline float unclamped_sigmoid(float y) {
  const ReducedExponential reduced = reduce_exponential(y);
  const float scale = power_of_two(reduced.n_bits - 64u);
  const float sum = scale + 0x1p-64f;
  const float lost = 0x1p-64f - (sum - scale);  // by rounding, where y > 16
  return 1.0f / (sum + fma(scale, reduced.expm1, lost)) * 0x1p-64f;
}

// 1 / (1 + exp(-x)).
[[gnu::always_inline]] inline float sigmoid(float x) {
  const float y = unclamped_sigmoid(maximum(minimum(-x, 104.0f), -40.0f));  // exp(-40) < 2^-25
  return x == x ? y : kQuietNan;
}

// exp(x) - 1 for x < 0, else x (Clevert, Unterthiner, Hochreiter 2015); its zero has no sign.
[[gnu::always_inline]] inline float elu(float x) {
  const ReducedExponential reduced =
      reduce_exponential(maximum(minimum(x, 0.0f), -26.0f));  // exp(-26) < 2^-37
  const float scale = power_of_two(reduced.n_bits);
  const float below = fma(scale, reduced.expm1, scale - 1.0f);
  const float y = x > 0.0f ? x : below;
  return x == x ? y : kQuietNan;
}

// erf(|x|) = 1 - exp(-|x| q(|x|)), where q(x) = -ln(erfc(x)) / x is smooth.
[[gnu::always_inline]] inline float erf(float x) {
  const float a = minimum(absolute(x), 4.0f);  // 1 - erf(3.92) < 2^-25
  float q = -0x1.36d824p-17f;                  // weighted for a relative error of erf of 2^-27.9
  q = fma(q, a, 0x1.edb59ap-14f);
  q = fma(q, a, -0x1.4beab2p-11f);
  q = fma(q, a, 0x1.b51e6ap-10f);
  q = fma(q, a, -0x1.515248p-13f);
  q = fma(q, a, -0x1.39ccbep-6f);
  q = fma(q, a, 0x1.a4fa4cp-4f);
  q = fma(q, a, 0x1.45f2fap-1f);
  q = fma(q, a, 0x1.16f72cp-24f);
  const ReducedExponential reduced = reduce_exponential(-fma(a, 0x1.20dd74p0f, a * q));
  const float scale = power_of_two(reduced.n_bits);
  const float y = fma(-scale, reduced.expm1, 1.0f - scale);
  const float result = from_bits(to_bits(y) | (to_bits(x) & kSignBit));
  return x == x ? result : kQuietNan;
}

// ---- Logarithms --------------------------------------------------------------------------------

// The exponent e of a positive normal x = 2^e m, 2/3 <= m < 4/3, plus 256.
inline std::uint32_t biased_exponent(float x) {
  constexpr std::uint32_t kTwoThirds = 0x3f2aaaabu;
  return (to_bits(x) - kTwoThirds + (256u << 23)) >> 23;
}

// ln(2^e (1 + f)) for |f| <= 1/3.
[[gnu::always_inline]] inline float combine_logarithm(float e, float f) {
  float q = -0x1.080c9ep-3f;  // ln(1 + f) = f - f^2 / 2 + f^3 q(f), to 2^-27.7
  q = fma(q, f, 0x1.1e73ap-3f);
  q = fma(q, f, -0x1.f30e36p-4f);
  q = fma(q, f, 0x1.1ed424p-3f);
  q = fma(q, f, -0x1.559de4p-3f);
  q = fma(q, f, 0x1.99d05ep-3f);
  q = fma(q, f, -0x1.fffefp-3f);
  q = fma(q, f, 0x1.555506p-2f);
  q = fma(q, f, -0.5f);
  return fma(e, 0x1.62e43p-1f, fma(f * f, q, f));
}

[[gnu::always_inline]] inline float log(float x) {
  const bool denormal = x < 0x1p-126f;
  const float normal = denormal ? x * 0x1p24f : x;
  const std::uint32_t biased = biased_exponent(normal);
  const float m = from_bits(to_bits(normal) - ((biased - 256u) << 23));
  const float e =
      static_cast<float>(static_cast<std::int32_t>(biased)) - (denormal ? 280.0f : 256.0f);
  float y = combine_logarithm(e, m - 1.0f);
  y = x == 0.0f ? -kInfinity : y;
  y = x == kInfinity ? kInfinity : y;
  return x >= 0.0f ? y : kQuietNan;
}

// ln(1 + x)
[[gnu::always_inline]] inline float log1p(float x) {
  const std::uint32_t biased = biased_exponent(1.0f + x);
  const float scale = power_of_two(258u - biased) * 0.25f;  // 2^-e, denormal for the largest x
  const float f = fma(x, scale, scale - 1.0f);
  const float e = static_cast<float>(static_cast<std::int32_t>(biased)) - 256.0f;
  float y = combine_logarithm(e, f);
  y = x == 0.0f ? x : y;
  y = x == -1.0f ? -kInfinity : y;
  y = x == kInfinity ? kInfinity : y;
  return x >= -1.0f ? y : kQuietNan;
}

// ln(1 + exp(x)) = max(x, 0) + ln(1 + exp(-|x|))
[[gnu::always_inline]] inline float softplus(float x) {
  return maximum(x, 0.0f) + log1p(exp(-absolute(x)));
}

// ---- Trigonometry ------------------------------------------------------------------------------

inline constexpr float kTrigonometricLimit = 65536.0f;

template <class T>
struct SineCosine {
  T sine, cosine;
};

// |x| = n pi/2 + r with |r| <= pi/4; pi/2 in three floats.
[[gnu::always_inline]] inline SineCosine<float> sincos(float x) {
  const float a = absolute(x);
  const float shifted = fma(a, 0x1.45f306p-1f, kRoundToInteger);
  const float n = shifted - kRoundToInteger;
  float r = fma(n, -0x1.921fb6p0f, a);  // exact
  r = fma(n, 0x1.777a5cp-25f, r);
  r = fma(n, 0x1.ee59dap-50f, r);
  const float s = r * r;
  float p = -0x1.9953ep-13f;  // sin(r) = r + r^3 p(r^2), to 2^-27.9
  p = fma(p, s, 0x1.110778p-7f);
  p = fma(p, s, -0x1.555546p-3f);
  const float sine = fma(s * p, r, r);
  float q = 0x1.99e904p-16f;  // cos(r) = 1 + r^2 q(r^2), to 2^-33.0
  q = fma(q, s, -0x1.6c0c2ap-10f);
  q = fma(q, s, 0x1.55554ap-5f);
  q = fma(q, s, -0.5f);
  const float cosine = fma(q, s, 1.0f);
  const std::uint32_t quadrant = to_bits(shifted);  // its low two bits
  const bool odd = (quadrant & 1u) != 0u;
  const std::uint32_t sine_sign = ((quadrant << 30) ^ to_bits(x)) & kSignBit;
  const std::uint32_t cosine_sign = ((quadrant + 1u) << 30) & kSignBit;
  const float signed_sine = from_bits(to_bits(odd ? cosine : sine) ^ sine_sign);
  const float signed_cosine = from_bits(to_bits(odd ? sine : cosine) ^ cosine_sign);
  const bool valid = a <= kTrigonometricLimit;
  return {valid ? signed_sine : kQuietNan, valid ? signed_cosine : kQuietNan};
}

[[gnu::always_inline]] inline float sin(float x) { return sincos(x).sine; }
[[gnu::always_inline]] inline float cos(float x) { return sincos(x).cosine; }

// ---- Double: the C library's -------------------------------------------------------------------

inline double exp(double x) { return __builtin_exp(x); }
inline double log(double x) { return __builtin_log(x); }
inline double log1p(double x) { return __builtin_log1p(x); }
inline double tanh(double x) { return __builtin_tanh(x); }
inline double erf(double x) { return __builtin_erf(x); }
inline double sin(double x) { return __builtin_sin(x); }
inline double cos(double x) { return __builtin_cos(x); }
inline SineCosine<double> sincos(double x) { return {sin(x), cos(x)}; }

inline double sigmoid(double x) {
  const double e = exp(-absolute(x));
  return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

inline double elu(double x) { return x > 0.0 ? x : __builtin_expm1(x); }

inline double softplus(double x) { return maximum(x, 0.0) + log1p(exp(-absolute(x))); }

}  // namespace math
}  // namespace rlt

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
