// The critic takes the observation only, not the action.
// says: the critic's input width differs from observation width plus action width
// says: Size<3>::kIs<4>
#pragma once

#include "pendulum_td3.h"

namespace rlt {

struct CriticInputWidth : PendulumTd3 {
#if defined(RLT_CORRECTED)
  using Critic = Mlp<float, Dimensions<4, 64, 64, 1>, Activation::relu, Activation::identity>;
#else
  using Critic = Mlp<float, Dimensions<3, 64, 64, 1>, Activation::relu, Activation::identity>;
#endif
};

}  // namespace rlt
