// core/self_test.h: this machine's arithmetic passes, and each fault is found and named.
#include <cfenv>
#include <cmath>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "rltools/core/self_test.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

using namespace rlt;

namespace {

float multiply_and_add(float a, float b, float c) {
  const volatile float product = a * b;
  return product + c;
}

float by_way_of_double(float a, float b, float c) {
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b) +
                            static_cast<double>(c));
}

}  // namespace

TEST_CASE("this machine has no fault, with either fused multiply-add") {
  CHECK(find_arithmetic_fault() == ArithmeticFault::none);
  CHECK(find_arithmetic_fault(math::exact_fma) == ArithmeticFault::none);
}

TEST_CASE("a fused multiply-add that rounds twice is found") {
  CHECK(find_arithmetic_fault(multiply_and_add) == ArithmeticFault::fused_multiply_add);
  CHECK(find_arithmetic_fault(by_way_of_double) == ArithmeticFault::fused_multiply_add);
}

TEST_CASE("every fused case has the bits of the processor and of the integers") {
  for (const auto& x : detail::kFusedCases) {
    CAPTURE(x.a);
    CAPTURE(x.b);
    CAPTURE(x.c);
    CHECK(math::fma_bits(x.a, x.b, x.c) == x.result);
    CHECK(math::to_bits(std::fmaf(math::from_bits(x.a), math::from_bits(x.b),
                                  math::from_bits(x.c))) == x.result);
  }
}

TEST_CASE("other rounding is found") {
  for (const int mode : {FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD}) {
    CAPTURE(mode);
    std::fesetround(mode);
    const ArithmeticFault fault = find_arithmetic_fault(math::exact_fma);
    std::fesetround(FE_TONEAREST);
    CHECK(fault == ArithmeticFault::rounding);
  }
}

#if defined(__x86_64__)
TEST_CASE("flushed results and flushed operands are found") {
  constexpr unsigned kFlushResults = 0x8000u, kFlushOperands = 0x0040u;
  const unsigned usual = _mm_getcsr();
  for (const unsigned flush : {kFlushResults, kFlushOperands}) {
    CAPTURE(flush);
    _mm_setcsr(usual | flush);
    const ArithmeticFault fault = find_arithmetic_fault(math::exact_fma);
    _mm_setcsr(usual);
    CHECK(fault == ArithmeticFault::subnormal);
  }
}
#endif

TEST_CASE("every fault has a text of its own that fits a status message") {
  std::set<std::string> texts;
  for (int i = 0; i <= static_cast<int>(ArithmeticFault::double_precision); i++) {
    const std::string text = arithmetic_fault_text(static_cast<ArithmeticFault>(i));
    CHECK(text.size() <= 60);
    texts.insert(text);
  }
  CHECK(texts.size() == 9);
}
