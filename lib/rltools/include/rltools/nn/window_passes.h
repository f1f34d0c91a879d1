// Passes of a network with a hidden state (sequential.h): a step, or windows of steps, and
// gradients that go back through all steps of a window.
//
// The rows of a batch of windows are window by window: row = window * Steps + step.
#pragma once

#include <type_traits>

#include "rltools/nn/gru.h"
#include "rltools/nn/sequential.h"

namespace rlt {

// Arrays that a forward pass over windows leaves for the backward pass. Those of layer l that lie
// row by row begin at rows * its offset.
template <class Network, int Windows, int Steps>
struct WindowBuffer {
  using Owner = Network;
  using T = typename Network::Scalar;
  static constexpr int kWindows = Windows;
  static constexpr int kSteps = Steps;
  static constexpr int kBatch = Windows * Steps;
  static constexpr int kHidden = Network::kHiddenCount;
  static constexpr int kOutputs = kHidden + Network::kOutputDim;
  static constexpr int kState = Network::kStateDim;
  static constexpr int kWidest = Network::widest_recurrent();
  alignas(64) T hidden[kHidden > 0 ? kBatch* kHidden : 1];
  alignas(64) T pre_activation[Network::stores_pre_activation() ? kBatch * kOutputs : 1];
  alignas(64) T gates[kBatch * 3 * kState];
  alignas(64) T hidden_product[kBatch * kState];
  alignas(64) T previous[kBatch * kState];
  alignas(64) T step_state[Windows * kWidest];
  alignas(64) T step_product[Windows * 3 * kWidest];
};

// The backward pass's own space: two gradients of hidden activations, used in turn, of any layer
// but the last, and what recurrent layers need. Any network that is no wider may share it.
template <class T, int Windows, int Steps, int Width, int Recurrent>
struct WindowGradientBuffer {
  static constexpr int kBatch = Windows * Steps;
  static constexpr int kWidth = Width;
  static constexpr int kRecurrent = Recurrent;
  alignas(64) T values[2][kBatch * Width];
  alignas(64) T product_gradient[kBatch * 3 * Recurrent];
  alignas(64) T step_gradient[Windows * 3 * Recurrent];
  alignas(64) T direct[Windows * Recurrent];
  alignas(64) T through[Windows * Recurrent];
  alignas(64) T transposed_weights[3 * Recurrent * Recurrent];
};

namespace detail {

// Return the arrays that a recurrent layer keeps, from row `row` on.
template <int Layer, class Network, int Windows, int Steps>
GruSequences<typename Network::Scalar> kept_of(WindowBuffer<Network, Windows, Steps>& buffer,
                                               int row) {
  constexpr int kOffset = Windows * Steps * Network::state_offset(Layer);
  constexpr int kWidth = Network::output_dim(Layer);
  return {buffer.gates + 3 * kOffset + row * 3 * kWidth,
          buffer.hidden_product + kOffset + row * kWidth, buffer.previous + kOffset + row * kWidth};
}

// A layer's pre-activations from row `row` on; null where nobody needs them.
template <int Layer, class Network, int Windows, int Steps>
typename Network::Scalar* pre_activation_of(WindowBuffer<Network, Windows, Steps>& buffer,
                                            int row) {
  if constexpr (!needs_pre_activation(Network::activation(Layer))) return nullptr;
  return buffer.pre_activation + Windows * Steps * Network::hidden_offset(Layer) +
         row * Network::output_dim(Layer);
}

template <class Rows, int Layer, class Device, class Network, class T>
void forward_dense_rows(Device device, const Network& network, const T* input, T* output,
                        [[maybe_unused]] T* pre_activation) {
  constexpr Activation kActivation = Network::activation(Layer);
  constexpr int kIn = Network::input_dim(Layer), kOut = Network::output_dim(Layer);
  if constexpr (needs_pre_activation(kActivation)) {
    dense_forward<Activation::identity, Rows::kCount, kIn, kOut>(
        device, network.weights(Layer), network.bias(Layer), input, pre_activation);
    activation_forward<kActivation, Rows::kCount * kOut>(
        device, static_cast<const T*>(pre_activation), output);
  } else {
    dense_forward<kActivation, Rows::kCount, kIn, kOut>(device, network.weights(Layer),
                                                        network.bias(Layer), input, output);
  }
}

// Hidden states of a layer (count, width), and its columns of all layers' (count, kStateDim).
template <int Layer, class Network, class T>
void take_state(const T* all, int count, T* own) {
  constexpr int kWidth = Network::output_dim(Layer);
  for (int row = 0; row < count; row++) {
    const T* from = all + row * Network::kStateDim + Network::state_offset(Layer);
    for (int i = 0; i < kWidth; i++) own[row * kWidth + i] = from[i];
  }
}
template <int Layer, class Network, class T>
void put_state(const T* own, int count, T* all) {
  constexpr int kWidth = Network::output_dim(Layer);
  for (int row = 0; row < count; row++) {
    T* to = all + row * Network::kStateDim + Network::state_offset(Layer);
    for (int i = 0; i < kWidth; i++) to[i] = own[row * kWidth + i];
  }
}

// Run one worker's forward pass: all layers of the windows of Part. `input` and `output` are those
// of all windows.
template <class Part, class Device, class Network, class T, int Windows, int Steps>
void forward_windows_of(Device device, const Network& network, const T* input,
                        const std::uint8_t* begins, T* state, T* output,
                        WindowBuffer<Network, Windows, Steps>& buffer) {
  constexpr int kFirst = Part::kFirst * Steps;
  using Rows = Range<kFirst, Part::kCount * Steps>;
  input += kFirst * Network::kInputDim;
  if (begins != nullptr) begins += kFirst;
  state += Part::kFirst * Network::kStateDim;
  for_each_layer(
      [&](auto number) {
        constexpr int kLayer = decltype(number)::value;
        constexpr int kIn = Network::input_dim(kLayer), kOut = Network::output_dim(kLayer);
        T* result = output + kFirst * kOut;
        if constexpr (kLayer < Network::kLayerCount - 1) {
          result = hidden_rows<kLayer, Windows * Steps, Network>(buffer.hidden, kFirst);
        }
        if constexpr (Network::is_recurrent(kLayer)) {
          T* own = buffer.step_state + Part::kFirst * buffer.kWidest;
          T* product = buffer.step_product + Part::kFirst * 3 * buffer.kWidest;
          take_state<kLayer, Network>(static_cast<const T*>(state), Part::kCount, own);
          gru_forward<Part::kCount, Steps, kIn, kOut>(
              device, network.weights(kLayer), network.bias(kLayer), network.hidden_weights(kLayer),
              network.hidden_bias(kLayer), input, begins, own, product,
              kept_of<kLayer>(buffer, kFirst), result);
          put_state<kLayer, Network>(static_cast<const T*>(own), Part::kCount, state);
        } else {
          forward_dense_rows<Rows, kLayer>(device, network, input, result,
                                           pre_activation_of<kLayer>(buffer, kFirst));
        }
        input = result;
      },
      LayersOf<Network>{});
}

// From the gradient of what goes into a layer's activation, of a dense one, or of its states, of a
// recurrent one, that of what goes into the layer's products, and of the state before the windows.
template <int Layer, class Part, class Device, class Network, class T, int Windows, int Steps,
          class Scratch>
void backward_steps_of(Device device, const std::uint8_t* begins, const T* gradient,
                       WindowBuffer<Network, Windows, Steps>& buffer, T* state_gradient,
                       Scratch& scratch) {
  constexpr int kFirst = Part::kFirst * Steps, kWidth = Network::output_dim(Layer);
  const GruGradients<T> gradients{scratch.product_gradient + kFirst * 3 * kWidth,
                                  scratch.step_gradient + Part::kFirst * 3 * kWidth,
                                  scratch.direct + Part::kFirst * kWidth,
                                  scratch.through + Part::kFirst * kWidth};
  gru_backward_steps<Part::kCount, Steps, kWidth>(
      device, static_cast<const T*>(scratch.transposed_weights),
      begins == nullptr ? nullptr : begins + kFirst, gradient + kFirst * kWidth,
      kept_of<Layer>(buffer, kFirst), gradients);
  if (state_gradient == nullptr) return;
  put_state<Layer, Network>(static_cast<const T*>(gradients.direct), Part::kCount,
                            state_gradient + Part::kFirst * Network::kStateDim);
}

// weights (3 Width, Width) = the transpose of hidden weights (Width, 3 Width)
template <int Width, class T>
void transpose_hidden_weights(const T* hidden_weights, T* weights) {
  for (int i = 0; i < Width; i++) {
    for (int column = 0; column < 3 * Width; column++) {
      weights[column * Width + i] = hidden_weights[i * 3 * Width + column];
    }
  }
}

}  // namespace detail

// The shapes of a pass over windows, as those of PassShapes.
template <int StateWidth, int NetworkState, int StateRows, int Windows>
struct WindowShapes {
  static_assert(Size<StateWidth>::template kIs<NetworkState>,
                "the hidden state's width (columns) differs from that of the network");
  static_assert(Size<StateRows>::template kIs<Windows>,
                "the hidden state's number of rows differs from the number of windows");
  static constexpr bool kFit = StateWidth == NetworkState && StateRows == Windows;
};

// output (rows, OutputDim) = network(input (rows, InputDim)) over all windows of `buffer`. `state`
// (Windows, kStateDim) is the hidden state before the first step of each window, and becomes that
// after the last one. begins (rows): where it is set to zero within a window (gru.h), or null.
template <class Device, class Network, class Input, class State, class Output, class Buffer>
void forward_windows(Device device, const Network& network, const Input& input,
                     const std::uint8_t* begins, State&& state, Output&& output, Buffer& buffer) {
  using States = std::remove_reference_t<State>;
  if constexpr (PassShapesOf<Network, Input, std::remove_reference_t<Output>, Buffer>::kFit &&
                WindowShapes<States::kColumns, Network::kStateDim, States::kRows,
                             Buffer::kWindows>::kFit) {
    constexpr long kMultiplyAdds = long{Buffer::kSteps} * Network::kParameterCount;
    for_rows<Buffer::kWindows, kMultiplyAdds>(device, [&](auto part, auto windows) {
      detail::forward_windows_of<decltype(windows)>(part, network, input.data(), begins,
                                                    state.data(), output.data(), buffer);
    });
  }
}

// One step of each row of input (Rows, InputDim), whose hidden states are `state` (Rows,
// kStateDim).
template <class Device, class Network, class Input, class State, class Output, class Buffer>
void forward_step(Device device, const Network& network, const Input& input, State&& state,
                  Output&& output, Buffer& buffer) {
  static_assert(Size<Buffer::kSteps>::template kIs<1>, "the buffer is for more than one step");
  if constexpr (Buffer::kSteps == 1) {
    forward_windows(device, network, input, nullptr, state, output, buffer);
  }
}

// Accumulate the gradients of all parameters into `parameters_gradient`; write those of the input
// (rows, InputDim) to `input_gradient` and of the state before the windows (Windows, kStateDim) to
// `state_gradient`, unless they are `nullptr`. `output_gradient` (rows, OutputDim) and the contents
// of `buffer` are consumed; the state after the windows has no gradient of its own.
template <class Device, class Network, class Input, class Output, class Buffer, class Scratch,
          class InputGradient>
void backward_windows(Device device, const Network& network, const Input& input,
                      const std::uint8_t* begins, const Output& output, Buffer& buffer,
                      typename Network::Scalar* output_gradient, Network& parameters_gradient,
                      InputGradient input_gradient, typename Network::Scalar* state_gradient,
                      Scratch& scratch) {
  if constexpr (PassShapesOf<Network, Input, Output, Buffer>::kFit &&
                GradientBufferShape<Network, Input::kRows, Scratch>::kFits) {
    using T = typename Network::Scalar;
    static_assert(Scratch::kRecurrent >= Network::widest_recurrent(),
                  "the gradient buffer is narrower than the network's widest recurrent layer");
    constexpr int kRows = Input::kRows, kLast = Network::kLayerCount - 1;
    activation_backward<Network::activation(kLast), kRows * Network::kOutputDim>(
        device, static_cast<const T*>(detail::pre_activation_of<kLast>(buffer, 0)), output.data(),
        output_gradient);
    const T* gradient = output_gradient;
    detail::for_each_layer_from_last(
        [&](auto number) {
          constexpr int kLayer = decltype(number)::value;
          constexpr int kIn = Network::input_dim(kLayer), kOut = Network::output_dim(kLayer);
          constexpr int kColumns = Network::columns(kLayer);
          const T* layer_input = input.data();
          if constexpr (kLayer > 0) {
            layer_input = buffer.hidden + kRows * Network::hidden_offset(kLayer - 1);
          }
          if constexpr (Network::is_recurrent(kLayer)) {
            const auto kept = detail::kept_of<kLayer>(buffer, 0);
            detail::transpose_hidden_weights<kOut>(network.hidden_weights(kLayer),
                                                   scratch.transposed_weights);
            for_rows<Buffer::kWindows, long{Buffer::kSteps} * kOut * kColumns>(
                device, [&](auto part, auto windows) {
                  detail::backward_steps_of<kLayer, decltype(windows)>(
                      part, begins, gradient, buffer, state_gradient, scratch);
                });
            dense_backward_weights<kRows, kOut, kColumns>(
                device, static_cast<const T*>(kept.previous),
                static_cast<const T*>(scratch.product_gradient),
                parameters_gradient.hidden_weights(kLayer),
                parameters_gradient.hidden_bias(kLayer));
            gradient = kept.gates;
          }
          dense_backward_weights<kRows, kIn, kColumns>(device, layer_input, gradient,
                                                       parameters_gradient.weights(kLayer),
                                                       parameters_gradient.bias(kLayer));
          if constexpr (kLayer > 0 || !std::is_null_pointer_v<InputGradient>) {
            T* previous;
            constexpr Activation kBefore = kLayer > 0
                                               ? Network::activation(kLayer > 0 ? kLayer - 1 : 0)
                                               : Activation::identity;
            const T* pre = nullptr;
            if constexpr (kLayer > 0) {
              previous = scratch.values[kLayer % 2];
              pre = detail::pre_activation_of<kLayer - 1>(buffer, 0);
            } else {
              previous = input_gradient;
            }
            for_rows<kRows, long{kIn} * kColumns>(device, [&](auto part, auto rows) {
              constexpr int kFirst = decltype(rows)::kFirst;
              dense_backward_input<kBefore, decltype(rows)::kCount, kIn, kColumns>(
                  part, network.weights(kLayer), gradient + kFirst * kColumns,
                  pre == nullptr ? nullptr : pre + kFirst * kIn, layer_input + kFirst * kIn,
                  previous + kFirst * kIn);
            });
            gradient = previous;
          }
        },
        detail::LayersOf<Network>{});
  }
}

}  // namespace rlt
