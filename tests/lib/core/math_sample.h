// A dense sample of every function of core/math.h and core/random.h, as one CRC-32 each: equal on
// every device and compiler, or the numerics contract is broken. Needs no C library; runs anywhere.
#pragma once

#include <cstdint>

#include "rltools/core/crc32.h"
#include "rltools/core/math.h"
#include "rltools/core/random.h"

namespace math_sample {

// Every 4,099th float (a prime, so that all exponents and low bits occur) ...
inline constexpr std::uint32_t kStride = 4099u;
inline constexpr std::uint32_t kDenseCount = 0xffffffffu / kStride + 1u;

// ... and, of both signs, these with the 16 floats before and the 16 after.
inline constexpr std::uint32_t kSpecialBits[] = {
    0x00000000u,  // 0
    0x00800000u,  // smallest normal
    0x33800000u,  // 2^-24
    0x34000000u,  // 2^-23
    0x3eaaaaabu,  // 1/3
    0x3eb17218u,  // ln(2) / 2
    0x3f100000u,  // 0.5625, where tanh changes its formula
    0x3f2aaaabu,  // 2/3
    0x3f317218u,  // ln 2
    0x3f490fdbu,  // pi/4
    0x3f800000u,  // 1
    0x3faaaaabu,  // 4/3
    0x3fc90fdbu,  // pi/2
    0x4016cbe4u,  // 3 pi/4
    0x40490fdbu,  // pi
    0x407ae148u,  // 3.92, from where erf is 1
    0x40800000u,  // 4
    0x40c90fdbu,  // 2 pi
    0x411051ecu,  // 9.02, from where tanh is 1
    0x4189999au,  // 17.2, about where 1 + exp(x) loses the 1
    0x41d90000u,  // 27.125
    0x42200000u,  // 40
    0x42aeac50u,  // -x: exp(x) becomes denormal
    0x42b17218u,  // exp(x) overflows
    0x42cff1b5u,  // -x: exp(x) becomes 0
    0x42d00000u,  // 104
    0x47800000u,  // 65536, the limit of sin and cos
    0x4b000000u,  // 2^23, from where every float is an integer
    0x7f3504f3u,  // 2^127.5
    0x7f7fffffu,  // largest
    0x7fc00000u,  // NaN
};
inline constexpr std::uint32_t kSpecialCount = sizeof kSpecialBits / sizeof kSpecialBits[0];
inline constexpr std::uint32_t kNeighbors = 33u;
inline constexpr std::uint32_t kCount = kDenseCount + kSpecialCount * kNeighbors * 2u;

// Argument number `index` of the sample, 0 <= index < kCount.
inline float argument(std::uint32_t index) {
  if (index < kDenseCount) return rlt::math::from_bits(index * kStride);
  const std::uint32_t rest = (index - kDenseCount) / 2u;
  const std::uint32_t offset = rest % kNeighbors - kNeighbors / 2u;
  const std::uint32_t sign = index % 2u == 0u ? 0u : rlt::math::kSignBit;
  return rlt::math::from_bits((kSpecialBits[rest / kNeighbors] + offset) ^ sign);
}

// The processor's own NaN of an invalid operation differs between processors.
inline float canonical(float x) { return x == x ? x : rlt::math::kQuietNan; }

inline float sqrt(float x) { return canonical(rlt::math::sqrt(x)); }
inline float floor(float x) { return canonical(rlt::math::floor(x)); }

// CRC-32 over the results (little-endian floats) of the whole sample, in its order.
template <float (*kFunction)(float)>
std::uint32_t crc_of_function() {
  constexpr std::uint32_t kBlock = 64;
  float x[kBlock], y[kBlock];
  std::uint32_t crc = 0;
  for (std::uint32_t first = 0; first < kCount; first += kBlock) {
    const std::uint32_t count = rlt::math::minimum(kBlock, kCount - first);
    for (std::uint32_t i = 0; i < count; ++i) x[i] = argument(first + i);
    for (std::uint32_t i = 0; i < count; ++i) y[i] = kFunction(x[i]);
    crc = rlt::crc32(y, count * sizeof(float), crc);
  }
  return crc;
}

inline constexpr int kRandomCount = 1001;  // not a multiple of a block
inline constexpr std::uint32_t kRandomSteps = 64;

inline rlt::RandomStream random_stream(std::uint32_t step) {
  return {20240611u, rlt::Purpose::target_noise, step, step % 3u};
}

inline std::uint32_t crc_of_uniform() {
  float numbers[kRandomCount];
  std::uint32_t crc = 0;
  for (std::uint32_t step = 0; step < kRandomSteps; ++step) {
    rlt::fill_uniform(rlt::Generic{}, random_stream(step), numbers, kRandomCount, -0.3f, 1.7f);
    crc = rlt::crc32(numbers, sizeof numbers, crc);
  }
  return crc;
}

inline std::uint32_t crc_of_standard_normal() {
  float numbers[kRandomCount];
  std::uint32_t crc = 0;
  for (std::uint32_t step = 0; step < kRandomSteps; ++step) {
    rlt::fill_standard_normal(rlt::Generic{}, random_stream(step), numbers, kRandomCount);
    crc = rlt::crc32(numbers, sizeof numbers, crc);
  }
  return crc;
}

struct Sample {
  const char* name;
  std::uint32_t (*crc)();
  std::uint32_t expected;
};

// A change of any value here changes every training run: it is a change of the contract.
inline constexpr Sample kSamples[] = {
    {"exp", crc_of_function<rlt::math::exp>, 0x9f180017u},
    {"log", crc_of_function<rlt::math::log>, 0x6c064986u},
    {"log1p", crc_of_function<rlt::math::log1p>, 0x922d9e13u},
    {"tanh", crc_of_function<rlt::math::tanh>, 0xd0c2c7bbu},
    {"sigmoid", crc_of_function<rlt::math::sigmoid>, 0x6b9c197au},
    {"softplus", crc_of_function<rlt::math::softplus>, 0x3cd70d58u},
    {"elu", crc_of_function<rlt::math::elu>, 0xba509e1cu},
    {"erf", crc_of_function<rlt::math::erf>, 0xbb8b4e34u},
    {"sin", crc_of_function<rlt::math::sin>, 0xa63a02b8u},
    {"cos", crc_of_function<rlt::math::cos>, 0x7b390372u},
    {"sqrt", crc_of_function<sqrt>, 0xf6e6b5beu},
    {"floor", crc_of_function<floor>, 0x888a17c0u},
    {"uniform", crc_of_uniform, 0x483c1931u},
    {"standard_normal", crc_of_standard_normal, 0x212d6809u},
};

}  // namespace math_sample
