// Multi-layer perceptron: parameters in one flat array, forward and backward passes over a batch
// (or a tile of one).
#pragma once

#include <type_traits>
#include <utility>

#include "rltools/core/arrays.h"
#include "rltools/core/random.h"
#include "rltools/core/tasks.h"
#include "rltools/core/tensor.h"
#include "rltools/nn/dense.h"

namespace rlt {

// Parameters of a fully connected network: for each layer its weights (in, out), then its bias
// (out).
//   Mlp<float, Dimensions<3, 64, 64, 1>, Activation::relu, Activation::tanh>
template <int... Widths>
struct Dimensions {
  static constexpr int kCount = static_cast<int>(sizeof...(Widths));
  static constexpr int kWidth[kCount] = {Widths...};
};

template <class T, class Dimensions_, Activation Hidden, Activation Output>
struct Mlp {
  using Scalar = T;
  using Shape = Dimensions_;
  static_assert(Shape::kCount >= 2, "a network needs at least an input and an output width");
  static constexpr int kLayerCount = Shape::kCount - 1;
  static constexpr int kInputDim = Shape::kWidth[0];
  static constexpr int kOutputDim = Shape::kWidth[kLayerCount];

  static constexpr int input_dim(int layer) { return Shape::kWidth[layer]; }
  static constexpr int output_dim(int layer) { return Shape::kWidth[layer + 1]; }
  static constexpr Activation activation(int layer) {
    return layer == kLayerCount - 1 ? Output : Hidden;
  }
  static constexpr int weights_offset(int layer) {
    int offset = 0;
    for (int l = 0; l < layer; l++) offset += (input_dim(l) + 1) * output_dim(l);
    return offset;
  }
  static constexpr int bias_offset(int layer) {
    return weights_offset(layer) + input_dim(layer) * output_dim(layer);
  }
  static constexpr int kParameterCount = weights_offset(kLayerCount);
  static constexpr int widest_hidden() {
    int widest = 1;
    for (int l = 0; l + 1 < kLayerCount; l++) widest = max_of(widest, output_dim(l));
    return widest;
  }
  static constexpr int max_of(int a, int b) { return a > b ? a : b; }
  // Number of hidden activations of one sample before layer `layer`.
  static constexpr int hidden_offset(int layer) {
    int offset = 0;
    for (int l = 0; l < layer; l++) offset += output_dim(l);
    return offset;
  }
  static constexpr int kHiddenCount = hidden_offset(kLayerCount - 1);
  static constexpr bool kStoresHiddenPreActivation = needs_pre_activation(Hidden);
  static constexpr bool kStoresOutputPreActivation = needs_pre_activation(Output);

  alignas(64) T values[kParameterCount];

