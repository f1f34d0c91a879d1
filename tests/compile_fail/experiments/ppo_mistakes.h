// What an experiment of PPO may get wrong.
#pragma once

#include "pendulum_ppo.h"

namespace rlt {

struct PpoMistakes : PendulumPpo {
  // variant: RLT_BATCHES_DO_NOT_DIVIDE_A_ROLLOUT
  // says: kBatchSize does not divide kRolloutSteps times kEnvironments
  // says: Size<128>::kIs<0>
#if defined(RLT_BATCHES_DO_NOT_DIVIDE_A_ROLLOUT)
  static constexpr int kBatchSize = 320;
#endif
  // variant: RLT_NORMALIZED_TWICE
  // says: the experiment states kNormalized, which its algorithm does not read
  // says: PPO and distillation have a hyperparameter, norm_obs
#if defined(RLT_NORMALIZED_TWICE)
  static constexpr bool kNormalized = true;
#endif
};

}  // namespace rlt
