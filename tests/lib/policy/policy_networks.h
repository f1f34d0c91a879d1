// Networks, contract and normalizer whose policy images the tests write: every activation, widths
// that are no multiples of a kernel's block, with and without a normalizer; and small policies,
// of which any number may be had.
#pragma once

#include <cstring>
#include <vector>

#include "rltools/policy/image.h"

namespace policy_networks {

using namespace rlt;

struct Contract {
  static constexpr std::uint32_t kStepInterval_us = 2500;
  static constexpr int kObservationDim = 5;
  static constexpr int kActionDim = 2;
  static constexpr Channel kObservations[kObservationDim] = {{"height", "m", 0.0f, 3.5f},
                                                             {"speed", "m/s", -4.0f, 4.0f},
                                                             {"angle", "rad", -3.0f, 3.0f},
                                                             {"current", "A", -1e-3f, 20.0f},
                                                             {"pressure", "Pa", 9e4f, 1.1e5f}};
  static constexpr Channel kActions[kActionDim] = {{"valve", "1", 0.0f, 1.0f},
                                                   {"torque", "N*m", -0.25f, 0.75f}};
};

// Two of its actions are choices, and one between them is a number.
struct Chooser : Contract {
  static constexpr int kActionDim = 3;
  static constexpr Channel kActions[kActionDim] = {choice("gear", "low|middle|high"),
                                                   {"torque", "N*m", -0.25f, 0.75f},
                                                   choice("horn", "off|on")};
  static constexpr float kSafeAction[kActionDim] = {1.0f, 0.5f, 0.0f};
};
// The same, where two observations forbid choices.
struct MaskedChooser : Chooser {
  static constexpr Channel kObservations[kObservationDim] = {{"gear:high", "1", 0.0f, 1.0f},
                                                             {"speed", "m/s", -4.0f, 4.0f},
                                                             {"horn:on", "1", 0.0f, 1.0f},
                                                             {"gear:low", "1", 0.0f, 1.0f},
                                                             {"horn:off", "1", 0.0f, 1.0f}};
};
using ChoosingNetwork =
    Mlp<float, Dimensions<Chooser::kObservationDim, 9, output_count(Chooser::kActions, 3)>,
        Activation::relu, Activation::identity>;

constexpr float kMean[Contract::kObservationDim] = {1.5f, 0.25f, -0.125f, 9.5f, 101325.0f};
constexpr float kInverseStd[Contract::kObservationDim] = {1.25f, 0.5f, 0.75f, 0.1f, 1.7e-4f};
constexpr PolicyNormalizer kNormalizer{kMean, kInverseStd};
constexpr PolicyNormalizer kNoNormalizer{nullptr, nullptr};

template <Activation Hidden, Activation Output>
using Network = Mlp<float, Dimensions<Contract::kObservationDim, 13, 24, 7, Contract::kActionDim>,
                    Hidden, Output>;

constexpr std::uint8_t kStateSha256[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                           11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                           22, 23, 24, 25, 26, 27, 28, 29, 30, 255};
constexpr PolicyOrigin kOrigin{"valve-test", "Valve-v0", 1234, 7, 0xfeedf00du, kStateSha256};

// A network of this type with Kaiming-uniform weights, as the bytes of its image.
template <class N, class Device>
void write(Device device, const PolicyNormalizer& normalizer, std::uint8_t* image) {
  static N network;
  initialize_kaiming(device, network, 7, 0);
  write_policy_image(device, network, policy_contract<Contract>(), normalizer, kOrigin, image);
}

using Bytes = std::vector<std::uint8_t>;

// The image of this network, whose examples are computed from it.
template <class Device, class N>
Bytes image_of_network(Device device, const N& network,
                       const PolicyContract& contract = policy_contract<Contract>(),
                       const PolicyNormalizer& normalizer = kNoNormalizer) {
  Bytes image(policy_image_bytes<N>(normalizer.mean != nullptr, contract.action_dim,
                                    choice_count(contract.actions, contract.action_dim)));
  write_policy_image(device, network, contract, normalizer, kOrigin, image.data());
  return image;
}

using Default = Network<Activation::relu, Activation::tanh>;
constexpr std::size_t kImageBytes = policy_image_bytes<Default>(true);
constexpr std::size_t kScratchFloats = 2 * 24 + 2 * 2;  // the widest layer has 24 outputs

// -- small policies -------------------------------------------------------------------------------

using SmallNetwork = Mlp<float, Dimensions<Contract::kObservationDim, 6, Contract::kActionDim>,
                         Activation::relu, Activation::tanh>;

template <class Device>
Bytes small_image(Device device, std::uint32_t seed) {
  static SmallNetwork network;
  initialize_kaiming(device, network, seed, 0);
  return image_of_network(device, network, policy_contract<Contract>(), kNormalizer);
}

// An observation within its limits.
constexpr float kGood[Contract::kObservationDim] = {1.0f, -2.0f, 0.5f, 3.0f, 1e5f};

// Of the same bits, or not.
struct Action {
  float values[Contract::kActionDim];
  bool operator==(const Action& other) const {
    return std::memcmp(values, other.values, sizeof(values)) == 0;
  }
};

}  // namespace policy_networks
