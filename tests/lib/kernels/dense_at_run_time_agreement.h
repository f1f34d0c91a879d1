// The layer of run-time shape on a device against dense_forward()'s reference, bit by bit, over odd
// shapes. Included by one test per device.
#pragma once

#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "rltools/core/random.h"
#include "rltools/nn/dense.h"
#include "rltools/nn/dense_at_run_time.h"

namespace dense_at_run_time_agreement {

using namespace rlt;

// The kernel that a device selects.
template <class Device>
using Selected = decltype(dense_forward_at_run_time(
    Device{}, Activation::relu, 3, 64, std::declval<const float*>(), std::declval<const float*>(),
    std::declval<const float*>(), std::declval<float*>()));

// About one in `one_in` is zero, by turns 0 and -0; none where it is 0.
inline std::vector<float> values(int count, std::uint32_t stream, std::uint32_t one_in = 0) {
  std::vector<float> result(static_cast<std::size_t>(count));
  for (std::uint32_t i = 0; i < result.size(); i++) {
    const std::uint32_t word = random_word({43, Purpose::shuffle, stream}, i) >> 8;
    result[i] = uniform<float>({42, Purpose::shuffle, stream}, i, -1.0f, 1.0f);
    if (one_in != 0 && word % one_in == 0) result[i] = word / one_in % 2 == 0 ? 0.0f : -0.0f;
  }
  return result;
}

// As the reference of nn/dense.h has it, for shapes that only a loop can go through.
inline std::vector<float> expected_output(Activation activation, int in, int out,
                                          const std::vector<float>& weights,
                                          const std::vector<float>& bias,
                                          const std::vector<float>& input) {
  std::vector<float> output(bias);
  for (int o = 0; o < out; o++) {
    float& sum = output[static_cast<std::size_t>(o)];
    for (int i = 0; i < in; i++) {
      sum = math::fma(input[static_cast<std::size_t>(i)],
                      weights[static_cast<std::size_t>(i * out + o)], sum);
    }
    sum += 0.0f;
    switch (activation) {
      case Activation::identity: break;
      case Activation::relu: sum = activation_value<Activation::relu>(sum); break;
      case Activation::gelu: sum = activation_value<Activation::gelu>(sum); break;
      case Activation::tanh: sum = activation_value<Activation::tanh>(sum); break;
      case Activation::sigmoid: sum = activation_value<Activation::sigmoid>(sum); break;
      case Activation::softplus: sum = activation_value<Activation::softplus>(sum); break;
    }
  }
  return output;
}

constexpr float kUntouched = 12345.0f;

template <class Device>
void check(Activation activation, int in, int out, std::uint32_t one_in) {
  CAPTURE(static_cast<int>(activation));
  CAPTURE(in);
  CAPTURE(out);
  CAPTURE(one_in);
  const auto weights = values(in * out, 1), bias = values(out, 2, one_in);
  const auto input = values(in, 3, one_in);
  const auto expected = expected_output(activation, in, out, weights, bias, input);
  std::vector<float> actual(static_cast<std::size_t>(out) + 1, kUntouched);
  dense_forward_at_run_time(Device{}, activation, in, out, weights.data(), bias.data(),
                            input.data(), actual.data());
  CHECK(std::memcmp(actual.data(), expected.data(), expected.size() * sizeof(float)) == 0);
  CHECK(actual.back() == kUntouched);
}

template <class Device>
void run() {
  for (const int in : {1, 2, 3, 13, 16, 17, 63, 64, 65, 100, 128, 131, 192}) {
    for (const int out : {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 24, 31, 33, 63, 64, 65, 100, 143}) {
      for (const std::uint32_t one_in : {0u, 13u, 2u, 1u}) {
        check<Device>(Activation::relu, in, out, one_in);
        check<Device>(Activation::identity, in, out, one_in);
      }
    }
  }
  for (const Activation activation :
       {Activation::gelu, Activation::tanh, Activation::sigmoid, Activation::softplus}) {
    for (const int out : {1, 4, 19, 80}) check<Device>(activation, 21, out, 0);
  }
}

// dense_forward() itself gives the same bits.
template <class Device, Activation A, int In, int Out>
void check_compiled() {
  const auto weights = values(In * Out, 4), bias = values(Out, 5), input = values(In, 6, 2);
  std::vector<float> expected(Out), actual(Out);
  dense_forward<A, 1, In, Out>(Generic{}, weights.data(), bias.data(), input.data(),
                               expected.data());
  dense_forward_at_run_time(Device{}, A, In, Out, weights.data(), bias.data(), input.data(),
                            actual.data());
  CHECK(std::memcmp(actual.data(), expected.data(), Out * sizeof(float)) == 0);
}

// A factor that is no finite number is not left out, and its NaN is not lost.
template <class Device>
void run_with_infinite_numbers() {
  for (const float value :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::quiet_NaN()}) {
    for (const int out : {1, 4, 16, 70}) {
      const std::vector<float> weights(static_cast<std::size_t>(66 * out), 0.0f);
      const std::vector<float> bias(static_cast<std::size_t>(out), 1.0f);
      std::vector<float> input(66, 0.0f), output(static_cast<std::size_t>(out));
      input[65] = value;
      for (const Activation activation : {Activation::relu, Activation::tanh}) {
        dense_forward_at_run_time(Device{}, activation, 66, out, weights.data(), bias.data(),
                                  input.data(), output.data());
        for (const float result : output) CHECK(result != result);
      }
    }
  }
}

}  // namespace dense_at_run_time_agreement

// One test file per device says which one, and which kernel it selects.
#define RLT_TEST_DENSE_AT_RUN_TIME(Device, Expected)                                               \
  static_assert(std::is_same_v<dense_at_run_time_agreement::Selected<rlt::Device>, Expected>,      \
                #Device " does not select the " #Expected " kernel for layers of run-time shape"); \
  TEST_CASE("layers of run-time shape have the reference's bits") {                                \
    dense_at_run_time_agreement::run<rlt::Device>();                                               \
    dense_at_run_time_agreement::check_compiled<rlt::Device, rlt::Activation::relu, 13, 64>();     \
    dense_at_run_time_agreement::check_compiled<rlt::Device, rlt::Activation::tanh, 64, 4>();      \
  }                                                                                                \
  TEST_CASE("layers of run-time shape pass on what is not a finite number") {                      \
    dense_at_run_time_agreement::run_with_infinite_numbers<rlt::Device>();                         \
  }
