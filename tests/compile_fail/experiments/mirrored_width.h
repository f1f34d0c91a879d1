// A hidden layer of 30 units has no image of each in two mirrors.
// says: the width of a hidden layer is not a multiple of 2 to the power of the environment's
// kMirrors
#pragma once

#include "crazyflie_ppo.h"

namespace rlt {

struct MirroredWidth : CrazyfliePpo {
#if defined(RLT_CORRECTED)
  static constexpr int kWidth = 28;
#else
  static constexpr int kWidth = 30;
#endif
  using Actor =
      Mlp<float, Dimensions<Environment::kObservationDim, 32, kWidth, Environment::kActionDim>,
          Activation::relu, Activation::identity>;
};

}  // namespace rlt
