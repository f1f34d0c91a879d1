#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "agreement/reference.h"
#include "kernel_agreement.h"
#include "rltools/core/random.h"

namespace kernel_agreement {

std::vector<float> random_values(int count, std::uint32_t stream) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; i++) {
    values[static_cast<std::size_t>(i)] =
        uniform<float>({42, Purpose::shuffle, stream}, static_cast<std::uint32_t>(i), -1.0f, 1.0f);
  }
  return values;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

bool same_numbers(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return (x != x && y != y) || std::memcmp(&x, &y, sizeof x) == 0;
  });
}

namespace {

std::vector<float> values_of(int count, float value = 0.0f) {
  return std::vector<float>(static_cast<std::size_t>(count), value);
}

// Random values of which about one in `one_in` is zero, by turns 0 and -0; none where it is 0.
std::vector<float> values_with_zeros(int count, std::uint32_t stream, std::uint32_t one_in) {
  auto values = random_values(count, stream);
  for (std::size_t i = 0; one_in != 0 && i < values.size(); i++) {
    const auto word = static_cast<std::uint32_t>(uniform<float>(
        {43, Purpose::shuffle, stream}, static_cast<std::uint32_t>(i), 0.0f, 16777216.0f));
    if (word % one_in == 0) values[i] = word / one_in % 2 == 0 ? 0.0f : -0.0f;
  }
  return values;
}

void remove_signs_of_zeros(std::vector<float>& values) {
  for (auto& value : values) value += 0.0f;
}

// Of gradients the sign of a zero is unspecified (nn/dense.h).
bool same_gradients(std::vector<float> a, std::vector<float> b) {
  remove_signs_of_zeros(a);
  remove_signs_of_zeros(b);
  return same_bits(a, b);
}

// `one_in`: the share of zeros among the first factors, as kernels leave them out where they are
// many.
void check_dense(const DenseKernels& reference, const DenseKernels& device, std::uint32_t one_in) {
  CAPTURE(one_in);
  const int batch = device.batch, in = device.in, out = device.out;
  const auto weights = random_values(in * out, 1), bias = values_with_zeros(out, 2, one_in);
  const auto input = values_with_zeros(batch * in, 3, one_in);
  const auto gradient = values_with_zeros(batch * out, 4, one_in);
  {
    auto expected = values_of(batch * out), actual = expected;
    reference.forward(weights.data(), bias.data(), input.data(), expected.data());
    device.forward(weights.data(), bias.data(), input.data(), actual.data());
    CHECK(same_bits(expected, actual));
  }
  {
    auto expected = random_values(in * out, 5), actual = expected;
    auto expected_bias = random_values(out, 6), actual_bias = expected_bias;
    reference.backward_weights(input.data(), gradient.data(), expected.data(),
                               expected_bias.data());
    device.backward_weights(input.data(), gradient.data(), actual.data(), actual_bias.data());
    CHECK(same_gradients(expected, actual));
    CHECK(same_gradients(expected_bias, actual_bias));
  }
  {
    auto expected = values_of(batch * in), actual = expected;
    reference.backward_input(weights.data(), gradient.data(), nullptr, input.data(),
                             expected.data());
    device.backward_input(weights.data(), gradient.data(), nullptr, input.data(), actual.data());
    CHECK(same_gradients(expected, actual));
  }
}

// Mostly zeros as first factors, and sums that are -0 or reach it by underflow; then factors that
// are infinite or undefined.
void check_extreme_sums(const DenseKernels& reference, const DenseKernels& device,
                        const std::vector<float>& special) {
  REQUIRE(device.in == device.out);  // inputs are gradients, too
  const int batch = device.batch, in = device.in;
  const auto weights = random_values(in * in, 13), bias = values_of(in, -0.0f);
  auto input = values_of(batch * in, -0.0f), expected = values_of(batch * in), actual = expected;
  for (std::size_t i = 0; i < input.size(); i += 7) input[i] = special[i / 7 % special.size()];
  reference.forward(weights.data(), bias.data(), input.data(), expected.data());
  device.forward(weights.data(), bias.data(), input.data(), actual.data());
  CHECK(same_numbers(expected, actual));
  CHECK(std::none_of(expected.begin(), expected.end(),
                     [](float x) { return x == 0.0f && std::signbit(x); }));
  const auto previous = random_values(batch * in, 14);
  reference.backward_input(weights.data(), input.data(), nullptr, previous.data(), expected.data());
  device.backward_input(weights.data(), input.data(), nullptr, previous.data(), actual.data());
  remove_signs_of_zeros(expected);
  remove_signs_of_zeros(actual);
  CHECK(same_numbers(expected, actual));
}

}  // namespace

