// What an experiment of PPO with a recurrent network may get wrong.
#pragma once

#include "pendulum_ppo_masked.h"

namespace rlt {

struct WindowsMistakes : PendulumPpoMasked {
  // variant: RLT_WINDOWS_DO_NOT_DIVIDE_A_ROLLOUT
  // says: kWindowSteps does not divide kRolloutSteps
  // says: Size<16>::kIs<0>
#if defined(RLT_WINDOWS_DO_NOT_DIVIDE_A_ROLLOUT)
  static constexpr int kRolloutSteps = 240;
  static constexpr int kBatchSize = 1920;
#endif
  // variant: RLT_NOTHING_RECURRENT
  // says: the experiment states kWindowSteps, and none of its networks is recurrent
#if defined(RLT_NOTHING_RECURRENT)
  using Actor = Mlp<float, Dimensions<2, 8, 1>, Activation::relu, Activation::identity>;
#endif
};

}  // namespace rlt
