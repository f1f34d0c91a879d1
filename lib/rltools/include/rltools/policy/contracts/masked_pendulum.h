// The observations and actions of a policy for the pendulum that sees no velocity: pendulum.h
// without it.
#pragma once

#include "rltools/policy/contracts/pendulum.h"

namespace rlt::contracts {

struct MaskedPendulum {
  static constexpr const char* kContractName = "masked-pendulum";
  static constexpr std::uint32_t kStepInterval_us = Pendulum::kStepInterval_us;
  static constexpr int kObservationDim = 2;
  static constexpr int kActionDim = Pendulum::kActionDim;
  static constexpr Channel kObservations[kObservationDim] = {Pendulum::kObservations[0],
                                                             Pendulum::kObservations[1]};
  static constexpr Channel kActions[kActionDim] = {Pendulum::kActions[0]};
  static constexpr float kSafeAction[kActionDim] = {Pendulum::kSafeAction[0]};
};

}  // namespace rlt::contracts
