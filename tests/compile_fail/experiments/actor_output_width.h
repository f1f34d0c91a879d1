// The actor gives two actions, the environment takes one.
// says: the actor's output width differs from the environment's action width
// says: Size<2>::kIs<1>
#pragma once

#include "pendulum_td3.h"

namespace rlt {

struct ActorOutputWidth : PendulumTd3 {
#if defined(RLT_CORRECTED)
  using Actor = Mlp<float, Dimensions<3, 64, 64, 1>, Activation::relu, Activation::tanh>;
#else
  using Actor = Mlp<float, Dimensions<3, 64, 64, 2>, Activation::relu, Activation::tanh>;
#endif
};

}  // namespace rlt
