// The network gives one number and is to write two.
// says: the output's width (columns) differs from the width that the network gives
// says: Size<2>::kIs<1>
#include "pendulum_td3.h"
#include "rltools/devices/generic.h"

#if defined(RLT_CORRECTED)
using Action = rlt::Matrix<float, 1, 1>;
#else
using Action = rlt::Matrix<float, 1, 2>;
#endif

int main() {
  static rlt::PendulumTd3::Actor actor;
  static rlt::MlpBuffer<rlt::PendulumTd3::Actor, 1> buffer;
  const rlt::Matrix<float, 1, 3> observation{};
  Action action;
  rlt::forward(rlt::Generic{}, actor, observation, action, buffer);
}
