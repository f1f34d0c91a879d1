// Test: -Og threads all
// Networks, SAC, XQC and PPO on a device with several threads have the bits of one. TD3:
// test_host_threads.cpp.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <type_traits>

#include "any_threads.h"
#include "pendulum_ppo.h"
#include "pendulum_sac.h"
#include "pendulum_xqc.h"
#include "training_run.h"

using namespace rlt;
using training_run::hash_after;

namespace {

struct NormalizedSac : PendulumSac {
  static constexpr bool kNormalized = true;
  static constexpr int kAveragedUpdates = 20;  // of the actor, which is the policy
};

// Networks of which threads share rows and columns, in parts that are no multiples of a block.
struct WideXqc : WithHidden<PendulumXqc, 150, 70> {
  struct Hyperparameters : PendulumXqc::Hyperparameters {
    Hyperparameters() {
      learning_starts = 100;
      gradient_steps = 2;
      policy_delay = 2;
    }
  };
};

template <class E>
using Shared = WithSecondCriticScratch<WithTileRows<E, E::kBatchSize>>;

// Forward and both backward passes of a batch of 101 (not a multiple of a tile, nor of two).
template <class Network>
struct Passes {
  static constexpr int kBatch = 101;
  Matrix<float, kBatch, Network::kInputDim> input, input_gradient, only_input_gradient;
  Matrix<float, kBatch, 1> last_input_gradient;
  Matrix<float, kBatch, Network::kOutputDim> output, output_gradient;
  MlpBuffer<Network, kBatch> buffer;
  GradientBuffer<float, kBatch, Network::widest_hidden()> gradient_buffer;
  Network network, gradient;
  AdamState<Network> optimizer;

  template <class Device>
  void run(Device device) {
    const auto fill = [&](auto& matrix, std::uint32_t index) {
      fill_standard_normal(device, {5, Purpose::shuffle, index}, matrix.data(),
                           kBatch * std::decay_t<decltype(matrix)>::kColumns);
    };
    initialize_kaiming(device, network, 5, 0);
    initialize(optimizer);
    set_zero(Generic{}, gradient);
    fill(input, 0);
    forward(device, network, input, output, buffer);
    fill(output_gradient, 1);
    backward_input(device, network, input, output, buffer, output_gradient.data(),
                   only_input_gradient.data(), gradient_buffer);
    fill(output_gradient, 1);
    backward_input<Network::kInputDim - 1>(device, network, input, output, buffer,
                                           output_gradient.data(), last_input_gradient.data(),
                                           gradient_buffer);
    fill(output_gradient, 1);
    backward(device, network, input, output, buffer, output_gradient.data(), gradient,
             input_gradient.data(), gradient_buffer);
    adam_step(device, AdamParameters<float>{1e-3f, 0.9f, 0.999f, 1e-8f}, optimizer, gradient,
              network);
  }
};

// Both passes of a network with batch normalization, of which the last Rows samples have outputs.
template <class Network>
struct BatchNormPasses {
  static constexpr int kBatch = 101, kRows = 51;
  Matrix<float, kBatch, Network::kInputDim> input;
  Matrix<float, kRows, Network::kOutputDim> output, output_gradient;
  BatchNormBuffer<Network, kBatch> buffer;
  GradientBuffer<float, kBatch, Network::widest_input()> gradient_buffer;
  Network network, gradient;
  BatchNormStatistics<Network> statistics;

  template <class Device>
  void run(Device device) {
    constexpr int kFirst = kBatch - kRows;
    initialize_orthogonal(device, network, statistics, 5, 0);
    fill_standard_normal(device, {5, Purpose::shuffle, 0}, input.data(),
                         kBatch * Network::kInputDim);
    fill_standard_normal(device, {5, Purpose::shuffle, 1}, output_gradient.data(),
                         kRows * Network::kOutputDim);
    set_zero(Generic{}, gradient);
    forward_training<kFirst>(device, network, input, output, buffer);
    backward_training<kFirst>(device, network, buffer, output_gradient, gradient, gradient_buffer);
    for (int i = 0; i < Network::kParameterCount; i++) network.values[i] += gradient.values[i];
    normalize_weights(device, network);
    move_statistics(0.5f, buffer.batch, statistics);
  }
};

template <class Network>
void require_same_passes(HostThreads device) {
  const auto one = std::make_unique<Passes<Network>>();
  const auto two = std::make_unique<Passes<Network>>();
  one->run(HostSimd{});
  two->run(device);
  const auto same = [](const auto& a, const auto& b) {
    return std::memcmp(a.values, b.values, sizeof a.values) == 0;
  };
  CHECK(same(one->output, two->output));
  CHECK(same(one->only_input_gradient, two->only_input_gradient));
  CHECK(same(one->input_gradient, two->input_gradient));
  CHECK(same(one->gradient, two->gradient));
  CHECK(same(one->network, two->network));
  CHECK(same(one->only_input_gradient, one->input_gradient));
  CHECK(same(one->last_input_gradient, two->last_input_gradient));
  for (int row = 0; row < Passes<Network>::kBatch; row++) {
    CHECK(one->last_input_gradient(row, 0) == one->input_gradient(row, Network::kInputDim - 1));
  }
}

}  // namespace

TEST_CASE("a network gives the bits of one thread") {
  // The second layer is divided into more parts than there are threads.
  using Network = Mlp<float, Dimensions<33, 150, 131, 3>, Activation::gelu, Activation::identity>;
  training_run::with_any_threads([](HostThreads device) { require_same_passes<Network>(device); });
}

TEST_CASE("a network with batch normalization gives the bits of one thread, and of the reference") {
  // 333 columns in two parts, or in blocks of one.
  using Network = BatchNormMlp<float, Dimensions<33, 333, 131, 3>>;
  using Passes = BatchNormPasses<Network>;
  const auto expected = std::make_unique<Passes>();
  expected->run(Generic{});
  const auto check = [&](auto device) {
    const auto other = std::make_unique<Passes>();
    other->run(device);
    const auto same = [](const auto& a, const auto& b) {
      return std::memcmp(&a, &b, sizeof a) == 0;
    };
    CHECK(same(expected->output.values, other->output.values));
    CHECK(same(expected->network.values, other->network.values));
    CHECK(same(expected->statistics.mean, other->statistics.mean));
    CHECK(same(expected->statistics.variance, other->statistics.variance));
  };
  check(HostSimd{});
  training_run::with_any_threads([&](HostThreads device) { check(device); });
}

TEST_CASE("XQC ends with the same bits on one thread, on two and on three") {
  const std::string expected = hash_after<WideXqc>(Generic{}, 130);
  CHECK(hash_after<WideXqc>(HostSimd{}, 130) == expected);
  training_run::with_any_threads(
      [&](HostThreads device) { CHECK(hash_after<WideXqc>(device, 130) == expected); });
}

TEST_CASE("SAC ends with the same bits on one thread, on two and on three") {
  const std::string expected = hash_after<NormalizedSac>(Generic{}, 130);
  training_run::with_any_threads([&](HostThreads device) {
    CHECK(hash_after<Shared<NormalizedSac>>(device, 130) == expected);
  });
}

TEST_CASE("PPO ends with the same bits where threads share its environments") {
  using Whole = WithTileRows<PendulumPpo, PendulumPpo::kBatchSize>;
  const std::string expected = hash_after<PendulumPpo>(Generic{}, 270);
  training_run::with_any_threads(
      [&](HostThreads device) { CHECK(hash_after<Whole>(device, 270) == expected); });
}
