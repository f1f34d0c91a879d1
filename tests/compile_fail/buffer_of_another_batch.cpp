// The buffer holds the activations of one sample, the batch has twenty.
// says: the buffer's number of samples (rows) differs from that of the input
// says: Size<1>::kIs<20>
#include "pendulum_td3.h"
#include "rltools/devices/generic.h"

#if defined(RLT_CORRECTED)
constexpr int kSamples = 20;
#else
constexpr int kSamples = 1;
#endif

int main() {
  static rlt::PendulumTd3::Actor actor;
  static rlt::MlpBuffer<rlt::PendulumTd3::Actor, kSamples> buffer;
  static const rlt::Matrix<float, 20, 3> observation{};
  static rlt::Matrix<float, 20, 1> action;
  rlt::forward(rlt::Generic{}, actor, observation, action, buffer);
}
