// A module whose function differences() compares the vectors' multiply-add (kernels/simd/vector.h)
// with fma on integers, which is the processor's (test_fma.cpp): every triple of special and
// boundary numbers and random cases, four at a time. What is not a number may be any.
#include "../../lib/core/fma_cases.h"
#include "rltools/devices/web_assembly.h"

namespace {

using rlt::math::from_bits;
using rlt::math::to_bits;
constexpr std::uint32_t kRandomCases = 400000;

fma_cases::Arguments argument(std::uint32_t i) {
  return i < fma_cases::kTripleCount ? fma_cases::triple(i)
                                     : fma_cases::random_case(i - fma_cases::kTripleCount);
}

}  // namespace

extern "C" [[clang::export_name("differences")]] std::uint32_t differences() {
  using namespace rlt::kernels;
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < fma_cases::kTripleCount + kRandomCases; i += kLanes) {
    float a[kLanes], b[kLanes], c[kLanes], result[kLanes];
    for (int lane = 0; lane < kLanes; lane++) {
      const auto x = argument(i + static_cast<std::uint32_t>(lane));
      a[lane] = from_bits(x.a), b[lane] = from_bits(x.b), c[lane] = from_bits(x.c);
    }
    store(result, multiply_add(load(a), load(b), load(c)));
    for (int lane = 0; lane < kLanes; lane++) {
      const auto x = argument(i + static_cast<std::uint32_t>(lane));
      const std::uint32_t expected = rlt::math::fma_bits(x.a, x.b, x.c);
      const bool is_nan = result[lane] != result[lane] && expected == rlt::math::kQuietNanBits;
      const float scalar = rlt::math::fma(a[lane], b[lane], c[lane]);
      const bool scalar_is_nan = scalar != scalar && expected == rlt::math::kQuietNanBits;
      if (!is_nan && to_bits(result[lane]) != expected) found++;
      if (!scalar_is_nan && to_bits(scalar) != expected) found++;
    }
  }
  return found;
}
