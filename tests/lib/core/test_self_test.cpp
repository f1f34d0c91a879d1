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

struct ArithmeticOnIntegers : CoreArithmetic {
  static float fma(float a, float b, float c) { return math::exact_fma(a, b, c); }
};

struct MultiplyAndAdd : CoreArithmetic {
  static float fma(float a, float b, float c) {
    const volatile float product = a * b;
    return product + c;
  }
};

struct ByWayOfDouble : CoreArithmetic {
  static float fma(float a, float b, float c) {
    return static_cast<float>(static_cast<double>(a) * static_cast<double>(b) +
                              static_cast<double>(c));
  }
};

struct ByReciprocal : CoreArithmetic {
  using CoreArithmetic::quotient;
  static float quotient(float a, float b) {
    const volatile float reciprocal = 1.0f / b;
    return a * reciprocal;
  }
};

// One step of Newton's method short.
struct RoughRoots : CoreArithmetic {
  using CoreArithmetic::square_root;
  static float square_root(float x) { return math::sqrt(x) * (1.0f + 0x1p-23f); }
};

struct LostNan : CoreArithmetic {
  static float sum(float a, float b) { return a == a ? a + b : 0.0f; }
};

struct OtherNan : CoreArithmetic {
  static float sum(float a, float b) {
    return a != a || b != b ? math::from_bits(0xffc00000u) : a + b;
  }
};

struct FloatForDouble : CoreArithmetic {
  using CoreArithmetic::quotient;
  static double quotient(double a, double b) {
    return static_cast<double>(static_cast<float>(a) / static_cast<float>(b));
  }
};

struct FloatRootOfDouble : CoreArithmetic {
  using CoreArithmetic::square_root;
  static double square_root(double x) {
    return static_cast<double>(math::sqrt(static_cast<float>(x)));
  }
};

}  // namespace

TEST_CASE("this machine has no fault, with either fused multiply-add") {
  CHECK(find_arithmetic_fault() == ArithmeticFault::none);
  CHECK(find_arithmetic_fault<ArithmeticOnIntegers>() == ArithmeticFault::none);
}

TEST_CASE("wrong operations are found") {
  CHECK(find_arithmetic_fault<MultiplyAndAdd>() == ArithmeticFault::fused_multiply_add);
  CHECK(find_arithmetic_fault<ByWayOfDouble>() == ArithmeticFault::fused_multiply_add);
  CHECK(find_arithmetic_fault<ByReciprocal>() == ArithmeticFault::division);
  CHECK(find_arithmetic_fault<RoughRoots>() == ArithmeticFault::square_root);
  CHECK(find_arithmetic_fault<LostNan>() == ArithmeticFault::not_a_number);
  CHECK(find_arithmetic_fault<OtherNan>() == ArithmeticFault::not_a_number);
  CHECK(find_arithmetic_fault<FloatForDouble>() == ArithmeticFault::double_precision);
  CHECK(find_arithmetic_fault<FloatRootOfDouble>() == ArithmeticFault::double_precision);
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
    const ArithmeticFault fault = find_arithmetic_fault<ArithmeticOnIntegers>();
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
    const ArithmeticFault fault = find_arithmetic_fault<ArithmeticOnIntegers>();
    _mm_setcsr(usual);
    CHECK(fault == ArithmeticFault::subnormal);
  }
}
#endif