  T* weights(int layer) { return values + weights_offset(layer); }
  const T* weights(int layer) const { return values + weights_offset(layer); }
  T* bias(int layer) { return values + bias_offset(layer); }
  const T* bias(int layer) const { return values + bias_offset(layer); }
};

// The one with ReLU between its layers.
template <class T, Activation Output, int... Widths>
using ReluMlp = Mlp<T, Dimensions<Widths...>, Activation::relu, Output>;

namespace detail {

template <class Network, int... Widths>
struct Rewidened;
template <class T, int... Before, Activation Hidden, Activation Output, int... Widths>
struct Rewidened<Mlp<T, Dimensions<Before...>, Hidden, Output>, Widths...> {
  using Old = Mlp<T, Dimensions<Before...>, Hidden, Output>;
  using Type = Mlp<T, Dimensions<Old::kInputDim, Widths..., Old::kOutputDim>, Hidden, Output>;
};

}  // namespace detail

// The network with hidden layers of these widths in place of its own.
template <class Network, int... Widths>
using WithHiddenWidths = typename detail::Rewidened<Network, Widths...>::Type;

// Numbers of a network's hidden state: none of an Mlp, and those of a Sequential (sequential.h).
template <class Network>
struct HiddenState {
  static constexpr int kDim = 0;
};
template <class Network>
constexpr int kStateDim = HiddenState<Network>::kDim;
template <class Network>
constexpr bool kIsRecurrent = kStateDim<Network> > 0;

// Arrays that a forward pass over `Batch` samples leaves for the backward pass, and the backward
// pass's own space. hidden: for each hidden layer (Batch, width). Pre-activations are kept only
// where a derivative needs them.
template <class Network, int Batch>
struct MlpBuffer {
  using Owner = Network;
  static constexpr int kBatch = Batch;
  using T = typename Network::Scalar;
  static constexpr int kHidden = Network::kHiddenCount > 0 ? Network::kHiddenCount : 1;
  alignas(64) T hidden[Batch * kHidden];
  alignas(64) T hidden_pre[Network::kStoresHiddenPreActivation ? Batch * kHidden : 1];
  alignas(64) T output_pre[Network::kStoresOutputPreActivation ? Batch * Network::kOutputDim : 1];
};

// Two gradients of hidden activations, used in turn by the backward pass; any network may share one
// of these.
template <class T, int Batch, int Width>
struct GradientBuffer {
  static constexpr int kBatch = Batch;
  static constexpr int kWidth = Width;
  alignas(64) T values[2][Batch * Width];
};

namespace detail {

// Multiply-adds of one sample in a forward pass, or in a backward pass that leaves the parameters.
template <class Network>
constexpr long multiply_adds() {
  long count = 0;
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    count += long{Network::input_dim(layer)} * Network::output_dim(layer);
  }
  return count;
}

// Return a hidden layer's activations, or pre-activations, from sample `first` on.
template <int Layer, int Batch, class Network, class T>
inline T* hidden_rows(T* hidden, int first) {
  return hidden + Batch * Network::hidden_offset(Layer) + first * Network::output_dim(Layer);
}

// Return a hidden layer's pre-activations from sample `first` on; null where the derivative does
// not need it.
template <int Layer, class Network, int Batch>
inline const typename Network::Scalar* pre_activation(const MlpBuffer<Network, Batch>& buffer,
                                                      int first) {
  if constexpr (!needs_pre_activation(Network::activation(Layer))) {
    return nullptr;
  } else if constexpr (Layer == Network::kLayerCount - 1) {
    return buffer.output_pre;
  } else {
    return hidden_rows<Layer, Batch, Network>(buffer.hidden_pre, first);
  }
}

// function(integral_constant) for the layers 0, 1, ..., or from the last one to 0.
template <class Function, int... Layers>
inline void for_each_layer(Function&& function, std::integer_sequence<int, Layers...>) {
  (function(std::integral_constant<int, Layers>{}), ...);
}
template <class Function, int... Layers>
inline void for_each_layer_from_last(Function&& function, std::integer_sequence<int, Layers...>) {
  constexpr int kLast = static_cast<int>(sizeof...(Layers)) - 1;
  (function(std::integral_constant<int, kLast - Layers>{}), ...);
}
template <class Network>
using LayersOf = std::make_integer_sequence<int, Network::kLayerCount>;

// ---- What one worker does, for the samples of Rows ----------------------------------------------

// A layer; `input` and `output` are those of the whole batch, or of a hidden layer.
template <int Layer, int Batch, class Rows, class Device, class Network, class T>
inline void forward_layer(Device device, const Network& network, const T* input, T* output,
                          MlpBuffer<Network, Batch>& buffer) {
  constexpr Activation kActivation = Network::activation(Layer);
  constexpr int kIn = Network::input_dim(Layer);
  constexpr int kOut = Network::output_dim(Layer);
  constexpr int kFirst = Rows::kFirst;
  const T* own_input = input + kFirst * kIn;
  T* own_output = output + kFirst * kOut;
  if constexpr (needs_pre_activation(kActivation)) {
    T* pre = Layer == Network::kLayerCount - 1
                 ? buffer.output_pre + kFirst * kOut
                 : hidden_rows<Layer, Batch, Network>(buffer.hidden_pre, kFirst);
    dense_forward<Activation::identity, Rows::kCount, kIn, kOut>(
        device, network.weights(Layer), network.bias(Layer), own_input, pre);
    activation_forward<kActivation, Rows::kCount * kOut>(device, pre, own_output);
  } else {
    dense_forward<kActivation, Rows::kCount, kIn, kOut>(device, network.weights(Layer),
                                                        network.bias(Layer), own_input, own_output);
  }
}

template <int Batch, class Rows, class Device, class Network, class T>
inline void forward_rows(Device device, const Network& network, const T* input, T* output,
                         MlpBuffer<Network, Batch>& buffer) {
  for_each_layer(
      [&](auto layer) {
        constexpr int kLayer = decltype(layer)::value;
        T* result = output;
        if constexpr (kLayer < Network::kLayerCount - 1) {
          result = hidden_rows<kLayer, Batch, Network>(buffer.hidden, 0);
        }
        forward_layer<kLayer, Batch, Rows>(device, network, input, result, buffer);
        input = result;
      },
      LayersOf<Network>{});
}

// From the gradient of what goes into a layer's activation that of what goes into the activation
// before it; of the first layer, of the network's inputs from FirstInput on. Both gradients begin
// at the first sample of Rows.
template <int Layer, int Batch, class Rows, int FirstInput = 0, class Device, class Network,
          class T>
inline void backward_input_layer(Device device, const Network& network,
                                 const MlpBuffer<Network, Batch>& buffer, const T* gradient,
                                 T* input_gradient) {
  constexpr int kIn = Network::input_dim(Layer);
  constexpr int kOut = Network::output_dim(Layer);
  if constexpr (Layer > 0) {
    dense_backward_input<Network::activation(Layer - 1), Rows::kCount, kIn, kOut>(
        device, network.weights(Layer), gradient, pre_activation<Layer - 1>(buffer, Rows::kFirst),
        hidden_rows<Layer - 1, Batch, Network>(buffer.hidden, Rows::kFirst), input_gradient);
  } else {
    dense_backward_input<Activation::identity, Rows::kCount, kIn - FirstInput, kOut>(
        device, network.weights(0) + FirstInput * kOut, gradient, static_cast<const T*>(nullptr),
        static_cast<const T*>(nullptr), input_gradient);
  }
}

// All layers. Each worker has a part of the scratch memory that does not depend on the layers'
// widths: workers are not at the same layer.
template <int Batch, class Rows, int FirstInput, class Device, class Network, class T, int Width>
inline void backward_input_rows(Device device, const Network& network,
                                const MlpBuffer<Network, Batch>& buffer, const T* gradient,
                                T* input_gradient, GradientBuffer<T, Batch, Width>& scratch) {
  for_each_layer_from_last(
      [&](auto layer) {
        constexpr int kLayer = decltype(layer)::value;
        T* previous = input_gradient;
        if constexpr (kLayer > 0) previous = scratch.values[kLayer % 2] + Rows::kFirst * Width;
        backward_input_layer<kLayer, Batch, Rows, FirstInput>(device, network, buffer, gradient,
                                                              previous);
        gradient = previous;
      },
      LayersOf<Network>{});
}

}  // namespace detail

