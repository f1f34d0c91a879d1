// Test: -O1
// core/math.h: the error against double precision over a dense sample of all floats (over all of
// them: exhaustive_math.cpp); equal bits from vectorized, scalar and other devices' code; edges.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "math_sample.h"
#include "rltools/core/math.h"
#include "ulp_error.h"

namespace {

namespace math = rlt::math;

constexpr float kInfinity = math::kInfinity;
constexpr float kSmallest = 0x1p-149f;
constexpr float kLargest = std::numeric_limits<float>::max();

bool same_bits(float a, float b) { return math::to_bits(a) == math::to_bits(b); }

float next(float x) { return std::nextafter(x, kInfinity); }

const std::vector<float>& sample() {
  static const std::vector<float> arguments = [] {
    std::vector<float> x(math_sample::kCount);
    for (std::uint32_t i = 0; i < math_sample::kCount; ++i) x[i] = math_sample::argument(i);
    return x;
  }();
  return arguments;
}

std::vector<float> apply(const ulp_error::Function& function) {
  std::vector<float> y(sample().size());
  function.apply(sample().data(), y.data(), static_cast<int>(y.size()));
  return y;
}

// The address of a function that is not inlined: one scalar evaluation per call.
template <float (*kFunction)(float)>
[[gnu::noinline]] float scalar(float x) {
  return kFunction(x);
}

template <float (*kFunction)(float)>
void check_scalar(const char* name) {
  CAPTURE(name);
  const std::vector<float>& x = sample();
  std::vector<float> y(x.size());
  ulp_error::apply<kFunction>(x.data(), y.data(), static_cast<int>(x.size()));
  float (*volatile call)(float) = scalar<kFunction>;
  std::size_t different = 0;
  for (std::size_t i = 0; i < x.size(); ++i) different += !same_bits(call(x[i]), y[i]);
  CHECK(different == 0);
}

TEST_CASE("every function is within 2 ulp over the sample") {
  for (const ulp_error::Function& function : ulp_error::kFunctions) {
    const std::vector<float> y = apply(function);
    double worst = -1.0;
    float worst_argument = 0.0f;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const float x = sample()[i];
      const double error = ulp_error::ulp_error(y[i], function.exact(static_cast<double>(x)));
      if (error > worst) {
        worst = error;
        worst_argument = x;
      }
    }
    const std::string name = function.name;
    CAPTURE(name);
    CAPTURE(worst_argument);
    CHECK(worst <= ulp_error::kLargestAllowed);
    CHECK(worst > 0.4);  // no float function is exact: a smaller figure would be a broken measure
  }
}

TEST_CASE("vectorized loops and scalar calls give the same bits") {
  check_scalar<math::exp>("exp");
  check_scalar<math::log>("log");
  check_scalar<math::log1p>("log1p");
  check_scalar<math::tanh>("tanh");
  check_scalar<math::sigmoid>("sigmoid");
  check_scalar<math::softplus>("softplus");
  check_scalar<math::elu>("elu");
  check_scalar<math::erf>("erf");
  check_scalar<math::sin>("sin");
  check_scalar<math::cos>("cos");
}

TEST_CASE("the sample has the bits of every other device") {
  for (const math_sample::Sample& part : math_sample::kSamples) {
    const std::string name = part.name;
    CAPTURE(name);
    CHECK(part.crc() == part.expected);
  }
}

