// The bits of a binary32 number (IEEE 754-2019, 3.4): sign, eight bits of biased exponent, 23 bits
// of fraction.
#pragma once

#include <cstdint>

namespace rlt {
namespace math {

inline std::uint32_t to_bits(float x) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline float from_bits(std::uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

// Tells numbers apart by their bits: FNV-1a over words, from the hash of what was before.
inline constexpr std::uint32_t kHashOfNothing = 2166136261u;
inline std::uint32_t hash_bits(const float* values, int count,
                               std::uint32_t hash = kHashOfNothing) {
  for (int i = 0; i < count; i++) hash = (hash ^ to_bits(values[i])) * 16777619u;
  return hash;
}

inline constexpr std::uint32_t kSignBit = 0x80000000u;
inline constexpr std::uint32_t kInfinityBits = 0x7f800000u;
inline constexpr std::uint32_t kQuietNanBits = 0x7fc00000u;

}  // namespace math
}  // namespace rlt
