// Images of policies that ask for their last actions, at the place of policy_networks.h.
#pragma once

#include <vector>

#include "policy_networks.h"

namespace past_networks {

using policy_networks::Bytes;
using policy_networks::Contract;
using policy_networks::kGood;
using policy_networks::kOrigin;

// A channel that asks for a past action.
inline rlt::Channel past(const char* name) { return {name, "1", -1.0f, 1.0f}; }

// The place's contract as an image states it; valid until the next call.
inline rlt::PolicyContract contract_that_asks_for(const std::vector<rlt::Channel>& asked) {
  static std::vector<rlt::Channel> observations;
  observations.assign(Contract::kObservations, Contract::kObservations + Contract::kObservationDim);
  observations.insert(observations.end(), asked.begin(), asked.end());
  rlt::PolicyContract contract = rlt::policy_contract<Contract>();
  contract.observation_dim = static_cast<int>(observations.size());
  contract.observations = observations.data();
  return contract;
}

template <class Network>
Bytes image_with(const Network& network, const std::vector<rlt::Channel>& asked) {
  return policy_networks::image_of_network(rlt::Generic{}, network, contract_that_asks_for(asked));
}

// One layer, of the place's observations and one past action.
using LinearNetwork =
    rlt::Mlp<float, rlt::Dimensions<Contract::kObservationDim + 1, Contract::kActionDim>,
             rlt::Activation::relu, rlt::Activation::identity>;

// Up to 13 past actions.
template <int Asked = 0>
Bytes image_that_asks_for(const std::vector<rlt::Channel>& asked, std::uint32_t seed) {
  if constexpr (Asked < 13) {
    if (asked.size() != Asked) return image_that_asks_for<Asked + 1>(asked, seed);
  }
  using N =
      rlt::Mlp<float, rlt::Dimensions<Contract::kObservationDim + Asked, 6, Contract::kActionDim>,
               rlt::Activation::relu, rlt::Activation::tanh>;
  static N network;
  initialize_kaiming(rlt::Generic{}, network, seed, 0);
  // The pressure is a large number, which the others are not to be lost behind.
  for (int o = 0; o < 6; o++) network.weights(0)[4 * 6 + o] *= 1e-5f;
  return image_with(network, asked);
}

}  // namespace past_networks