TEST_CASE("values that are exact, signs of zero, infinities") {
  CHECK(math::exp(0.0f) == 1.0f);
  CHECK(math::exp(-0.0f) == 1.0f);
  CHECK(math::exp(kInfinity) == kInfinity);
  CHECK(same_bits(math::exp(-kInfinity), 0.0f));
  CHECK(math::exp(0x1.62e42ep6f) < kInfinity);     // the last before overflow
  CHECK(math::exp(0x1.62e430p6f) == kInfinity);    // the first with it
  CHECK(math::exp(-100.0f) == 27.0f * kSmallest);  // exactly 26.55 times
  CHECK(math::exp(-103.0f) == kSmallest);
  CHECK(same_bits(math::exp(-103.98f), 0.0f));

  CHECK(same_bits(math::log(1.0f), 0.0f));
  CHECK(math::log(0.0f) == -kInfinity);
  CHECK(math::log(-0.0f) == -kInfinity);
  CHECK(math::log(kInfinity) == kInfinity);
  CHECK(math::log1p(-1.0f) == -kInfinity);
  CHECK(math::log1p(kInfinity) == kInfinity);

  CHECK(math::tanh(kInfinity) == 1.0f);
  CHECK(math::tanh(-kInfinity) == -1.0f);
  CHECK(math::tanh(9.01f) < 1.0f);
  CHECK(math::erf(kInfinity) == 1.0f);
  CHECK(math::erf(-kInfinity) == -1.0f);
  CHECK(math::sigmoid(0.0f) == 0.5f);
  CHECK(math::sigmoid(kInfinity) == 1.0f);
  CHECK(same_bits(math::sigmoid(-kInfinity), 0.0f));
  CHECK(math::softplus(kInfinity) == kInfinity);
  CHECK(math::softplus(kLargest) == kLargest);
  CHECK(same_bits(math::softplus(-kInfinity), 0.0f));
  CHECK(same_bits(math::elu(-kInfinity), -1.0f));
  CHECK(math::elu(kInfinity) == kInfinity);
  CHECK(same_bits(math::elu(-0.0f), 0.0f));
  CHECK(math::elu(kLargest) == kLargest);
  CHECK(math::elu(-16.0f) > -1.0f);
  CHECK(math::cos(0.0f) == 1.0f);

  for (const float zero : {0.0f, -0.0f}) {
    CHECK(same_bits(math::sin(zero), zero));
    CHECK(same_bits(math::tanh(zero), zero));
    CHECK(same_bits(math::erf(zero), zero));
    CHECK(same_bits(math::log1p(zero), zero));
  }
  for (const float tiny : {kSmallest, 5.0f * kSmallest, 0x1.8p-130f, 0x1p-126f, 0x1p-60f}) {
    for (const float x : {tiny, -tiny}) {
      CHECK(math::sin(x) == x);
      CHECK(math::tanh(x) == x);
      CHECK(math::log1p(x) == x);
      CHECK(math::elu(x) == x);
      CHECK(math::exp(x) == 1.0f);
      CHECK(math::sigmoid(x) == 0.5f);
    }
  }
}

TEST_CASE("not a number: from itself, outside of the domain, beyond the reduction's reach") {
  const std::uint32_t quiet = math::to_bits(math::kQuietNan);
  CHECK(quiet == 0x7fc00000u);
  for (const std::uint32_t bits :
       {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xff812345u, 0x7fffffffu}) {
    const float nan = math::from_bits(bits);
    for (const ulp_error::Function& function : ulp_error::kFunctions) {
      const std::string name = function.name;
      CAPTURE(name);
      CAPTURE(bits);
      float y;
      function.apply(&nan, &y, 1);
      CHECK(math::to_bits(y) == quiet);
    }
  }
  CHECK(math::to_bits(math::log(-kSmallest)) == quiet);
  CHECK(math::to_bits(math::log(-kInfinity)) == quiet);
  CHECK(math::to_bits(math::log1p(std::nextafter(-1.0f, -2.0f))) == quiet);
  for (const float x : {next(65536.0f), 1e10f, kLargest, kInfinity}) {
    for (const float argument : {x, -x}) {
      CHECK(math::to_bits(math::sin(argument)) == quiet);
      CHECK(math::to_bits(math::cos(argument)) == quiet);
    }
  }
  CHECK(math::absolute(math::sin(math::kTrigonometricLimit)) <= 1.0f);
  CHECK(math::absolute(math::cos(-math::kTrigonometricLimit)) <= 1.0f);
}

TEST_CASE("results stay in range, and the two halves of sincos agree with sin and cos") {
  std::size_t outside = 0, asymmetric = 0, disagreeing = 0;
  for (const float x : sample()) {
    if (x != x) continue;
    const float tanh = math::tanh(x), erf = math::erf(x), sigmoid = math::sigmoid(x);
    outside += math::absolute(tanh) > 1.0f || math::absolute(erf) > 1.0f ||
               math::absolute(tanh) > math::absolute(x);
    outside += sigmoid < 0.0f || sigmoid > 1.0f || math::elu(x) < -1.0f;
    outside += math::softplus(x) < math::maximum(x, 0.0f) || math::exp(x) < 0.0f;
    const auto both = math::sincos(x);
    outside += math::absolute(both.sine) > 1.0f || math::absolute(both.cosine) > 1.0f;
    asymmetric += !same_bits(math::tanh(-x), -tanh) || !same_bits(math::erf(-x), -erf);
    if (math::absolute(x) <= math::kTrigonometricLimit) {
      asymmetric += !same_bits(math::sin(-x), -both.sine) || !same_bits(math::cos(-x), both.cosine);
    }
    disagreeing += !same_bits(both.sine, math::sin(x)) || !same_bits(both.cosine, math::cos(x));
  }
  CHECK(outside == 0);
  CHECK(asymmetric == 0);
  CHECK(disagreeing == 0);
}

