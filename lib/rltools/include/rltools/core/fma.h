// Fused multiply-add of binary32 on integers, for processors without one: the exact product, the
// exact sum, one rounding to nearest with ties to even (IEEE 754-2019, 5.4.1), on words of 32 bits.
// Where binary64 is in hardware, that computes most of them.
//
// C libraries do not offer it there: picolibc's fmaf multiplies and adds, newlib's for Arm without
// a floating-point unit rounds twice. Equal to the processor's for every argument but for the
// payload of NaN, which is always the quiet one kQuietNanBits (tests/lib/core/test_fma.cpp).
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

// A sum before it is rounded: high 2^(exponent - 127 - 30), bit 30 of `high` set. Bit 0 is also set
// where the exact sum has digits below it; the rounded sum ends at bit 7. That of opposite numbers
// has exponent kZeroExponent.
struct UnroundedSum {
  std::uint32_t high;
  std::int32_t exponent;
  std::uint32_t sign;
};

constexpr inline std::uint32_t one_if(bool condition) {
  return static_cast<std::uint32_t>(condition);
}

// The sum (high 2^32 + low) with its first bit moved to bit 30 of `high`.
[[gnu::always_inline]] constexpr inline UnroundedSum normalized(std::uint32_t high,
                                                                std::uint32_t low,
                                                                std::int32_t exponent,
                                                                std::uint32_t sign) {
  if (high >> 30 != 1u) {
    if ((high & kSignBit) != 0u) {
      low |= high << 31;
      high >>= 1;
      exponent++;
    } else {
      if (high == 0u) {
        if (low == 0u) return {0u, kZeroExponent, 0u};
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
  return {high | one_if(low != 0u), exponent, sign};
}

// x y + addend, for finite x and y that are not zero. `x_exponent` is that of x less 126; the
// mantissa of y has bit 31 set, and `sign` is that of the product.
[[gnu::always_inline]] constexpr inline UnroundedSum add_product(
    UnpackedFloat addend, std::uint32_t x_mantissa, std::int32_t x_exponent,
    std::uint32_t y_mantissa, std::int32_t y_exponent, std::uint32_t sign) {
  const std::uint64_t product = static_cast<std::uint64_t>(x_mantissa) * y_mantissa;  // from 2^61
  std::uint32_t high = static_cast<std::uint32_t>(product >> 32);
  std::uint32_t low = static_cast<std::uint32_t>(product);
  std::int32_t exponent = x_exponent + y_exponent;
  std::uint32_t addend_high = addend.mantissa, addend_low = 0u;
  // The number with the smaller exponent moves to the right. Digits that leave it count as one in
  // its last place: they are below the other's digits, and below those that decide how the sum
  // rounds.
  std::int32_t shift = exponent - addend.exponent;
  if (shift < -1) {
    // Most often. The product is below half of the addend, so that one word is enough.
    shift = shift > -31 ? -shift : 31;
    high = high >> shift | one_if((high << (32 - shift) | low) != 0u);
    high = sign == addend.sign ? addend_high + high : addend_high - high;
    return normalized(high, 0u, addend.exponent, addend.sign);
  }
  if (shift >= 32) {
    shift = shift < 63 ? shift - 32 : 31;
    addend_low = addend_high >> shift | one_if((addend_high << 1) << (31 - shift) != 0u);
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
    high += addend_high + one_if(low < addend_low);
  } else {
    high -= addend_high + one_if(low < addend_low);
    low -= addend_low;
    if ((high & kSignBit) != 0u) {
      sign = addend.sign;
      low = 0u - low;
      high = ~high + one_if(low == 0u);
    }
  }
  return normalized(high, low, exponent, sign);
}

// The sum without what is below bit 7, rounded to nearest with ties to even. It may reach bit 31.
[[gnu::always_inline]] constexpr inline std::uint32_t rounded(std::uint32_t high) {
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
  const UnroundedSum sum = add_product(unpack_finite(c), x.mantissa, x.exponent - 126,
                                       y.mantissa << 1, y.exponent, sign);
  if (sum.exponent == kZeroExponent) return 0u;
  if (sum.exponent >= 1) {
    // The mantissa's bit 30 adds 1 to the exponent; so does a carry into bit 31.
    const std::uint32_t exponent = static_cast<std::uint32_t>(sum.exponent) - 1u;
    const bool is_finite = exponent < 254u;
    return sum.sign | (is_finite ? (exponent << 23) + (rounded(sum.high) >> 7) : kInfinityBits);
  }
  // Below the normal numbers the digits end at 2^-149; the sum may be a fraction of that.
  const std::int32_t shift = sum.exponent > -30 ? 1 - sum.exponent : 31;
  return sum.sign | rounded(sum.high >> shift | one_if(sum.high << (32 - shift) != 0u)) >> 7;
}

// The same for every argument as the instruction of a processor that has one.
[[gnu::noinline]] inline float exact_fma(float a, float b, float c) {
  return from_bits(fma_bits(to_bits(a), to_bits(b), to_bits(c)));
}

// ---- On binary64 --------------------------------------------------------------------------------

// Marks of a sum in binary64 that may not be rounded to binary32 as it is: the low 29 digits of one
// in the middle between two floats, and the high word of 2^-126.
inline constexpr std::uint32_t kLowDigits = 0x1fffffffu;
inline constexpr std::uint32_t kMiddle = 0x10000000u;
inline constexpr std::uint32_t kFirstNormalHigh = 0x38100000u;

// fma(a, b, c) for a device that has binary64 and no fused multiply-add. In binary64 the product is
// exact. The sum, rounded to 53 digits, lies on the same side of the middle between two floats as
// the exact one, so that rounding it again gives the same float. Integers settle what is in the
// very middle, where the digits that are lost may decide, and what lies below the normal numbers,
// where middles are elsewhere.
inline float fma_by_binary64(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double sum = product + static_cast<double>(c);
  std::uint64_t bits;
  __builtin_memcpy(&bits, &sum, sizeof bits);
  const std::uint32_t low = static_cast<std::uint32_t>(bits) & kLowDigits;
  const std::uint32_t high = static_cast<std::uint32_t>(bits >> 32) & ~kSignBit;
  const bool is_nan = high > 0x7ff00000u;
  if (low == kMiddle || high - 1u < kFirstNormalHigh - 1u || is_nan) return exact_fma(a, b, c);
  return static_cast<float>(sum);
}

}  // namespace math
}  // namespace rlt
