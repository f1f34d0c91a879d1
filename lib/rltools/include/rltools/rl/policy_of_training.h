// The deployable policy image of a training run, written on the device that trained it
// (docs/policy_image.md).
#pragma once

#include "rltools/policy/image.h"
#include "rltools/rl/fingerprint.h"
#include "rltools/rl/training.h"

namespace rlt {

// Size of the image of an experiment's policy.
template <class E>
constexpr std::uint32_t kPolicyImageBytes = policy_image_bytes<PolicyNetwork<E>>(
    E::Algorithm::template kPolicyIsNormalized<E>, E::Environment::kActionDim,
    choice_count(E::Environment::kActions, E::Environment::kActionDim));

// Write the image of a training run's policy. `state_sha256` is that of the present training
// state.
template <class Device, class E>
void build_policy_image(Device device, Training<E>& training,
                        const std::uint8_t (&state_sha256)[32],
                        std::uint8_t (&image)[kPolicyImageBytes<E>]) {
  using Environment = typename E::Environment;
  static_assert(detail::text_length(E::kName) < kPolicyNameBytes &&
                    detail::text_length(Environment::kName) < kPolicyNameBytes,
                "build_policy_image: a name of experiment or environment has more than 31 bytes");
  static_assert(detail::channels_fit(Environment::kObservations, Environment::kObservationDim) &&
                    detail::channels_fit(Environment::kActions, Environment::kActionDim),
                "build_policy_image: a channel is missing, its name has more than 23 bytes, its "
                "unit more than 15, or its range is empty or not finite; or a choice has not 2 to "
                "256 names of 1 to 23 bytes, or not as many as its range has numbers");
  static_assert(
      choice_count(Environment::kObservations, Environment::kObservationDim) == 0,
      "build_policy_image: the unit of an observation has a bar, which only choices have");
  if constexpr (kKeepsContracts<E>) {
    const PolicyOrigin origin{E::kName,
                              Environment::kName,
                              steps_done(training),
                              training.hyperparameters.seed,
                              fingerprint(training),
                              state_sha256};
    PolicyNormalizer normalizer{nullptr, nullptr};
    if constexpr (E::Algorithm::template kPolicyIsNormalized<E>) {
      const auto& own = E::Algorithm::policy_normalizer(training);
      normalizer = {own.shift, own.scale};
    }
    write_policy_image(device, policy(training), policy_contract<Environment>(), normalizer, origin,
                       image, Environment::kTicksPerStep);
  }
}

}  // namespace rlt
