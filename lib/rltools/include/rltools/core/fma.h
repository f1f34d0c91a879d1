// Fused multiply-add of binary32 on integers, for processors without one: the exact product, the
// exact sum, one rounding to nearest with ties to even (IEEE 754-2019, 5.4.1), on words of 32 bits.
//
// C libraries do not offer it there: picolibc's fmaf multiplies and adds, newlib's for Arm without
// a floating-point unit rounds twice. Equal to the processor's for every argument but for the
// payload of NaN, which is always the quiet one kQuietNanBits (tests/cpp/test_fma.cpp).
#pragma once

#include <cstdint>

#include "rltools/core/float_bits.h"

namespace rlt {
namespace math {

// Finite: mantissa 2^(exponent - 127 - 30) with bit 30 of the mantissa set, but where it is zero.
// The exponent has no bounds: a subnormal number has one below 1.
struct UnpackedFloat {
  std::uint32_t mantissa;
  std::int32_t exponent;
  std::uint32_t sign;  // kSignBit or 0
};

// The exponent of zero: below that of everything that is added to it.
inline constexpr std::int32_t kZeroExponent = -4096;

[[gnu::always_inline]] constexpr inline UnpackedFloat unpack_finite(std::uint32_t bits) {
  const std::uint32_t fraction = bits & 0x007fffffu;
  const std::uint32_t sign = bits & kSignBit;
  std::int32_t exponent = static_cast<std::int32_t>(bits >> 23 & 0xffu);
  if (exponent > 0) return {fraction << 7 | 0x40000000u, exponent, sign};
  if (fraction == 0u) return {0u, kZeroExponent, sign};
  std::uint32_t mantissa = fraction << 7;
  for (exponent = 1; mantissa < 0x40000000u; exponent--) mantissa <<= 1;
  return {mantissa, exponent, sign};
}

// A sum before it is rounded: (high 2^32 + low) 2^(exponent - 127 - 62), bit 30 of `high` set. What
// is lost of the exact sum counts in bit 0 of `low`, too far below the rounded digits to be told
// apart. The sum of opposite numbers has exponent kZeroExponent.
struct WideSum {
  std::uint32_t high, low;
  std::int32_t exponent;
  std::uint32_t sign;
};

// x y + addend, for finite x and y that are not zero. `x_exponent` is that of x less 126; the
// mantissa of y has bit 31 set, and the sign is that of the product.
[[gnu::always_inline]] constexpr inline WideSum add_product(
    UnpackedFloat addend, std::uint32_t x_mantissa, std::int32_t x_exponent,
    std::uint32_t y_mantissa, std::int32_t y_exponent, std::uint32_t product_sign) {
  const std::uint64_t product = static_cast<std::uint64_t>(x_mantissa) * y_mantissa;  // from 2^61
  std::uint32_t high = static_cast<std::uint32_t>(product >> 32);
  std::uint32_t low = static_cast<std::uint32_t>(product);
  std::int32_t exponent = x_exponent + y_exponent;
  std::uint32_t sign = product_sign;
  std::uint32_t addend_high = addend.mantissa, addend_low = 0u;
  // What has the smaller exponent moves to the right. Its bits that leave two words count as one.
  std::int32_t shift = exponent - addend.exponent;
  if (shift >= 0) {
    const std::uint32_t doubled = addend_high << 1;
    if (shift < 32) {
      addend_high >>= shift;
      addend_low = doubled << (31 - shift);
    } else {
      shift = shift < 63 ? shift - 32 : 31;
      addend_low = addend_high >> shift | static_cast<std::uint32_t>(doubled << (31 - shift) != 0u);
      addend_high = 0u;
    }
  } else {
    exponent = addend.exponent;
    shift = -shift;
    if (shift < 32) {
      const bool is_lost = (low << 1) << (31 - shift) != 0u;
      low = (high << 1) << (31 - shift) | low >> shift | static_cast<std::uint32_t>(is_lost);
      high >>= shift;
    } else {
      low = 1u;
      high = 0u;
    }
  }
  if (sign == addend.sign) {
    low += addend_low;
    high += addend_high + static_cast<std::uint32_t>(low < addend_low);
  } else {
    high -= addend_high + static_cast<std::uint32_t>(low < addend_low);
    low -= addend_low;
    if ((high & kSignBit) != 0u) {
      sign = addend.sign;
      low = 0u - low;
      high = ~high + static_cast<std::uint32_t>(low == 0u);
    }
  }
  if (high >> 30 == 1u) return {high, low, exponent, sign};
  if ((high & kSignBit) != 0u) {
    return {high >> 1, high << 31 | low >> 1 | (low & 1u), exponent + 1, sign};
  }
  if (high == 0u) {
    if (low == 0u) return {0u, 0u, kZeroExponent, 0u};
    high = low >> 1;
    low <<= 31;
    exponent -= 31;
  }
  for (; high < 0x40000000u; exponent--) {
    high = high << 1 | low >> 31;
    low <<= 1;
  }
  return {high, low, exponent, sign};
}

// Bits 7 to 31 of the sum, rounded to nearest with ties to even; below them are zeros.
[[gnu::always_inline]] constexpr inline std::uint32_t rounded_mantissa(std::uint32_t high,
                                                                       std::uint32_t low) {
  high |= static_cast<std::uint32_t>(low != 0u);
  return (high + 0x3fu + (high >> 7 & 1u)) & ~0x7fu;
}

// Bits of fma(a, b, c).
constexpr inline std::uint32_t fma_bits(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const std::uint32_t sign = (a ^ b) & kSignBit;
  const std::uint32_t abs_a = a & ~kSignBit, abs_b = b & ~kSignBit, abs_c = c & ~kSignBit;
  const std::uint32_t product_infinity = sign | kInfinityBits;
  if (abs_a >= kInfinityBits || abs_b >= kInfinityBits || abs_c >= kInfinityBits) {
    if (abs_a > kInfinityBits || abs_b > kInfinityBits || abs_c > kInfinityBits) {
      return kQuietNanBits;
    }
    if (abs_a < kInfinityBits && abs_b < kInfinityBits) return c;
    const bool is_undefined =
        abs_a == 0u || abs_b == 0u || (abs_c == kInfinityBits && c != product_infinity);
    return is_undefined ? kQuietNanBits : product_infinity;
  }
  if (abs_a == 0u || abs_b == 0u) return abs_c != 0u || c == sign ? c : 0u;
  const UnpackedFloat x = unpack_finite(a), y = unpack_finite(b);
  const WideSum sum = add_product(unpack_finite(c), x.mantissa, x.exponent - 126, y.mantissa << 1,
                                  y.exponent, sign);
  if (sum.exponent == kZeroExponent) return 0u;
  if (sum.exponent >= 1) {
    // The mantissa's bit 30 adds 1 to the exponent; so does a carry into bit 31.
    const std::uint32_t rounded = rounded_mantissa(sum.high, sum.low) >> 7;
    const std::uint32_t exponent = static_cast<std::uint32_t>(sum.exponent) - 1u;
    const std::uint32_t bits = exponent < 254u ? (exponent << 23) + rounded : kInfinityBits;
    return sum.sign | bits;
  }
  // Below the normal numbers, down to half of the smallest number, the digits end at 2^-149.
  const std::int32_t shift = 1 - sum.exponent;
  if (shift >= 32) return sum.sign;
  const bool is_lost = (sum.high << 1) << (31 - shift) != 0u || sum.low != 0u;
  return sum.sign | rounded_mantissa(sum.high >> shift, static_cast<std::uint32_t>(is_lost)) >> 7;
}

// The same for every argument as the instruction of a processor that has one.
[[gnu::noinline]] inline float exact_fma(float a, float b, float c) {
  return from_bits(fma_bits(to_bits(a), to_bits(b), to_bits(c)));
}

}  // namespace math
}  // namespace rlt