// The shapes of a forward or backward pass, as numbers to keep the compiler's output short.
// Instantiating it says in one sentence what does not fit.
template <int InputWidth, int NetworkInput, int OutputWidth, int NetworkOutput, int InputRows,
          int OutputRows, int BufferRows, bool IsBufferOfNetwork>
struct PassShapes {
  static_assert(Size<InputWidth>::template kIs<NetworkInput>,
                "the input's width (columns) differs from the width that the network takes");
  static_assert(Size<OutputWidth>::template kIs<NetworkOutput>,
                "the output's width (columns) differs from the width that the network gives");
  static_assert(Size<OutputRows>::template kIs<InputRows>,
                "the output's number of samples (rows) differs from that of the input");
  static_assert(Size<BufferRows>::template kIs<InputRows>,
                "the buffer's number of samples (rows) differs from that of the input");
  static_assert(IsBufferOfNetwork, "the buffer was made for another network");
  static constexpr bool kFit = InputWidth == NetworkInput && OutputWidth == NetworkOutput &&
                               OutputRows == InputRows && BufferRows == InputRows &&
                               IsBufferOfNetwork;
};

template <class Network, class Input, class Output, class Buffer>
using PassShapesOf = PassShapes<Input::kColumns, Network::kInputDim, Output::kColumns,
                                Network::kOutputDim, Input::kRows, Output::kRows, Buffer::kBatch,
                                std::is_same_v<typename Buffer::Owner, Network>>;

