// A recurrent network with states, windows or memory of another shape.
#include "rltools/devices/generic.h"
#include "rltools/nn/window_passes.h"

using rlt::Matrix;

// variant: RLT_NO_RECURRENT_LAYER
// says: a Sequential without a recurrent layer is an Mlp
// variant: RLT_LSTM
// says: an Lstm is run and not trained: take a Gru
#if defined(RLT_NO_RECURRENT_LAYER)
using Layer = rlt::Dense<8, rlt::Activation::relu>;
#elif defined(RLT_LSTM)
using Layer = rlt::Lstm<8>;
#else
using Layer = rlt::Gru<8>;
#endif
using Network = rlt::Sequential<float, 3, Layer, rlt::Dense<1, rlt::Activation::identity>>;

// variant: RLT_WRONG_STATE_WIDTH
// says: the hidden state's width (columns) differs from that of the network
// says: Size<3>::kIs<8>
#if defined(RLT_WRONG_STATE_WIDTH)
constexpr int kState = 3;
#else
constexpr int kState = 8;
#endif

constexpr int kStates = 4, kSteps = 5;

// variant: RLT_NARROW_RECURRENT_BUFFER
// says: the gradient buffer is narrower than the network's widest recurrent layer
#if defined(RLT_NARROW_RECURRENT_BUFFER)
constexpr int kRecurrent = 4;
#else
constexpr int kRecurrent = 8;
#endif

// variant: RLT_STEP_WITH_A_WINDOW
// says: the buffer is for more than one step
// says: Size<5>::kIs<1>

int main() {
#if defined(RLT_NO_RECURRENT_LAYER)
  static Network network;
  return network.values[0] > 0;
#else
  static Network network;
  static rlt::WindowBuffer<Network, 4, kSteps> buffer;
  static const Matrix<float, 20, 3> input{};
  static Matrix<float, kStates, kState> state;
  static Matrix<float, 20, 1> output;
#if defined(RLT_STEP_WITH_A_WINDOW)
  rlt::forward_step(rlt::Generic{}, network, input, state, output, buffer);
#else
  rlt::forward_windows(rlt::Generic{}, network, input, nullptr, state, output, buffer);
#endif
#if defined(RLT_NARROW_RECURRENT_BUFFER) || defined(RLT_CORRECTED)
  static Network gradient;
  static Matrix<float, 20, 1> output_gradient;
  static rlt::WindowGradientBuffer<float, 4, kSteps, 8, kRecurrent> scratch;
  rlt::backward_windows(rlt::Generic{}, network, input, nullptr, output, buffer,
                        output_gradient.data(), gradient, nullptr, nullptr, scratch);
#endif
#endif
}
