// Pendulum-v1 (pendulum.h) without its velocity: a policy sees where the pendulum is, and has to
// remember where it was. A task for recurrent networks. Critics see the velocity (rl/privileged.h).
#pragma once

#include "rltools/policy/contracts/masked_pendulum.h"
#include "rltools/rl/environments/pendulum.h"

namespace rlt {

template <class T>
struct MaskedPendulum : Pendulum<T> {
  static constexpr const char* kName = "MaskedPendulum";
  static constexpr const char* kContractName = contracts::MaskedPendulum::kContractName;
  static constexpr int kEpisodeSteps = 200;
  static constexpr int kObservationDim = contracts::MaskedPendulum::kObservationDim;
  static constexpr int kPrivilegedDim = 1;
  static constexpr Channel kObservations[kObservationDim] = {
      contracts::MaskedPendulum::kObservations[0],
      contracts::MaskedPendulum::kObservations[1],
  };
};

}  // namespace rlt
