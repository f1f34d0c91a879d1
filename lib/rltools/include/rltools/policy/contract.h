// The contract between a policy and the place where it acts: what the elements of observations and
// actions are called, their units and ranges, and the time of a step.
#pragma once

#include <cstdint>

#include "rltools/core/math.h"

namespace rlt {

// One element of an observation or an action: what it is called, its SI unit ("1" where it has
// none) and range. An action's range is that of the physical quantity: physical = minimum + (a + 1)
// / 2 * (maximum - minimum).
struct Channel {
  const char* name;
  const char* unit;
  float minimum, maximum;
};

// What observations and actions mean where a policy is to run.
struct PolicyContract {
  std::uint32_t step_interval_us;
  int observation_dim;
  int action_dim;
  const Channel* observations;
  const Channel* actions;
};

template <class Environment>
constexpr PolicyContract policy_contract() {
  return {Environment::kStepInterval_us, Environment::kObservationDim, Environment::kActionDim,
          Environment::kObservations, Environment::kActions};
}

// A normalised action in physical units: -1 is the channel's minimum, 1 its maximum; beyond, it is
// clamped.
inline float physical_action(float action, float minimum, float maximum) {
  const float half_range = 0.5f * (maximum - minimum);
  const float centre = 0.5f * (maximum + minimum);
  return math::fma(math::clamp(action, -1.0f, 1.0f), half_range, centre);
}

}  // namespace rlt
