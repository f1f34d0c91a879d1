// What an experiment of PPO may get wrong.
#pragma once

#include "pendulum_ppo.h"

namespace rlt {

struct PpoMistakes : PendulumPpo {
  // variant: RLT_ACTOR_BOUNDS
  // says: the actor's last activation must be identity, because PPO clamps the action
#if defined(RLT_ACTOR_BOUNDS)
  using Actor = Mlp<float, Dimensions<3, 64, 64, 1>, Activation::relu, Activation::tanh>;
#endif
  // variant: RLT_BATCHES_DO_NOT_DIVIDE_A_ROLLOUT
  // says: kBatchSize does not divide kRolloutSteps times kEnvironments
  // says: Size<128>::kIs<0>
#if defined(RLT_BATCHES_DO_NOT_DIVIDE_A_ROLLOUT)
  static constexpr int kBatchSize = 320;
#endif
  // variant: RLT_ENVIRONMENT_WITHOUT_MIRRORS
  // says: the experiment is kMirrored, and its environment states no mirrors: kMirrors
#if defined(RLT_ENVIRONMENT_WITHOUT_MIRRORS)
  static constexpr bool kMirrored = true;
#endif
  // variant: RLT_NORMALIZED_TWICE
  // says: the experiment states kNormalized, which its algorithm does not read
  // says: PPO and distillation have a hyperparameter, norm_obs
#if defined(RLT_NORMALIZED_TWICE)
  static constexpr bool kNormalized = true;
#endif
  // variant: RLT_AVERAGED_ALGORITHM
  // says: the experiment states kAveragedUpdates, which its algorithm does not read: TD3 and SAC do
#if defined(RLT_AVERAGED_ALGORITHM)
  static constexpr int kAveragedUpdates = 100;
#endif
};

}  // namespace rlt
