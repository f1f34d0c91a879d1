// The error of a float function in units in the last place (ulp), and the functions of core/math.h
// with references.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "rltools/core/math.h"

namespace ulp_error {

// |result - exact| / ulp(exact). For 2^e <= |exact| < 2^(e + 1), ulp(exact) = 2^(max(e, -126) - 23)
// is the distance between the floats around it. An infinite result counts as 2^128, the float that
// would come after the largest; only an infinite result meets an exact value of 2^128 or more.
// Infinite when one is NaN and the other is not, or the result is another NaN than math::kQuietNan;
// and when the exact value is zero or infinite and the result is not, or has the other sign.
inline double ulp_error(float result, double exact) {
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  constexpr double kBeyondLargest = 0x1p128;
  std::uint32_t result_bits, nan_bits;
  std::memcpy(&result_bits, &result, sizeof result_bits);
  std::memcpy(&nan_bits, &rlt::math::kQuietNan, sizeof nan_bits);
  if (exact != exact || result != result) {
    return exact != exact && result_bits == nan_bits ? 0.0 : kWrong;
  }
  const double got = static_cast<double>(result);
  if (exact == 0.0) return got == 0.0 && std::signbit(result) == std::signbit(exact) ? 0.0 : kWrong;
  if (std::fabs(exact) >= kBeyondLargest) {
    return std::isinf(got) && (got > 0.0) == (exact > 0.0) ? 0.0 : kWrong;
  }
  std::uint64_t exact_bits;
  std::memcpy(&exact_bits, &exact, sizeof exact_bits);
  const std::uint64_t exponent = exact_bits >> 52 & 0x7ffu;  // biased by 1023
  const std::uint64_t lowest = 1023 - 126;
  const std::uint64_t inverse_bits = (2 * 1023 + 23 - (exponent > lowest ? exponent : lowest))
                                     << 52;
  double inverse_ulp;
  std::memcpy(&inverse_ulp, &inverse_bits, sizeof inverse_ulp);
  const double value = std::isinf(got) ? std::copysign(kBeyondLargest, got) : got;
  return std::fabs(value - exact) * inverse_ulp;
}

// Beyond rlt::math::kTrigonometricLimit the contract is "not a number".
inline double exact_sin(double x) {
  return std::fabs(x) <= 65536.0 ? std::sin(x) : std::numeric_limits<double>::quiet_NaN();
}
inline double exact_cos(double x) {
  return std::fabs(x) <= 65536.0 ? std::cos(x) : std::numeric_limits<double>::quiet_NaN();
}
inline double exact_sigmoid(double x) {
  return x < 0.0 ? std::exp(x) / (1.0 + std::exp(x)) : 1.0 / (1.0 + std::exp(-x));
}
inline double exact_softplus(double x) {
  return x > 0.0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

inline double exact_elu(double x) { return x > 0.0 ? x : std::expm1(x) + 0.0; }

// Calls the vectorizable float function for each x[i].
template <float (*kFunction)(float)>
void apply(const float* __restrict x, float* __restrict y, int count) {
  for (int i = 0; i < count; ++i) y[i] = kFunction(x[i]);
}

struct Function {
  const char* name;
  void (*apply)(const float* x, float* y, int count);
  double (*exact)(double x);
};

constexpr double kLargestAllowed = 2.0;

inline constexpr Function kFunctions[] = {
    {"exp", apply<rlt::math::exp>, [](double x) { return std::exp(x); }},
    {"log", apply<rlt::math::log>, [](double x) { return std::log(x); }},
    {"log1p", apply<rlt::math::log1p>, [](double x) { return std::log1p(x); }},
    {"tanh", apply<rlt::math::tanh>, [](double x) { return std::tanh(x); }},
    {"sigmoid", apply<rlt::math::sigmoid>, exact_sigmoid},
    {"softplus", apply<rlt::math::softplus>, exact_softplus},
    {"elu", apply<rlt::math::elu>, exact_elu},
    {"erf", apply<rlt::math::erf>, [](double x) { return std::erf(x); }},
    {"sin", apply<rlt::math::sin>, exact_sin},
    {"cos", apply<rlt::math::cos>, exact_cos},
};

}  // namespace ulp_error
