// Every kernel of a device against the reference, bit by bit, over odd shapes. Included by one test
// per device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "rltools/core/random.h"
#include "rltools/nn/mlp.h"
#include "rltools/nn/optimizer.h"

namespace kernel_agreement {

using namespace rlt;

inline std::vector<float> random_values(int count, std::uint32_t stream) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; i++) {
    values[static_cast<std::size_t>(i)] =
        uniform<float>({42, Purpose::shuffle, stream}, static_cast<std::uint32_t>(i), -1.0f, 1.0f);
  }
  return values;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Random values of which about one in `one_in` is zero, by turns 0 and -0; none where it is 0.
inline std::vector<float> values_with_zeros(int count, std::uint32_t stream, std::uint32_t one_in) {
  auto values = random_values(count, stream);
  for (std::size_t i = 0; one_in != 0 && i < values.size(); i++) {
    const auto word = static_cast<std::uint32_t>(uniform<float>(
        {43, Purpose::shuffle, stream}, static_cast<std::uint32_t>(i), 0.0f, 16777216.0f));
    if (word % one_in == 0) values[i] = word / one_in % 2 == 0 ? 0.0f : -0.0f;
  }
  return values;
}

// Of gradients the sign of a zero is unspecified (nn/dense.h).
inline bool same_gradients(std::vector<float> a, std::vector<float> b) {
  for (auto& value : a) value += 0.0f;
  for (auto& value : b) value += 0.0f;
  return same_bits(a, b);
}

// `one_in`: the share of zeros among the first factors, as kernels leave them out where they are
// many.
template <class Device, Activation A, int Batch, int In, int Out>
void check_dense(std::uint32_t one_in) {
  CAPTURE(static_cast<int>(A));
  CAPTURE(Batch);
  CAPTURE(In);
  CAPTURE(Out);
  CAPTURE(one_in);
  const auto weights = random_values(In * Out, 1), bias = values_with_zeros(Out, 2, one_in);
  const auto input = values_with_zeros(Batch * In, 3, one_in);
  const auto gradient = values_with_zeros(Batch * Out, 4, one_in);
  const Generic reference{};
  const Device device{};
  {
    std::vector<float> expected(Batch * Out), actual(Batch * Out);
    dense_forward<A, Batch, In, Out>(reference, weights.data(), bias.data(), input.data(),
                                     expected.data());
    dense_forward<A, Batch, In, Out>(device, weights.data(), bias.data(), input.data(),
                                     actual.data());
    CHECK(same_bits(expected, actual));
  }
  {
    auto expected = random_values(In * Out, 5), actual = expected;
    auto expected_bias = random_values(Out, 6), actual_bias = expected_bias;
    dense_backward_weights<Batch, In, Out>(reference, input.data(), gradient.data(),
                                           expected.data(), expected_bias.data());
    dense_backward_weights<Batch, In, Out>(device, input.data(), gradient.data(), actual.data(),
                                           actual_bias.data());
    CHECK(same_gradients(expected, actual));
    CHECK(same_gradients(expected_bias, actual_bias));
  }
  {
    std::vector<float> expected(Batch * In), actual(Batch * In);
    const float* none = nullptr;
    dense_backward_input<A, Batch, In, Out>(reference, weights.data(), gradient.data(), none,
                                            input.data(), expected.data());
    dense_backward_input<A, Batch, In, Out>(device, weights.data(), gradient.data(), none,
                                            input.data(), actual.data());
    CHECK(same_gradients(expected, actual));
  }
}

template <class Device, Activation A, int Batch, int In, int Out>
void check_dense() {
  check_dense<Device, A, Batch, In, Out>(0);   // none
  check_dense<Device, A, Batch, In, Out>(13);  // too few to be worth leaving out
  check_dense<Device, A, Batch, In, Out>(2);   // as behind a ReLU
  check_dense<Device, A, Batch, In, Out>(1);   // nothing else
}

// The same bits, or NaN in both (which NaN an operation gives is not defined).
inline bool same_numbers(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return (x != x && y != y) || std::memcmp(&x, &y, sizeof x) == 0;
  });
}

// Mostly zeros as first factors, and sums that are -0 or reach it by underflow; then factors that
// are infinite or undefined.
template <class Device, Activation A>
void check_extreme_sums(const std::vector<float>& special) {
  CAPTURE(static_cast<int>(A));
  constexpr int kBatch = 20, kIn = 64, kOut = 64;
  const auto weights = random_values(kIn * kOut, 13);
  const std::vector<float> bias(kOut, -0.0f);
  std::vector<float> input(kBatch * kIn, -0.0f), expected(kBatch * kOut), actual(kBatch * kOut);
  for (std::size_t i = 0; i < input.size(); i += 7) input[i] = special[i / 7 % special.size()];
  dense_forward<A, kBatch, kIn, kOut>(Generic{}, weights.data(), bias.data(), input.data(),
                                      expected.data());
  dense_forward<A, kBatch, kIn, kOut>(Device{}, weights.data(), bias.data(), input.data(),
                                      actual.data());
  CHECK(same_numbers(expected, actual));
  CHECK(std::none_of(expected.begin(), expected.end(),
                     [](float x) { return x == 0.0f && std::signbit(x); }));
  const auto previous = random_values(kBatch * kIn, 14);
  const float* none = nullptr;
  dense_backward_input<A, kBatch, kIn, kOut>(Generic{}, weights.data(), input.data(), none,
                                             previous.data(), expected.data());
  dense_backward_input<A, kBatch, kIn, kOut>(Device{}, weights.data(), input.data(), none,
                                             previous.data(), actual.data());
  for (auto& value : expected) value += 0.0f;
  for (auto& value : actual) value += 0.0f;
  CHECK(same_numbers(expected, actual));
}

