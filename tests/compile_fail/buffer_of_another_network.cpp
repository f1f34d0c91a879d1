// The actor runs with the buffer of the critic.
// says: the buffer was made for another network
#include "pendulum_td3.h"
#include "rltools/devices/generic.h"

#if defined(RLT_CORRECTED)
using Buffer = rlt::MlpBuffer<rlt::PendulumTd3::Actor, 1>;
#else
using Buffer = rlt::MlpBuffer<rlt::PendulumTd3::Critic, 1>;
#endif

int main() {
  static rlt::PendulumTd3::Actor actor;
  static Buffer buffer;
  const rlt::Matrix<float, 1, 3> observation{};
  rlt::Matrix<float, 1, 1> action;
  rlt::forward(rlt::Generic{}, actor, observation, action, buffer);
}
