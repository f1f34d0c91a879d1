// Activation functions: values against their definitions, derivatives against central differences.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "numeric_differentiation.h"
#include "rltools/devices/generic.h"

using namespace rlt;

namespace {

template <Activation A>
struct Function;
template <>
struct Function<Activation::identity> {
  static constexpr const char* kName = "identity";
  static long double value(long double x) { return x; }
};
template <>
struct Function<Activation::relu> {
  static constexpr const char* kName = "relu";
  static long double value(long double x) { return x > 0 ? x : 0; }
};
template <>
struct Function<Activation::gelu> {
  static constexpr const char* kName = "gelu";
  // x times the normal distribution function, from erfc so that the tail keeps its digits
  static long double value(long double x) { return x * erfcl(-x / sqrtl(2)) / 2; }
};
template <>
struct Function<Activation::tanh> {
  static constexpr const char* kName = "tanh";
  static long double value(long double x) { return tanhl(x); }
};
template <>
struct Function<Activation::sigmoid> {
  static constexpr const char* kName = "sigmoid";
  static long double value(long double x) { return 1 / (1 + expl(-x)); }
};
template <>
struct Function<Activation::softplus> {
  static constexpr const char* kName = "softplus";
  static long double value(long double x) { return log1pl(expl(x)); }
};

template <>
struct Function<Activation::elu> {
  static constexpr const char* kName = "elu";
  static long double value(long double x) { return x > 0 ? x : expm1l(x); }
};
template <>
struct Function<Activation::silu> {
  static constexpr const char* kName = "silu";
  static long double value(long double x) { return x / (1 + expl(-x)); }
};
template <>
struct Function<Activation::hardtanh> {
  static constexpr const char* kName = "hardtanh";
  static long double value(long double x) { return x < -1 ? -1 : x > 1 ? 1 : x; }
};

// -8 to 8, and none within two steps of the kinks of relu and hardtanh.
std::vector<double> grid() {
  std::vector<double> points;
  for (int i = -1000; i <= 1000; i++) points.push_back((i + 0.5) * 0.008);
  return points;
}

template <Activation A, class T>
double largest_value_error() {
  double largest = 0;
  for (const double x : grid()) {
    const double expected = static_cast<double>(Function<A>::value(static_cast<T>(x)));
    const double actual = activation_value<A>(static_cast<T>(x));
    largest = std::max(largest, std::abs(actual - expected) / std::max(1.0, std::abs(expected)));
  }
  return largest;
}

template <Activation A>
void check() {
  INFO(Function<A>::kName);
  CHECK(largest_value_error<A, double>() <= 4e-16);
  CHECK(largest_value_error<A, float>() <= 2.5e-7);

  constexpr int kCount = 2001;
  const std::vector<double> input = grid();
  REQUIRE(input.size() == kCount);
  std::vector<double> output(kCount), gradient(kCount), expected(kCount);
  activation_forward<A, kCount>(Generic{}, input.data(), output.data());
  const std::vector<double> output_gradient = numeric::random_values(kCount, 1);
  gradient = output_gradient;
  activation_backward<A, kCount>(Generic{}, needs_pre_activation(A) ? input.data() : nullptr,
                                 output.data(), gradient.data());
  for (std::size_t i = 0; i < kCount; i++) {
    double x = input[i];
    expected[i] =
        output_gradient[i] * numeric::derivative(x, [&] { return activation_value<A>(x); });
  }
  CHECK(numeric::relative_difference(gradient, expected) <= numeric::kTolerance);

  // The same in float, from the derivatives in double.
  std::vector<float> input_float(input.begin(), input.end()), output_float(kCount);
  std::vector<float> gradient_float(output_gradient.begin(), output_gradient.end());
  activation_forward<A, kCount>(Generic{}, input_float.data(), output_float.data());
  activation_backward<A, kCount>(Generic{}, input_float.data(), output_float.data(),
                                 gradient_float.data());
  CHECK(numeric::relative_difference(gradient_float, gradient) <= 1e-6);

  // In place.
  std::vector<double> same = input;
  activation_forward<A, kCount>(Generic{}, same.data(), same.data());
  CHECK(same == output);
}

template <Activation A, class T>
void check_extremes() {
  INFO(Function<A>::kName);
  const T infinity = std::numeric_limits<T>::infinity();
  CHECK(std::isnan(activation_value<A>(std::numeric_limits<T>::quiet_NaN())));
  for (const T x : {T(-1e4), T(-200), T(200), T(1e4), -infinity, infinity}) {
    CAPTURE(x);
    const T y = activation_value<A>(x);
    if ((A == Activation::gelu || A == Activation::silu) && x == -infinity) {
      CHECK(std::isnan(y));  // minus infinity times zero
      continue;
    }
    if (std::isinf(x)) {
      const bool is_from_minus_one = A == Activation::tanh || A == Activation::hardtanh;
      const bool is_bounded_above = is_from_minus_one || A == Activation::sigmoid;
      if (x > 0) CHECK(y == (is_bounded_above ? T(1) : infinity));
      const bool tends_to_minus_one = is_from_minus_one || A == Activation::elu;
      if (x < 0 && tends_to_minus_one) CHECK(y == T(-1));
      if (x < 0 && A == Activation::identity) CHECK(y == -infinity);
      if (x < 0 && !tends_to_minus_one && A != Activation::identity) CHECK(y == T(0));
      continue;
    }
    CHECK(y == doctest::Approx(static_cast<double>(Function<A>::value(x))));
    const T derivative = activation_derivative<A>(x, y);
    const bool saturates =
        A == Activation::tanh || A == Activation::sigmoid || A == Activation::hardtanh;
    const T expected = A == Activation::identity ? T(1) : x > 0 && !saturates ? T(1) : T(0);
    CHECK(std::abs(derivative - expected) <= T(1e-30));
  }
}

}  // namespace

TEST_CASE("activations have the values and the derivatives of their definitions") {
  check<Activation::identity>();
  check<Activation::relu>();
  check<Activation::gelu>();
  check<Activation::tanh>();
  check<Activation::sigmoid>();
  check<Activation::softplus>();
  check<Activation::elu>();
  check<Activation::silu>();
  check<Activation::hardtanh>();
}

TEST_CASE_TEMPLATE("activations stay finite far out, and a NaN passes through", T, float, double) {
  check_extremes<Activation::identity, T>();
  check_extremes<Activation::relu, T>();
  check_extremes<Activation::gelu, T>();
  check_extremes<Activation::tanh, T>();
  check_extremes<Activation::sigmoid, T>();
  check_extremes<Activation::softplus, T>();
  check_extremes<Activation::elu, T>();
  check_extremes<Activation::silu, T>();
  check_extremes<Activation::hardtanh, T>();
}

TEST_CASE_TEMPLATE("relu's zero has no sign, and no gradient passes where it is inactive", T, float,
                   double) {
  for (const T x : {T(0), -T(0), T(-1)}) {
    const T y = activation_value<Activation::relu>(x);
    CHECK(y == T(0));
    CHECK_FALSE(std::signbit(y));
  }
  const T infinity = std::numeric_limits<T>::infinity();
  const T output[4] = {T(0), T(0), T(0), T(2)};
  T gradient[4] = {infinity, -infinity, std::numeric_limits<T>::quiet_NaN(), infinity};
  activation_backward<Activation::relu, 4>(Generic{}, static_cast<const T*>(nullptr), output,
                                           gradient);
  for (int i = 0; i < 3; i++) CHECK(gradient[i] == T(0));
  CHECK(gradient[3] == infinity);
}
