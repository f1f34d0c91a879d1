// What a policy that moves a mass to 0 observes and does.
#pragma once

#include "rltools/policy/contract.h"

namespace rlt::contracts {

struct Mover {
  static constexpr const char* kContractName = "mover";
  static constexpr std::uint32_t kStepInterval_us = 50000;
  static constexpr int kObservationDim = 2;
  static constexpr int kActionDim = 1;
  static constexpr Channel kObservations[kObservationDim] = {{"position", "m", -2.0f, 2.0f},
                                                             {"velocity", "m/s", -5.0f, 5.0f}};
  static constexpr Channel kActions[kActionDim] = {{"force", "N", -2.0f, 2.0f}};
};

}  // namespace rlt::contracts
