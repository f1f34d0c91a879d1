// Arguments of fused multiply-add where implementations go wrong: every triple of a set of special
// and boundary patterns, and random ones that lean to close exponents, cancellation, ties and
// subnormal results. Needs no C library; runs anywhere.
#pragma once

#include <cstdint>

#include "rltools/core/crc32.h"
#include "rltools/core/math.h"

namespace fma_cases {

// Of either sign.
inline constexpr std::uint32_t kPatterns[] = {
    0x00000000u,  // 0
    0x00000001u,  // smallest
    0x00000002u,  //
    0x00000003u,  //
    0x00400000u,  // half of the smallest normal
    0x007fffffu,  // largest subnormal
    0x00800000u,  // smallest normal
    0x00800001u,  //
    0x00ffffffu,  //
    0x0c000000u,  // 2^-103: times 2^-46 the smallest
    0x1f800000u,  // 2^-64: its square is subnormal
    0x20000001u,  // its square is the first that is normal
    0x33000000u,  // 2^-25
    0x33800000u,  // 2^-24: half of the last digit of 1
    0x33800001u,  //
    0x34000000u,  // 2^-23
    0x3f000001u,  //
    0x3f7fffffu,  // before 1
    0x3f800000u,  // 1
    0x3f800001u,  // after 1
    0x3f800800u,  // 1 + 2^-12: the square has 25 digits, a tie
    0x3fb504f3u,  // sqrt(2)
    0x3fffffffu,  // before 2
    0x40000000u,  // 2
    0x40400000u,  // 3: half of an odd number is a tie
    0x4b000001u,  // 2^23 + 1
    0x4b800000u,  // 2^24: adding 1 is a tie
    0x4c000003u,  //
    0x5f000000u,  // 2^63
    0x5f7fffffu,  // its square does not overflow
    0x5f800000u,  // 2^64: its square does
    0x72800000u,  // 2^102: half of the largest number's last digit is 2^103
    0x73800000u,  // 2^104
    0x7effffffu,  // half of the largest
    0x7f000000u,  // 2^127
    0x7f7fffffu,  // largest
    0x7f800000u,  // infinity
    0x7f800001u,  // signaling NaN
    0x7fc00000u,  // NaN
};
inline constexpr std::uint32_t kPatternCount = sizeof kPatterns / sizeof kPatterns[0];
inline constexpr std::uint32_t kSignedCount = 2u * kPatternCount;
inline constexpr std::uint32_t kTripleCount = kSignedCount * kSignedCount * kSignedCount;

struct Arguments {
  std::uint32_t a, b, c;
};

inline std::uint32_t signed_pattern(std::uint32_t index) {
  return kPatterns[index / 2u] | (index % 2u == 0u ? 0u : rlt::math::kSignBit);
}

// Triple number `index`, 0 <= index < kTripleCount.
inline Arguments triple(std::uint32_t index) {
  return {signed_pattern(index / (kSignedCount * kSignedCount)),
          signed_pattern(index / kSignedCount % kSignedCount),
          signed_pattern(index % kSignedCount)};
}

// Vigna's SplitMix64 (2015): a function of the case's number alone.
inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The number with this biased exponent, held within the numbers, and these other bits; of the
// fraction's digits the last `cleared` are zero, which makes ties frequent.
inline std::uint32_t number(std::int32_t exponent, std::uint32_t bits, std::uint32_t cleared) {
  const std::int32_t held = exponent < 0 ? 0 : exponent > 254 ? 254 : exponent;
  const std::uint32_t fraction = bits & 0x007fffffu & ~((1u << cleared) - 1u);
  return (bits & rlt::math::kSignBit) | static_cast<std::uint32_t>(held) << 23 | fraction;
}

// Random case number `index`.
inline Arguments random_case(std::uint64_t index) {
  const std::uint64_t first = mixed(2u * index), second = mixed(2u * index + 1u);
  const std::uint32_t a = static_cast<std::uint32_t>(first);
  const std::uint32_t b = static_cast<std::uint32_t>(first >> 32);
  const std::uint32_t c = static_cast<std::uint32_t>(second);
  const std::uint32_t choice = static_cast<std::uint32_t>(second >> 32);
  const std::uint32_t kind = choice % 8u;
  if (kind == 0u) return {a, b, c};
  const std::uint32_t cleared = choice >> 3 & 0x1fu;
  const std::uint32_t digits = cleared < 23u ? cleared : 0u;
  const std::int32_t a_exponent = static_cast<std::int32_t>(choice >> 8 & 0xffu);
  const std::int32_t offset = static_cast<std::int32_t>(choice >> 16 & 0x3fu) - 32;
  // The biased exponent of the product, of the two factors.
  std::int32_t product_exponent = static_cast<std::int32_t>(choice >> 24);
  if (kind == 1u || kind == 2u) product_exponent = offset;  // about the subnormal numbers
  const std::int32_t b_exponent = product_exponent + 127 - a_exponent;
  const std::uint32_t x = number(a_exponent, a, digits), y = number(b_exponent, b, digits);
  const float product = rlt::math::from_bits(x) * rlt::math::from_bits(y);
  if (kind == 3u || kind == 4u) {  // the opposite of the product, or a neighbor of it
    const std::uint32_t opposite = rlt::math::to_bits(product) ^ rlt::math::kSignBit;
    return {x, y, opposite + static_cast<std::uint32_t>(offset / 8)};
  }
  return {x, y, number(product_exponent + (kind == 1u ? offset / 2 : offset), c, digits / 2u)};
}

// CRC-32 over the bits of `count` results from case `first` on; every NaN counts as the quiet one.
template <class Fma, class Case>
std::uint32_t crc_of_results(Fma fma, Case arguments, std::uint32_t first, std::uint32_t count,
                             std::uint32_t stride) {
  std::uint32_t crc = 0;
  for (std::uint32_t i = 0; i < count; i++) {
    const Arguments x = arguments(first + i * stride);
    const float result =
        fma(rlt::math::from_bits(x.a), rlt::math::from_bits(x.b), rlt::math::from_bits(x.c));
    const std::uint32_t bits =
        result == result ? rlt::math::to_bits(result) : rlt::math::kQuietNanBits;
    crc = rlt::crc32(&bits, sizeof bits, crc);
  }
  return crc;
}

// Few enough for an emulated processor: every 7th triple, and random cases.
inline constexpr std::uint32_t kTripleStride = 7u;
inline constexpr std::uint32_t kTriplesSampled = kTripleCount / kTripleStride;
inline constexpr std::uint32_t kRandomSampled = 100000u;
inline constexpr std::uint32_t kTriplesCrc = 0x762831a0u;
inline constexpr std::uint32_t kRandomCrc = 0xe9eb3d3bu;

template <class Fma>
std::uint32_t crc_of_triples(Fma fma) {
  return crc_of_results(fma, triple, 0u, kTriplesSampled, kTripleStride);
}
template <class Fma>
std::uint32_t crc_of_random_cases(Fma fma) {
  const auto arguments = [](std::uint32_t index) { return random_case(index); };
  return crc_of_results(fma, arguments, 0u, kRandomSampled, 1u);
}

}  // namespace fma_cases
