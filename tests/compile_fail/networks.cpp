// A network with an input, an output or scratch memory of another shape.
#include "pendulum_td3.h"
#include "rltools/devices/generic.h"

using rlt::Matrix;
using Actor = rlt::PendulumTd3::Actor;

// variant: RLT_WRONG_INPUT_WIDTH
// says: the input's width (columns) differs from the width that the network takes
// says: Size<4>::kIs<3>
#if defined(RLT_WRONG_INPUT_WIDTH)
constexpr int kInput = 4;
#else
constexpr int kInput = 3;
#endif

constexpr int kOutput = 1;

constexpr int kOutputRows = 20;

// variant: RLT_BUFFER_OF_ANOTHER_BATCH
// says: the buffer's number of samples (rows) differs from that of the input
// says: Size<1>::kIs<20>
// variant: RLT_BUFFER_OF_ANOTHER_NETWORK
// says: the buffer was made for another network
#if defined(RLT_BUFFER_OF_ANOTHER_BATCH)
using Buffer = rlt::MlpBuffer<Actor, 1>;
#elif defined(RLT_BUFFER_OF_ANOTHER_NETWORK)
using Buffer = rlt::MlpBuffer<rlt::PendulumTd3::Critic, 20>;
#else
using Buffer = rlt::MlpBuffer<Actor, 20>;
#endif

// The widest hidden layer has 64 numbers.
// variant: RLT_NARROW_GRADIENT_BUFFER
// says: the gradient buffer is narrower than the network's widest hidden layer
#if defined(RLT_NARROW_GRADIENT_BUFFER)
constexpr int kWidth = 32;
#else
constexpr int kWidth = 64;
#endif

int main() {
  static Actor actor;
  static Buffer buffer;
  static const Matrix<float, 20, kInput> observation{};
  static Matrix<float, kOutputRows, kOutput> action;
  rlt::forward(rlt::Generic{}, actor, observation, action, buffer);
#if defined(RLT_NARROW_GRADIENT_BUFFER) || defined(RLT_CORRECTED)
  static Actor gradient;
  static Matrix<float, 20, 1> action_gradient;
  static rlt::GradientBuffer<float, 20, kWidth> gradient_buffer;
  rlt::backward(rlt::Generic{}, actor, observation, action, buffer, action_gradient.data(),
                gradient, nullptr, gradient_buffer);
#endif
}
