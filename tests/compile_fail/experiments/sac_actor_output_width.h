// The actor of SAC gives the mean only, not log_std.
// says: the actor's output width differs from twice the environment's action width
// says: Size<1>::kIs<2>
#pragma once

#include "pendulum_sac.h"

namespace rlt {

struct SacActorOutputWidth : PendulumSac {
#if defined(RLT_CORRECTED)
  using Actor = Mlp<float, Dimensions<3, 64, 64, 2>, Activation::relu, Activation::identity>;
#else
  using Actor = Mlp<float, Dimensions<3, 64, 64, 1>, Activation::relu, Activation::identity>;
#endif
};

}  // namespace rlt
