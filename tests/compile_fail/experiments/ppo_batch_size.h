// The 2,048 rows of a rollout cannot be gone through in batches of 320.
// says: kBatchSize does not divide kRolloutSteps times kEnvironments
// says: Size<128>::kIs<0>
#pragma once

#include "pendulum_ppo.h"

namespace rlt {

struct PpoBatchSize : PendulumPpo {
#if defined(RLT_CORRECTED)
  static constexpr int kBatchSize = 512;
#else
  static constexpr int kBatchSize = 320;
#endif
};

}  // namespace rlt
