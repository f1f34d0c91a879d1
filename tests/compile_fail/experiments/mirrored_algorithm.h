// TD3 learns each network as it is.
// says: the experiment is kMirrored, and its algorithm does not learn symmetric networks: PPO does
#pragma once

#include "pendulum_td3.h"

namespace rlt {

struct MirroredAlgorithm : PendulumTd3 {
#if !defined(RLT_CORRECTED)
  static constexpr bool kMirrored = true;
#endif
};

}  // namespace rlt
