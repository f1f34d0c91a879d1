// What an experiment of SAC may get wrong.
#pragma once

#include "pendulum_sac.h"

namespace rlt {

struct SacMistakes : PendulumSac {
  // variant: RLT_ACTOR_GIVES_THE_MEAN_ONLY
  // says: the actor's output width differs from twice the environment's action width
  // says: Size<1>::kIs<2>
#if defined(RLT_ACTOR_GIVES_THE_MEAN_ONLY)
  using Actor = Mlp<float, Dimensions<3, 64, 64, 1>, Activation::relu, Activation::identity>;
#endif
  // variant: RLT_ACTOR_SQUASHES
  // says: the actor's last activation must be identity, because SAC squashes the action
#if defined(RLT_ACTOR_SQUASHES)
  using Actor = Mlp<float, Dimensions<3, 64, 64, 2>, Activation::relu, Activation::tanh>;
#endif
};

}  // namespace rlt