// A shape as doctest shows it beside what failed.
#define CAPTURE_SHAPE(device)                   \
  CAPTURE(static_cast<int>(device.activation)); \
  CAPTURE(device.batch);                        \
  CAPTURE(device.in);                           \
  CAPTURE(device.out)

void check_dense(const DenseKernels& device) {
  CAPTURE_SHAPE(device);
  const DenseKernels* reference = reference_of(device);
  REQUIRE(reference != nullptr);
  check_dense(*reference, device, 0);   // none
  check_dense(*reference, device, 13);  // too few to be worth leaving out
  check_dense(*reference, device, 2);   // as behind a ReLU
  check_dense(*reference, device, 1);   // nothing else
}

void check_extreme_sums(const DenseKernels& device) {
  CAPTURE_SHAPE(device);
  const DenseKernels* reference = reference_of(device);
  REQUIRE(reference != nullptr);
  check_extreme_sums(*reference, device, {0.0f, 1e-45f, -1e-45f, -0.0f});
  check_extreme_sums(*reference, device, {1e38f, INFINITY, NAN});
}

void check_activation(const ActivationKernels& device) {
  CAPTURE(static_cast<int>(device.activation));
  CAPTURE(device.count);
  const ActivationKernels* reference = reference_of(device);
  REQUIRE(reference != nullptr);
  auto input = random_values(device.count, 7);
  // The last two are the NaN beside infinity, of either sign.
  const float special[] = {
      0.0f,
      -0.0f,
      1e-45f,
      -1e-45f,
      INFINITY,
      -INFINITY,
      NAN,
      -NAN,
      1e-38f,
      -1e-38f,
      3.4e38f,
      -3.4e38f,
      math::from_bits(0x7f800001u),
      math::from_bits(0xff800001u),
  };
  std::copy(std::begin(special), std::end(special), input.begin());
  auto expected = values_of(device.count), actual = expected;
  reference->forward(input.data(), expected.data());
  device.forward(input.data(), actual.data());
  CHECK(same_numbers(expected, actual));
  auto expected_gradient = random_values(device.count, 8), actual_gradient = expected_gradient;
  reference->backward(input.data(), expected.data(), expected_gradient.data());
  device.backward(input.data(), actual.data(), actual_gradient.data());
  CHECK(same_numbers(expected_gradient, actual_gradient));
}

void check_optimizer(const OptimizerKernels& device) {
  CAPTURE(device.count);
  const OptimizerKernels* reference = reference_of(device);
  REQUIRE(reference != nullptr);
  const AdamStep<float> step{0.9f, 0.1f, 0.999f, 0.001f, 0.003f, 2.5f, 1e-8f};
  auto gradient = random_values(device.count, 9);
  auto first = random_values(device.count, 10), second = random_values(device.count, 11);
  for (auto& value : second) value = value * value;
  // Moments around the smallest normal number, which become zero below it.
  for (std::size_t i = 0; i < first.size(); i += 3) {
    gradient[i] = i % 2 == 0 ? 0.0f : -0.0f;
    first[i] *= 2e-38f, second[i] *= 2e-38f;
  }
  auto parameters = random_values(device.count, 12);
  auto other_first = first, other_second = second, other_parameters = parameters;
  reference->adam_update(step, gradient.data(), parameters.data(), first.data(), second.data());
  device.adam_update(step, gradient.data(), other_parameters.data(), other_first.data(),
                     other_second.data());
  CHECK(same_bits(parameters, other_parameters));
  CHECK(same_bits(first, other_first));
  CHECK(same_bits(second, other_second));
  reference->polyak_update(0.005f, first.data(), parameters.data());
  device.polyak_update(0.005f, first.data(), other_parameters.data());
  CHECK(same_bits(parameters, other_parameters));
}

void check_recurrent(const RecurrentKernels& device) {
  CAPTURE(device.width);
  const RecurrentKernels* reference = reference_of(device);
  REQUIRE(reference != nullptr);
  const int rows = kWindows * kWindowSteps;
  const auto parameters = random_values(device.parameters, 15);
  const auto input = values_with_zeros(rows * kRecurrentInput, 16, 3);
  const auto slope = values_with_zeros(rows * kRecurrentOutput, 17, 3);
  std::vector<float> expected, actual, expected_gradients, actual_gradients;
  reference->run(parameters.data(), input.data(), slope.data(), expected, expected_gradients);
  device.run(parameters.data(), input.data(), slope.data(), actual, actual_gradients);
  CHECK(same_bits(expected, actual));
  CHECK(same_gradients(expected_gradients, actual_gradients));
}

}  // namespace kernel_agreement
