// The network takes three numbers and is given four.
// says: the input's width (columns) differs from the width that the network takes
// says: Size<4>::kIs<3>
#include "pendulum_td3.h"
#include "rltools/devices/generic.h"

#if defined(RLT_CORRECTED)
using Observation = rlt::Matrix<float, 1, 3>;
#else
using Observation = rlt::Matrix<float, 1, 4>;
#endif

int main() {
  static rlt::PendulumTd3::Actor actor;
  static rlt::MlpBuffer<rlt::PendulumTd3::Actor, 1> buffer;
  const Observation observation{};
  rlt::Matrix<float, 1, 1> action;
  rlt::forward(rlt::Generic{}, actor, observation, action, buffer);
}
