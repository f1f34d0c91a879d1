// The pendulum does not say what it is in a mirror.
// says: the experiment is kMirrored, and its environment states no mirrors: kMirrors
#pragma once

#include "pendulum_ppo.h"

namespace rlt {

struct MirroredWithoutMirrors : PendulumPpo {
#if !defined(RLT_CORRECTED)
  static constexpr bool kMirrored = true;
#endif
};

}  // namespace rlt
