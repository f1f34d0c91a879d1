// A batch of twenty goes in, and room for ten comes out.
// says: the output's number of samples (rows) differs from that of the input
// says: Size<10>::kIs<20>
#include "pendulum_td3.h"
#include "rltools/devices/generic.h"

#if defined(RLT_CORRECTED)
constexpr int kRows = 20;
#else
constexpr int kRows = 10;
#endif

int main() {
  static rlt::PendulumTd3::Actor actor;
  static rlt::MlpBuffer<rlt::PendulumTd3::Actor, 20> buffer;
  static const rlt::Matrix<float, 20, 3> observation{};
  static rlt::Matrix<float, kRows, 1> action;
  rlt::forward(rlt::Generic{}, actor, observation, action, buffer);
}