template <class Device>
void check_extreme_sums() {
  for (const auto& special : {std::vector<float>{0.0f, 1e-45f, -1e-45f, -0.0f},
                              std::vector<float>{1e38f, INFINITY, NAN}}) {
    check_extreme_sums<Device, Activation::identity>(special);
    check_extreme_sums<Device, Activation::relu>(special);
    check_extreme_sums<Device, Activation::tanh>(special);
  }
}

template <class Device, Activation A, int Count>
void check_activation() {
  CAPTURE(static_cast<int>(A));
  auto input = random_values(Count, 7);
  const float special[] = {0.0f, -0.0f, 1e-45f, -1e-45f, INFINITY, -INFINITY,
                           NAN,  -NAN,  1e-38f, -1e-38f, 3.4e38f,  -3.4e38f};
  std::copy(std::begin(special), std::end(special), input.begin());
  std::vector<float> expected(Count), actual(Count);
  activation_forward<A, Count>(Generic{}, input.data(), expected.data());
  activation_forward<A, Count>(Device{}, input.data(), actual.data());
  CHECK(same_bits(expected, actual));
  auto expected_gradient = random_values(Count, 8), actual_gradient = expected_gradient;
  activation_backward<A, Count>(Generic{}, input.data(), expected.data(), expected_gradient.data());
  activation_backward<A, Count>(Device{}, input.data(), actual.data(), actual_gradient.data());
  CHECK(same_bits(expected_gradient, actual_gradient));
}

template <class Device, int Count>
void check_optimizer() {
  const AdamStep<float> step{0.9f, 0.1f, 0.999f, 0.001f, 0.003f, 2.5f, 1e-8f};
  auto gradient = random_values(Count, 9);
  auto first = random_values(Count, 10), second = random_values(Count, 11);
  for (auto& value : second) value = value * value;
  // Moments around the smallest normal number, which become zero below it.
  for (std::size_t i = 0; i < first.size(); i += 3) {
    gradient[i] = i % 2 == 0 ? 0.0f : -0.0f;
    first[i] *= 2e-38f, second[i] *= 2e-38f;
  }
  auto parameters = random_values(Count, 12);
  auto other_first = first, other_second = second, other_parameters = parameters;
  adam_update<Count>(Generic{}, step, gradient.data(), parameters.data(), first.data(),
                     second.data());
  adam_update<Count>(Device{}, step, gradient.data(), other_parameters.data(), other_first.data(),
                     other_second.data());
  CHECK(same_bits(parameters, other_parameters));
  CHECK(same_bits(first, other_first));
  CHECK(same_bits(second, other_second));
  polyak_update<Count>(Generic{}, 0.005f, first.data(), parameters.data());
  polyak_update<Count>(Device{}, 0.005f, first.data(), other_parameters.data());
  CHECK(same_bits(parameters, other_parameters));
}

constexpr int kSizes[] = {1, 3, 4, 13, 64, 100, 257};

// Every pair of (batch, in), (batch, out) and (in, out) among the sizes, in 49 instead of 343
// combinations.
template <class Device, int Batch, std::size_t... In>
void check_batch(std::index_sequence<In...>) {
  (check_dense<Device, Activation::relu, kSizes[Batch], kSizes[In], kSizes[(In * 2 + Batch) % 7]>(),
   ...);
}
template <class Device, std::size_t... Batch>
void check_all(std::index_sequence<Batch...>) {
  (check_batch<Device, static_cast<int>(Batch)>(std::make_index_sequence<7>()), ...);
}

// Each size once in each place.
template <class Device, Activation A, std::size_t... Index>
void check_seven(std::index_sequence<Index...>) {
  (check_dense<Device, A, kSizes[Index], kSizes[(Index + 4) % 7], kSizes[(Index * 2 + 3) % 7]>(),
   ...);
}

// Seven shapes, for kernels that differ from tested ones in the width of their vectors alone.
template <class Device>
void run_briefly() {
  check_seven<Device, Activation::relu>(std::make_index_sequence<7>());
  check_dense<Device, Activation::tanh, 20, 64, 64>();
  check_extreme_sums<Device>();
}

template <class Device>
void run() {
  check_all<Device>(std::make_index_sequence<7>());
  check_dense<Device, Activation::identity, 20, 64, 64>();
  check_dense<Device, Activation::tanh, 20, 64, 64>();
  check_dense<Device, Activation::tanh, 100, 13, 4>();
  check_extreme_sums<Device>();
  check_activation<Device, Activation::identity, 257>();
  check_activation<Device, Activation::relu, 257>();
  check_activation<Device, Activation::gelu, 257>();
  check_activation<Device, Activation::tanh, 257>();
  check_activation<Device, Activation::sigmoid, 257>();
  check_activation<Device, Activation::softplus, 257>();
  check_optimizer<Device, 4545>();
  check_optimizer<Device, 13>();
}

}  // namespace kernel_agreement