// The same for the gradient buffer of a backward pass.
template <class Network, int Batch, class Scratch>
struct GradientBufferShape {
  static_assert(Size<Scratch::kBatch>::template kIs<Batch>,
                "the gradient buffer's number of samples (rows) differs from that of the input");
  static_assert(Scratch::kWidth >= Network::widest_hidden(),
                "the gradient buffer is narrower than the network's widest hidden layer");
  static constexpr bool kFits =
      Scratch::kBatch == Batch && Scratch::kWidth >= Network::widest_hidden();
};

// output (Batch, OutputDim) = network(input (Batch, InputDim)); `buffer` keeps the hidden
// activations.
template <class Device, class Network, class Input, class Output, class Buffer>
void forward(Device device, const Network& network, const Input& input, Output&& output,
             Buffer& buffer) {
  if constexpr (PassShapesOf<Network, Input, std::remove_reference_t<Output>, Buffer>::kFit) {
    for_rows<Input::kRows, detail::multiply_adds<Network>()>(device, [&](auto part, auto rows) {
      detail::forward_rows<Input::kRows, decltype(rows)>(part, network, input.data(), output.data(),
                                                         buffer);
    });
  }
}

// Accumulate the gradients of all parameters into `parameters_gradient` and, unless it is
// `nullptr`, writes the gradient of the input to `input_gradient` (Batch, InputDim).
// `output_gradient` (Batch, OutputDim) is consumed. The gradient of a layer's parameters takes all
// rows, so that workers meet at each layer.
template <class Device, class Network, class Input, class Output, class Buffer, class Scratch,
          class InputGradient>
void backward(Device device, const Network& network, const Input& input, const Output& output,
              const Buffer& buffer, typename Network::Scalar* output_gradient,
              Network& parameters_gradient, InputGradient input_gradient, Scratch& scratch) {
  if constexpr (PassShapesOf<Network, Input, Output, Buffer>::kFit &&
                GradientBufferShape<Network, Input::kRows, Scratch>::kFits) {
    using T = typename Network::Scalar;
    constexpr int kBatch = Input::kRows;
    constexpr int kLast = Network::kLayerCount - 1;
    activation_backward<Network::activation(kLast), Input::kRows * Network::kOutputDim>(
        device, detail::pre_activation<kLast>(buffer, 0), output.data(), output_gradient);
    const T* gradient = output_gradient;
    detail::for_each_layer_from_last(
        [&](auto layer) {
          constexpr int kLayer = decltype(layer)::value;
          constexpr int kIn = Network::input_dim(kLayer);
          constexpr int kOut = Network::output_dim(kLayer);
          const T* layer_input = input.data();
          if constexpr (kLayer > 0) {
            layer_input = buffer.hidden + kBatch * Network::hidden_offset(kLayer - 1);
          }
          dense_backward_weights<kBatch, kIn, kOut>(device, layer_input, gradient,
                                                    parameters_gradient.weights(kLayer),
                                                    parameters_gradient.bias(kLayer));
          if constexpr (kLayer > 0 || !std::is_null_pointer_v<InputGradient>) {
            T* previous;
            if constexpr (kLayer > 0) {
              previous = scratch.values[kLayer % 2];
            } else {
              previous = input_gradient;
            }
            for_rows<kBatch, long{kIn} * kOut>(device, [&](auto part, auto rows) {
              constexpr int kFirst = decltype(rows)::kFirst;
              detail::backward_input_layer<kLayer, kBatch, decltype(rows)>(
                  part, network, buffer, gradient + kFirst * kOut, previous + kFirst * kIn);
            });
            gradient = previous;
          }
        },
        detail::LayersOf<Network>{});
  }
}

