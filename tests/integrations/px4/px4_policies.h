// Policy images for the tests of integrations/px4.
#pragma once

#include <cstring>
#include <vector>

#include "../../lib/policy/entry_images.h"
#include "rltools/devices/generic.h"
#include "rltools/policy/contracts/quadrotor.h"
#include "rltools/policy/image.h"

namespace px4_policies {

using namespace rlt;
using Contract = contracts::Quadrotor;
using Image = std::vector<std::uint8_t>;

constexpr std::uint8_t kStateSha256[32] = {1, 2, 3};
constexpr PolicyOrigin kOrigin{"hover", "Quadrotor-v0", 1, 0, 0x12345678u, kStateSha256};

// Of what these tests do with a vehicle, nothing is refused for how it is entered.
constexpr EntryEnvelope kAnyEntry = {10.0f, 5.0f, 3.15f, 35.0f, 0.0f};

template <class Net, class C = Contract>
Image image_of_network(const Net& network) {
  Image image(policy_image_bytes<Net>());
  write_policy_image(Generic{}, network, policy_contract<C>(), {nullptr, nullptr}, kOrigin,
                     image.data());
  return image;
}
inline Image any_entry(const Image& image) { return entry_images::with_entry(image, kAnyEntry); }

// 13-64-64-4.
using Network = Mlp<float, Dimensions<13, 64, 64, 4>, Activation::relu, Activation::tanh>;
inline const Network& network_of(std::uint32_t seed) {
  static Network network;
  initialize_kaiming(Generic{}, network, seed, 0);
  return network;
}
inline Image image_of(std::uint32_t seed) { return any_entry(image_of_network(network_of(seed))); }

// Whose actions are always these, in [-1, 1].
inline Image constant_image(const float* actions) {
  using Net = Mlp<float, Dimensions<13, 2, 4>, Activation::relu, Activation::identity>;
  static Net network;
  for (float& value : network.values) value = 0.0f;
  for (int i = 0; i < 4; i++) network.bias(1)[i] = actions[i];
  return any_entry(image_of_network(network));
}

// Whose output is infinite where the vehicle is more than 4.86 m above its target.
inline Image overflowing_image() {
  using Net = Mlp<float, Dimensions<13, 2, 4>, Activation::relu, Activation::identity>;
  static Net network;
  for (float& value : network.values) value = 0.0f;
  network.weights(0)[2 * 2] = 0.68e38f;  // of position_error_z
  network.bias(0)[0] = -3.3e38f;
  network.weights(1)[0] = 100.0f;
  return any_entry(image_of_network(network));
}

// For another place: twice the interval.
struct SlowContract : Contract {
  static constexpr std::uint32_t kStepInterval_us = 4000;
};
inline Image slow_image() {
  using Net = Mlp<float, Dimensions<13, 2, 4>, Activation::relu, Activation::tanh>;
  static Net network;
  initialize_kaiming(Generic{}, network, 1, 0);
  return image_of_network<Net, SlowContract>(network);
}

}  // namespace px4_policies
