// The actor of PPO bounds what PPO will clamp.
// says: the actor's last activation must be identity, because PPO clamps the action
#pragma once

#include "pendulum_ppo.h"

namespace rlt {

struct PpoActorOutputActivation : PendulumPpo {
#if defined(RLT_CORRECTED)
  using Actor = Mlp<float, Dimensions<3, 64, 64, 1>, Activation::relu, Activation::identity>;
#else
  using Actor = Mlp<float, Dimensions<3, 64, 64, 1>, Activation::relu, Activation::tanh>;
#endif
};

}  // namespace rlt