// As backward, but only the gradient of the input (the parameters are not touched), and of that the
// columns from FirstInput on: input_gradient (Batch, InputDim - FirstInput).
template <int FirstInput = 0, class Device, class Network, class Input, class Output, class Buffer,
          class Scratch>
void backward_input(Device device, const Network& network, const Input&, const Output& output,
                    const Buffer& buffer, typename Network::Scalar* output_gradient,
                    typename Network::Scalar* input_gradient, Scratch& scratch) {
  if constexpr (PassShapesOf<Network, Input, Output, Buffer>::kFit &&
                GradientBufferShape<Network, Input::kRows, Scratch>::kFits) {
    constexpr int kLast = Network::kLayerCount - 1;
    activation_backward<Network::activation(kLast), Input::kRows * Network::kOutputDim>(
        device, detail::pre_activation<kLast>(buffer, 0), output.data(), output_gradient);
    for_rows<Input::kRows, detail::multiply_adds<Network>()>(device, [&](auto part, auto rows) {
      using T = typename Network::Scalar;
      constexpr int kFirst = decltype(rows)::kFirst;
      detail::backward_input_rows<Input::kRows, decltype(rows), FirstInput>(
          part, network, buffer,
          static_cast<const T*>(output_gradient + kFirst * Network::kOutputDim),
          input_gradient + kFirst * (Network::kInputDim - FirstInput), scratch);
    });
  }
}

// Kaiming-uniform initialization (He et al. 2015) with negative slope sqrt(5), which is PyTorch's
// default for linear layers: weights and biases uniform in +-1/sqrt(fan_in). `network_index` gives
// each network its own random numbers.
template <class Device, class Network>
void initialize_kaiming(Device, Network& network, std::uint32_t seed, std::uint32_t network_index) {
  using T = typename Network::Scalar;
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    const RandomStream stream{seed, Purpose::initialize, network_index,
                              static_cast<std::uint32_t>(layer)};
    const int fan_in = Network::input_dim(layer);
    const int count = (fan_in + 1) * Network::output_dim(layer);  // weights, then bias
    const T bound = T(1) / math::sqrt(static_cast<T>(fan_in));
    for (int i = 0; i < count; i++) {
      network.weights(layer)[i] = uniform<T>(stream, static_cast<std::uint32_t>(i), -bound, bound);
    }
  }
}

// Visit the network's arrays, layer by layer, weights before bias: visitor(const TensorInfo&,
// void* data).
template <class Network, class Visitor>
void for_each_tensor(const char* name, Network& network, Visitor&& visitor) {
  static_assert(Network::kLayerCount <= 10, "a network has at most ten layers");
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    const auto in = static_cast<std::uint32_t>(Network::input_dim(layer));
    const auto out = static_cast<std::uint32_t>(Network::output_dim(layer));
    const DataType type = data_type_of(network.values);
    visitor(TensorInfo{name, type, in, out, layer, "weights"},
            static_cast<void*>(network.weights(layer)));
    visitor(TensorInfo{name, type, 1, out, layer, "bias"}, static_cast<void*>(network.bias(layer)));
  }
}

template <class Device, class Network>
void set_zero(Device device, Network& network) {
  fill<Network::kParameterCount>(device, typename Network::Scalar(0), network.values);
}

}  // namespace rlt
