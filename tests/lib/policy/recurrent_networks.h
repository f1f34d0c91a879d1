// Images of policies with a hidden state, at the place of policy_networks.h.
#pragma once

#include "policy_networks.h"

namespace recurrent_networks {

using policy_networks::Bytes;
using policy_networks::Contract;
using policy_networks::kNormalizer;
using policy_networks::kOrigin;

using Small =
    rlt::Sequential<float, Contract::kObservationDim, rlt::Dense<6, rlt::Activation::relu>,
                    rlt::Gru<4>, rlt::Dense<Contract::kActionDim, rlt::Activation::tanh>>;
// Two recurrent layers, of other widths than those beside them, and none but them at the ends.
using Deep = rlt::Sequential<float, Contract::kObservationDim, rlt::Gru<7>,
                             rlt::Dense<3, rlt::Activation::elu>, rlt::Gru<Contract::kActionDim>>;

template <class Network>
const Network& network_of(std::uint32_t seed) {
  static Network network;
  initialize_kaiming(rlt::Generic{}, network, seed, 0);
  return network;
}

// Whose first output is infinite, from any state, where the height is near its upper limit. Else it
// is as Small.
using Overflowing =
    rlt::Sequential<float, Contract::kObservationDim, rlt::Dense<6, rlt::Activation::relu>,
                    rlt::Gru<4>, rlt::Dense<Contract::kActionDim, rlt::Activation::identity>>;
constexpr float kOverflowingHeight = 3.5f;
template <>
inline const Overflowing& network_of<Overflowing>(std::uint32_t seed) {
  static Overflowing network;
  initialize_kaiming(rlt::Generic{}, network, seed, 0);
  for (int in = 0; in < Contract::kObservationDim; in++) network.weights(0)[6 * in] = 0.0f;
  network.weights(0)[0] = 1.0f;  // of the normalized height, which is 2.5 at most
  network.bias(0)[0] = -2.45f;
  for (int unit = 0; unit < 2; unit++) {  // two units of the state are at 1 then, else at 0
    const int keep = 4 + unit, candidate = 8 + unit;
    network.bias(1)[keep] = -30.0f;
    for (int in = 0; in < 6; in++) network.weights(1)[12 * in + candidate] = 0.0f;
    for (int in = 0; in < 4; in++) network.hidden_weights(1)[12 * in + candidate] = 0.0f;
    network.bias(1)[candidate] = network.hidden_bias(1)[candidate] = 0.0f;
    network.weights(1)[candidate] = 100.0f;
    network.weights(2)[Contract::kActionDim * unit] = 3e38f;
  }
  return network;
}

// That was trained in steps of so many of the contract's intervals.
template <class Network>
Bytes image_of(std::uint32_t seed, std::uint32_t ticks_per_step) {
  Bytes image(rlt::policy_image_bytes<Network>(true));
  write_policy_image(rlt::Generic{}, network_of<Network>(seed), rlt::policy_contract<Contract>(),
                     kNormalizer, kOrigin, image.data(), ticks_per_step);
  return image;
}

// A network step by step, by nn/window_passes.h; what an image of it must compute.
template <class Network>
class Stepper {
 public:
  explicit Stepper(const Network& network) : network_(network) {}

  void reset() { state = kept_ = {}; }
  // output (kOutputDim) for an observation (kObservationDim); next_state: that after it.
  void step(const float* observation, float* output) {
    rlt::Matrix<float, 1, Network::kInputDim> input;
    rlt::Matrix<float, 1, Network::kOutputDim> result;
    for (int i = 0; i < Network::kInputDim; i++) {
      input.values[i] =
          (observation[i] - policy_networks::kMean[i]) * policy_networks::kInverseStd[i];
    }
    next_state = state;
    forward_step(rlt::Generic{}, network_, input, next_state, result, buffer_);
    for (int i = 0; i < Network::kOutputDim; i++) output[i] = result.values[i];
  }
  // A step of training begins, and has ended.
  void take() { state = kept_; }
  void keep() { kept_ = next_state; }

  rlt::Matrix<float, 1, Network::kStateDim> state{}, next_state{};

 private:
  rlt::Matrix<float, 1, Network::kStateDim> kept_{};
  const Network network_;
  rlt::WindowBuffer<Network, 1, 1> buffer_;
};

}  // namespace recurrent_networks
