// A replay buffer of 50,000 transitions, where the board has 512 KB for it.
// says: RAM2 is exceeded: the replay buffer and the policy image must fit into 512 KB; make
// kReplayCapacity
#pragma once

#include "pendulum_td3.h"

namespace rlt {

struct ReplayTooLarge : PendulumTd3 {
#if defined(RLT_CORRECTED)
  static constexpr int kReplayCapacity = 15000;
#else
  static constexpr int kReplayCapacity = 50000;
#endif
};

}  // namespace rlt
