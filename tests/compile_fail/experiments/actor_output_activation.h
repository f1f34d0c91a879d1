// The actor's output is not bounded.
// says: the actor's last activation must be tanh, because actions lie in [-1, 1]
#pragma once

#include "pendulum_td3.h"

namespace rlt {

struct ActorOutputActivation : PendulumTd3 {
#if defined(RLT_CORRECTED)
  using Actor = Mlp<float, Dimensions<3, 64, 64, 1>, Activation::relu, Activation::tanh>;
#else
  using Actor = Mlp<float, Dimensions<3, 64, 64, 1>, Activation::relu, Activation::identity>;
#endif
};

}  // namespace rlt
