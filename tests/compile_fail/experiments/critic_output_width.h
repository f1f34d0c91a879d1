// The critic gives two values.
// says: the critic's output width differs from 1
// says: Size<2>::kIs<1>
#pragma once

#include "pendulum_td3.h"

namespace rlt {

struct CriticOutputWidth : PendulumTd3 {
#if defined(RLT_CORRECTED)
  using Critic = Mlp<float, Dimensions<4, 64, 64, 1>, Activation::relu, Activation::identity>;
#else
  using Critic = Mlp<float, Dimensions<4, 64, 64, 2>, Activation::relu, Activation::identity>;
#endif
};

}  // namespace rlt
