// The widest hidden layer has 64 numbers, the backward pass is given room for 32.
// says: the gradient buffer is narrower than the network's widest hidden layer
#include "pendulum_td3.h"
#include "rltools/devices/generic.h"

#if defined(RLT_CORRECTED)
constexpr int kWidth = 64;
#else
constexpr int kWidth = 32;
#endif

int main() {
  using Actor = rlt::PendulumTd3::Actor;
  static Actor actor, gradient;
  static rlt::MlpBuffer<Actor, 1> buffer;
  static rlt::GradientBuffer<float, 1, kWidth> gradient_buffer;
  const rlt::Matrix<float, 1, 3> observation{};
  rlt::Matrix<float, 1, 1> action, action_gradient{};
  rlt::forward(rlt::Generic{}, actor, observation, action, buffer);
  rlt::backward(rlt::Generic{}, actor, observation, action, buffer, action_gradient.data(),
                gradient, nullptr, gradient_buffer);
}
