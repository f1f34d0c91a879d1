// The actor takes less than the environment gives.
// says: the actor's input width differs from the environment's observation width
// says: Size<2>::kIs<3>
#pragma once

#include "pendulum_td3.h"

namespace rlt {

struct ActorInputWidth : PendulumTd3 {
#if defined(RLT_CORRECTED)
  using Actor = Mlp<float, Dimensions<3, 64, 64, 1>, Activation::relu, Activation::tanh>;
#else
  using Actor = Mlp<float, Dimensions<2, 64, 64, 1>, Activation::relu, Activation::tanh>;
#endif
};

}  // namespace rlt
