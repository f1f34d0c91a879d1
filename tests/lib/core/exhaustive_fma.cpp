// The core's fused multiply-add on integers (core/fma.h) against the processor's: 10^9 random cases
// (fma_cases.h). Prints the cases that differ, ten at most; exits with 1 if there is one.
//
// From the repository's root, about a minute on one core; a number runs as many cases:
//   g++ -std=c++17 -O3 -march=native -ffp-contract=off -Ilib/rltools/include
//     tests/lib/core/exhaustive_fma.cpp -o build/exhaustive_fma
//   build/exhaustive_fma [1000000000]
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fma_cases.h"

static_assert(rlt::math::kHasFastFma, "this processor has no fused multiply-add to compare with");

int main(int argument_count, char** arguments) {
  using rlt::math::from_bits;
  const std::uint64_t count =
      argument_count > 1 ? std::strtoull(arguments[1], nullptr, 10) : std::uint64_t{1000000000};
  std::uint64_t different = 0, subnormal = 0, exact_zero = 0, infinite = 0, undefined = 0;
  for (std::uint64_t i = 0; i < count; i++) {
    const fma_cases::Arguments x = fma_cases::random_case(i);
    const float result = std::fmaf(from_bits(x.a), from_bits(x.b), from_bits(x.c));
    const std::uint32_t expected =
        result == result ? rlt::math::to_bits(result) : rlt::math::kQuietNanBits;
    const std::uint32_t actual = rlt::math::fma_bits(x.a, x.b, x.c);
    const std::uint32_t magnitude = expected & ~rlt::math::kSignBit;
    subnormal += magnitude - 1u < 0x007fffffu;
    exact_zero += magnitude == 0u;
    infinite += magnitude == rlt::math::kInfinityBits;
    undefined += magnitude > rlt::math::kInfinityBits;
    if (actual == expected) continue;
    if (different++ < 10) {
      std::printf("fma(%08x, %08x, %08x) is %08x, not %08x\n", x.a, x.b, x.c, expected, actual);
    }
  }
  std::printf(
      "%llu cases, %llu differ; results: %llu subnormal, %llu zero, %llu infinite, %llu NaN\n",
      static_cast<unsigned long long>(count), static_cast<unsigned long long>(different),
      static_cast<unsigned long long>(subnormal), static_cast<unsigned long long>(exact_zero),
      static_cast<unsigned long long>(infinite), static_cast<unsigned long long>(undefined));
  return different == 0 ? 0 : 1;
}