TEST_CASE("exact operations") {
  const float x = 1.0f + 0x1p-12f;
  CHECK(math::fma(x, x, -(1.0f + 0x1p-11f)) == 0x1p-24f);  // 0 if the product rounded first
  CHECK(math::fma(1.0 + 0x1p-30, 1.0 + 0x1p-30, -(1.0 + 0x1p-29)) == 0x1p-60);
  CHECK(math::sqrt(2.0f) == 0x1.6a09e6p0f);
  CHECK(math::sqrt(2.0) == 0x1.6a09e667f3bcdp0);
  CHECK(same_bits(math::sqrt(-0.0f), -0.0f));
  CHECK(math::floor(-0.5f) == -1.0f);
  CHECK(math::floor(2.75) == 2.0);
  CHECK(math::floor(8388609.0f) == 8388609.0f);
  CHECK(same_bits(math::floor(-0.0f), -0.0f));
  CHECK(same_bits(math::absolute(-0.0f), 0.0f));
  CHECK(math::absolute(-2.5) == 2.5);

  const float nan = math::kQuietNan;
  CHECK(math::minimum(1.0f, 2.0f) == 1.0f);
  CHECK(math::maximum(1.0, 2.0) == 2.0);
  CHECK(math::minimum(nan, 2.0f) == 2.0f);
  CHECK(math::to_bits(math::minimum(2.0f, nan)) == math::to_bits(nan));
  CHECK(math::maximum(nan, 2.0f) == 2.0f);
  CHECK(math::to_bits(math::maximum(2.0f, nan)) == math::to_bits(nan));
  CHECK(math::clamp(0.5f, -1.0f, 1.0f) == 0.5f);
  CHECK(math::clamp(-7.0f, -1.0f, 1.0f) == -1.0f);
  CHECK(math::clamp(7.0, -1.0, 1.0) == 1.0);
  CHECK(math::clamp(kInfinity, -1.0f, 1.0f) == 1.0f);
  CHECK(math::to_bits(math::clamp(nan, -1.0f, 1.0f)) == math::to_bits(nan));
}

TEST_CASE("double precision is the C library's") {
  for (const double x : {-700.0, -30.5, -0.75, -1e-20, 0.0, 1e-9, 0.3, 1.0, 4.5, 30.0, 700.0}) {
    CAPTURE(x);
    CHECK(math::exp(x) == std::exp(x));
    CHECK(math::tanh(x) == std::tanh(x));
    CHECK(math::erf(x) == std::erf(x));
    CHECK(math::sin(x) == std::sin(x));
    CHECK(math::cos(x) == std::cos(x));
    CHECK(math::sincos(x).sine == std::sin(x));
    CHECK(math::sincos(x).cosine == std::cos(x));
    CHECK(math::log1p(std::fabs(x)) == std::log1p(std::fabs(x)));
    CHECK(math::log(1.0 + std::fabs(x)) == std::log(1.0 + std::fabs(x)));
    CHECK(math::sigmoid(x) == doctest::Approx(ulp_error::exact_sigmoid(x)).epsilon(1e-15));
    CHECK(math::elu(x) == (x > 0.0 ? x : std::expm1(x)));
    CHECK(math::softplus(x) == doctest::Approx(ulp_error::exact_softplus(x)).epsilon(1e-15));
  }
  CHECK(math::sigmoid(-1000.0) == 0.0);
  CHECK(math::sigmoid(1000.0) == 1.0);
  CHECK(math::softplus(1000.0) == 1000.0);
  CHECK(std::isnan(math::softplus(std::nan(""))));
  CHECK(std::isnan(math::sigmoid(std::nan(""))));
}

}  // namespace
