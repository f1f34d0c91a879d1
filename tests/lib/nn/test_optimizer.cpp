// Test: address
// Adam against PyTorch over ten steps (tests/goldens/generate.py), polyak averaging, limits.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "golden_file.h"
#include "numeric_differentiation.h"
#include "rltools/devices/generic.h"
#include "rltools/nn/mlp.h"

using namespace rlt;

namespace {

// 17 parameters.
template <class T>
using Network = Mlp<T, Dimensions<2, 3, 2>, Activation::relu, Activation::identity>;
constexpr std::size_t kCount = 17, kSteps = 10;
static_assert(Network<float>::kParameterCount == kCount);

// Each parameter on its own, as their gradients differ by 18 orders of magnitude, relative to its
// way since the start.
template <class T, class Step>
double difference_from_pytorch(const std::string& trace_name, Step&& step) {
  const golden::File file("optimizers.bin");
  const golden::Array &initial = file["initial"], &gradients = file["gradients"];
  const golden::Array& trace = file[trace_name + (sizeof(T) == 8 ? "/double" : "/float")];
  REQUIRE(initial.size() == kCount);
  REQUIRE(trace.size() == kSteps * kCount);
  Network<T> network, gradient;
  for (std::size_t i = 0; i < kCount; i++) network.values[i] = static_cast<T>(initial[i]);
  double largest = 0;
  for (std::size_t t = 0; t < kSteps; t++) {
    for (std::size_t i = 0; i < kCount; i++) {
      gradient.values[i] = static_cast<T>(gradients[t * kCount + i]);
    }
    step(gradient, network);
    for (std::size_t i = 0; i < kCount; i++) {
      const double expected = trace[t * kCount + i];
      const double size = std::abs(initial[i]) + std::abs(expected - initial[i]);
      largest = std::max(largest, std::abs(network.values[i] - expected) / size);
    }
  }
  return largest;
}

template <class T>
double adam_difference(const std::string& name, const AdamParameters<T>& parameters) {
  AdamState<Network<T>> state;
  initialize(state);
  return difference_from_pytorch<T>(name, [&](const Network<T>& gradient, Network<T>& network) {
    adam_step(Generic{}, parameters, state, gradient, network);
  });
}

}  // namespace

// Bounds: a few roundings in each of ten steps, 1.1e-16 in double and 6e-8 in float.
TEST_CASE_TEMPLATE("Adam takes PyTorch's steps", T, double, float) {
  const double bound = sizeof(T) == 8 ? 2e-15 : 1e-6;
  CHECK(adam_difference<T>("adam", {T(1e-3), T(0.9), T(0.999), T(1e-8)}) <= bound);
  CHECK(adam_difference<T>("other_adam", {T(0.25), T(0.5), T(0.75), T(1e-3)}) <= bound);
  // The bound tells a wrong epsilon and a missing bias correction.
  CHECK(adam_difference<T>("adam", {T(1e-3), T(0.9), T(0.999), T(1e-7)}) > bound);
  CHECK(adam_difference<T>("other_adam", {T(0.25), T(0.5), T(0.7499), T(1e-3)}) > bound);
}

TEST_CASE("Adam's step size does not fade, and no number overflows, over a million steps") {
  AdamState<Network<float>> state;
  initialize(state);
  Network<float> network, gradient;
  set_zero(Generic{}, network);
  for (float& value : gradient.values) value = 1.0f;
  float before = 0;
  for (int t = 0; t < 1000000; t++) {
    before = network.values[0];
    adam_step(Generic{}, {1e-3f, 0.9f, 0.999f, 1e-8f}, state, gradient, network);
    if (t == 99) {
      CHECK(state.decay_power[0] == doctest::Approx(std::pow(double(0.9f), 100)).epsilon(1e-14));
      CHECK(state.decay_power[1] == doctest::Approx(std::pow(double(0.999f), 100)).epsilon(1e-14));
    }
    if (t % 100000 == 0) {
      CHECK(before - network.values[0] == doctest::Approx(1e-3).epsilon(0.07));  // in float at 1000
    }
  }
  for (const double power : state.decay_power) CHECK(1.0 - power == 1.0);  // no correction is left
  CHECK(std::isfinite(network.values[0]));
}

TEST_CASE_TEMPLATE("Adam's moments below the smallest normal number are zero, and it is kept", T,
                   double, float) {
  constexpr T kSmallest = std::numeric_limits<T>::min();
  AdamStep<T> step{};
  step.beta1 = step.beta2 = T(0.5);
  step.learning_rate = step.inverse_sqrt_second_correction = step.epsilon = T(1);
  T parameter = 0, first = 4 * kSmallest, second = 4 * kSmallest;
  for (const T factor : {T(2), T(1), T(0)}) {  // half of the smallest would be subnormal
    adam_element(step, T(0), parameter, first, second);
    CHECK(first == factor * kSmallest);
    CHECK(second == factor * kSmallest);
  }
}

TEST_CASE("a gradient's norm is bounded over all of its networks") {
  const auto fill = [](Network<double>& network, double value) {
    for (double& element : network.values) element = value;
  };
  Network<double> first, second;
  const auto norm_of_both = [&] {
    return std::sqrt(sum_of_squares<kCount>(Generic{}, first.values) +
                     sum_of_squares<kCount>(Generic{}, second.values));
  };
  fill(first, 3);
  fill(second, -4);
  const double norm = 5 * std::sqrt(17.0);
  for (const double largest : {0.0, 21.0, norm}) {  // 0 is no bound, and the others are not reached
    CHECK(bound_norm(Generic{}, largest, first, second) == doctest::Approx(norm));
    CHECK(first.values[0] == 3);
    CHECK(second.values[16] == -4);
  }
  CHECK(bound_norm(Generic{}, 2.0, first, second) == doctest::Approx(norm));
  CHECK(norm_of_both() == doctest::Approx(2));
  CHECK(first.values[5] / second.values[7] == doctest::Approx(-0.75));
  fill(first, 0);
  fill(second, 0);
  CHECK(bound_norm(Generic{}, 2.0, first, second) == 0);
  CHECK(first.values[0] == 0);
}
