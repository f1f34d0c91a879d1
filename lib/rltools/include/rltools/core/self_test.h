// A test that a processor with its compiler, flags and libraries computes the bits that the core
// relies on (docs/design.md, "Numerics"): a few microseconds once at start, before anything is
// trained.
#pragma once

#include <cstdint>

#include "rltools/core/math.h"

namespace rlt {

enum class ArithmeticFault : std::uint8_t {
  none,
  rounding,
  subnormal,
  fused_multiply_add,
  contraction,
  division,
  square_root,
  not_a_number,
  double_precision
};

// Return the fault in words, to follow "this board's ...".
constexpr const char* arithmetic_fault_text(ArithmeticFault fault) {
  switch (fault) {
    case ArithmeticFault::none: return "arithmetic is exact";
    case ArithmeticFault::rounding: return "rounding is not to nearest, ties to even";
    case ArithmeticFault::subnormal: return "subnormal numbers are flushed to zero";
    case ArithmeticFault::fused_multiply_add: return "fused multiply-add is not exact";
    case ArithmeticFault::contraction:
      return "products and sums are contracted: needs -ffp-contract=off";
    case ArithmeticFault::division: return "division is not exact";
    case ArithmeticFault::square_root: return "square root is not exact";
    case ArithmeticFault::not_a_number: return "NaN is lost or changed";
    case ArithmeticFault::double_precision: return "double is not IEEE-754's binary64";
  }
  return "arithmetic fails in an unknown way";
}

// The operations in question, as the core computes them. A test replaces one by a wrong one.
struct CoreArithmetic {
  static float fma(float a, float b, float c) { return math::fma(a, b, c); }
  static float sum(float a, float b) { return a + b; }
  static float quotient(float a, float b) { return a / b; }
  static double quotient(double a, double b) { return a / b; }
  static float square_root(float x) { return math::sqrt(x); }
  static double square_root(double x) { return math::sqrt(x); }
};

namespace detail {

// Reading the operands through volatile keeps the compiler from computing the results itself.
inline float opaque(std::uint32_t bits) {
  const volatile std::uint32_t memory = bits;
  return math::from_bits(memory);
}
inline double opaque_double(double x) {
  const volatile double memory = x;
  return memory;
}

inline bool is_float(float x, std::uint32_t bits) { return math::to_bits(x) == bits; }

inline bool rounds_to_nearest() {
  const float one = opaque(0x3f800000u), after_one = opaque(0x3f800001u);
  const float half_digit = opaque(0x33800000u);  // 2^-24: with 1 a tie
  const float above_half = opaque(0x33800001u), below_half = opaque(0x337fffffu);
  return is_float(one + half_digit, 0x3f800000u) && is_float(after_one + half_digit, 0x3f800002u) &&
         is_float(one + above_half, 0x3f800001u) && is_float(one + below_half, 0x3f800000u) &&
         is_float(-one - above_half, 0xbf800001u) && is_float(-one - below_half, 0xbf800000u);
}

inline bool keeps_subnormal_numbers() {
  const float smallest = opaque(0x00000001u), smallest_normal = opaque(0x00800000u);
  const float half = opaque(0x3f000000u), large = opaque(0x4b800000u);  // 2^24
  return is_float(smallest_normal * half, 0x00400000u) &&               // a subnormal result
         is_float(smallest * large, 0x01000000u) &&                     // a subnormal operand
         is_float(smallest + smallest, 0x00000002u);
}

struct FusedCase {
  std::uint32_t a, b, c, result;
};

// Products and sums that round differently where the product is rounded first, or where the sum is
// rounded twice (by way of double); and the ends of the range.
inline constexpr FusedCase kFusedCases[] = {
    {0x3f800800u, 0x3f800800u, 0xbf801000u, 0x33800000u},  // (1 + 2^-12)^2 - (1 + 2^-11) = 2^-24
    {0x3f800800u, 0x3f800800u, 0x21800000u, 0x3f801001u},  // the square is a tie; 2^-60 tips it up
    {0x3f800800u, 0x3f800800u, 0xa1800000u, 0x3f801000u},
    {0x3f801800u, 0x3f800800u, 0x21800000u, 0x3f802002u},  // 1 + 2^-10 + 3 2^-24
    {0x3f801800u, 0x3f800800u, 0xa1800000u, 0x3f802001u},
    {0x3f7fffffu, 0x3f800001u, 0xbf800000u, 0x337ffffeu},  // cancels all but the last digits
    {0x7f7fffffu, 0x40000000u, 0xff7fffffu, 0x7f7fffffu},  // the product alone overflows
    {0x20000000u, 0x1f800000u, 0x00000001u, 0x00400001u},  // subnormal, exact
    {0x1a000000u, 0x1a000000u, 0x00000001u, 0x00000002u},  // the product alone vanishes: 2^-150
    {0x1a000000u, 0x1a000000u, 0x80000001u, 0x80000000u},  // -0: a tie
    {0x00000001u, 0x00000001u, 0x3f800000u, 0x3f800000u},
    {0x3f800000u, 0xbf800000u, 0x3f800000u, 0x00000000u},  // +0
};

template <class Arithmetic>
bool is_fused() {
  for (const FusedCase& x : kFusedCases) {
    if (!is_float(Arithmetic::fma(opaque(x.a), opaque(x.b), opaque(x.c)), x.result)) return false;
  }
  return true;
}

inline bool rounds_products_before_sums() {
  const float x = opaque(0x3f800800u), y = opaque(0x3f801000u);
  return is_float(x * x - y, 0x00000000u);
}

template <class Arithmetic>
bool divides_exactly() {
  const float one = opaque(0x3f800000u), three = opaque(0x40400000u), five = opaque(0x40a00000u);
  const float after_one = opaque(0x3f800001u), after_smallest_normal = opaque(0x00800001u);
  return is_float(Arithmetic::quotient(one, three), 0x3eaaaaabu) &&
         is_float(Arithmetic::quotient(five, three), 0x3fd55555u) &&  // 5 (1 / 3) is above
         is_float(Arithmetic::quotient(one, after_one), 0x3f7ffffeu) &&
         is_float(Arithmetic::quotient(after_smallest_normal, three), 0x002aaaabu);
}

template <class Arithmetic>
bool takes_roots_exactly() {
  return is_float(Arithmetic::square_root(opaque(0x40000000u)), 0x3fb504f3u) &&
         is_float(Arithmetic::square_root(opaque(0x40400000u)), 0x3fddb3d7u) &&
         is_float(Arithmetic::square_root(opaque(0x3f7fffffu)), 0x3f7fffffu) &&
         is_float(Arithmetic::square_root(opaque(0x00000001u)), 0x1a3504f3u);
}

template <class Arithmetic>
bool keeps_nan() {
  const float nan = opaque(math::kQuietNanBits), one = opaque(0x3f800000u);
  return nan != nan && !(nan < one) && !(nan > one) &&
         is_float(Arithmetic::sum(nan, one), math::kQuietNanBits) &&
         is_float(Arithmetic::sum(one, nan), math::kQuietNanBits);
}

// Adam computes its decay rates' powers with it.
template <class Arithmetic>
bool has_binary64() {
  if constexpr (sizeof(double) != 8) return false;
  const double one = opaque_double(1.0), three = opaque_double(3.0);
  const double rate = opaque_double(0x1.ff7ced916872bp-1);  // 0.999
  return Arithmetic::quotient(one, three) == 0x1.5555555555555p-2 &&
         Arithmetic::square_root(three) == 0x1.bb67ae8584caap0 &&
         rate * rate == 0x1.fef9fcb0c026dp-1 && one - rate == 0x1.0624dd2f1aap-10 &&
         is_float(static_cast<float>(one / three), 0x3eaaaaabu) &&
         is_float(static_cast<float>(opaque_double(0x1.000001p0)), 0x3f800000u);
}

}  // namespace detail

// The first fault found.
template <class Arithmetic = CoreArithmetic>
ArithmeticFault find_arithmetic_fault() {
  if (!detail::rounds_to_nearest()) return ArithmeticFault::rounding;
  if (!detail::keeps_subnormal_numbers()) return ArithmeticFault::subnormal;
  if (!detail::is_fused<Arithmetic>()) return ArithmeticFault::fused_multiply_add;
  if (!detail::rounds_products_before_sums()) return ArithmeticFault::contraction;
  if (!detail::divides_exactly<Arithmetic>()) return ArithmeticFault::division;
  if (!detail::takes_roots_exactly<Arithmetic>()) return ArithmeticFault::square_root;
  if (!detail::keeps_nan<Arithmetic>()) return ArithmeticFault::not_a_number;
  if (!detail::has_binary64<Arithmetic>()) return ArithmeticFault::double_precision;
  return ArithmeticFault::none;
}

}  // namespace rlt
