// What an experiment of distillation may get wrong.
#pragma once

#include "pendulum_distillation.h"

namespace rlt {

struct DistillationMistakes : PendulumDistillation {
  // variant: RLT_NORMALIZED_TWICE
  // says: the experiment states kNormalized, which its algorithm does not read
#if defined(RLT_NORMALIZED_TWICE)
  static constexpr bool kNormalized = true;
#endif
  // variant: RLT_MIRRORED_STUDENT
  // says: the experiment states kMirrored, which its algorithm does not read: TD3, SAC and PPO do
#if defined(RLT_MIRRORED_STUDENT)
  static constexpr bool kMirrored = true;
#endif
  // variant: RLT_AVERAGED_ALGORITHM
  // says: the experiment states kAveragedUpdates, which its algorithm does not read: TD3 and SAC do
#if defined(RLT_AVERAGED_ALGORITHM)
  static constexpr int kAveragedUpdates = 100;
#endif
};

}  // namespace rlt
