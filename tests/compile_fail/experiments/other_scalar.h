// The experiment's numbers are float, those of its environment double.
// says: the environment's Scalar differs from that of the experiment
#pragma once

#include "pendulum_td3.h"

namespace rlt {

struct OtherScalar : PendulumTd3 {
#if defined(RLT_CORRECTED)
  using Environment = Pendulum<float>;
#else
  using Environment = Pendulum<double>;
#endif
};

}  // namespace rlt
