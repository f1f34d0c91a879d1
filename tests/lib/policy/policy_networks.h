// Networks, contract and normaliser whose policy images the tests write: every activation, widths
// that are no multiples of a kernel's block, with and without a normaliser.
#pragma once

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

constexpr float kMean[Contract::kObservationDim] = {1.5f, 0.25f, -0.125f, 9.5f, 101325.0f};
constexpr float kInverseStd[Contract::kObservationDim] = {1.25f, 0.5f, 0.75f, 0.1f, 1.7e-4f};
constexpr PolicyNormaliser kNormaliser{kMean, kInverseStd};
constexpr PolicyNormaliser kNoNormaliser{nullptr, nullptr};

template <Activation Hidden, Activation Output>
using Network = Mlp<float, Dimensions<Contract::kObservationDim, 13, 24, 7, Contract::kActionDim>,
                    Hidden, Output>;

constexpr std::uint8_t kStateSha256[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                           11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                           22, 23, 24, 25, 26, 27, 28, 29, 30, 255};
constexpr PolicyOrigin kOrigin{"valve-test", "Valve-v0", 1234, 7, 0xfeedf00du, kStateSha256};

// A network of this type with Kaiming-uniform weights, as the bytes of its image.
template <class N, class Device>
void write(Device device, const PolicyNormaliser& normaliser, std::uint8_t* image) {
  static N network;
  initialize_kaiming(device, network, 7, 0);
  write_policy_image(device, network, policy_contract<Contract>(), normaliser, kOrigin, image);
}

}  // namespace policy_networks
