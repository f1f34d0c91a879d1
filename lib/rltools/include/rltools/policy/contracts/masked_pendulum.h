// What a policy for the pendulum observes that sees no velocity: pendulum.h without it.
#pragma once

#include "rltools/policy/contracts/pendulum.h"

namespace rlt::contracts {

struct MaskedPendulum : Pendulum {
  static constexpr const char* kContractName = "masked-pendulum";
  static constexpr int kObservationDim = 2;
  static constexpr Channel kObservations[kObservationDim] = {Pendulum::kObservations[0],
                                                             Pendulum::kObservations[1]};
};

}  // namespace rlt::contracts
