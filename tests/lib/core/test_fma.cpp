// core/fma.h: fused multiply-add on integers against the processor's, over every triple of special
// and boundary patterns and random cases (10^9 of them: exhaustive_fma.cpp), and at compile time.
#include <cmath>
#include <cstdint>
#include <initializer_list>

#include <doctest/doctest.h>

#include "fma_cases.h"

namespace math = rlt::math;

namespace {

// The processor's instruction, or the C library's function where a sanitizer's build has none.
float reference(float a, float b, float c) { return std::fmaf(a, b, c); }

bool agrees(const fma_cases::Arguments& x) {
  const float result = reference(math::from_bits(x.a), math::from_bits(x.b), math::from_bits(x.c));
  const std::uint32_t expected = result == result ? math::to_bits(result) : math::kQuietNanBits;
  return math::fma_bits(x.a, x.b, x.c) == expected;
}

constexpr std::uint32_t kOne = 0x3f800000u, kTwo = 0x40000000u, kAfterOne = 0x3f800001u;
constexpr std::uint32_t kHalfDigit = 0x33800000u;  // 2^-24, half of the last digit of 1
constexpr std::uint32_t kSmallest = 0x00000001u, kLargest = 0x7f7fffffu;

static_assert(math::fma_bits(kOne, kOne, kOne) == kTwo);
static_assert(math::fma_bits(kHalfDigit, kOne, kOne) == kOne, "a tie goes to the even number");
static_assert(math::fma_bits(kHalfDigit, kOne, kAfterOne) == kAfterOne + 1u);
static_assert(math::fma_bits(kHalfDigit, kAfterOne, kOne) == kAfterOne, "just above a tie");
static_assert(math::fma_bits(kSmallest, kSmallest, kOne) == kOne);
static_assert(math::fma_bits(kLargest, kOne, 0x73000000u) == math::kInfinityBits, "a tie, up");
static_assert(math::fma_bits(kLargest, kOne, 0x72ffffffu) == kLargest);
static_assert(math::fma_bits(kLargest, kTwo, math::kSignBit | kLargest) == kLargest,
              "the product overflows, the sum does not");
static_assert(math::fma_bits(kOne, kOne, math::kSignBit | kOne) == 0u, "cancels to +0");

}  // namespace

TEST_CASE("every triple of special and boundary patterns has the processor's bits") {
  std::uint32_t different = 0;
  for (std::uint32_t i = 0; i < fma_cases::kTripleCount; i++)
    different += !agrees(fma_cases::triple(i));
  CHECK(different == 0);
}

TEST_CASE("random cases have the processor's bits") {
  std::uint32_t different = 0;
  for (std::uint64_t i = 0; i < 2000000; i++) different += !agrees(fma_cases::random_case(i));
  CHECK(different == 0);
}

TEST_CASE("the samples have the bits of every other device") {
  for (const auto fma : {math::exact_fma, math::fma_by_binary64,
                         static_cast<float (*)(float, float, float)>(math::fma)}) {
    CHECK(fma_cases::crc_of_triples(fma) == fma_cases::kTriplesCrc);
    CHECK(fma_cases::crc_of_random_cases(fma) == fma_cases::kRandomCrc);
  }
}
