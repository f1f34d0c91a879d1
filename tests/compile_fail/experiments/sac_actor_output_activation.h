// The actor of SAC squashes what SAC will squash.
// says: the actor's last activation must be identity, because SAC squashes the action
#pragma once

#include "pendulum_sac.h"

namespace rlt {

struct SacActorOutputActivation : PendulumSac {
#if defined(RLT_CORRECTED)
  using Actor = Mlp<float, Dimensions<3, 64, 64, 2>, Activation::relu, Activation::identity>;
#else
  using Actor = Mlp<float, Dimensions<3, 64, 64, 2>, Activation::relu, Activation::tanh>;
#endif
};

}  // namespace rlt
