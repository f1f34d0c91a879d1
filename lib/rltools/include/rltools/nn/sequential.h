// A network whose layers are a list in which dense and recurrent ones stand:
//   Sequential<float, 22, Dense<16, Activation::relu>, Gru<16>, Dense<4, Activation::identity>>
// It has a hidden state, and is run step by step or over windows of steps (window_passes.h). A
// network without a recurrent layer is an Mlp (mlp.h).
#pragma once

#include <type_traits>

#include "rltools/nn/mlp.h"

namespace rlt {

// The layers. A recurrent one has no activation but its own.
template <int Width, Activation A>
struct Dense {
  static constexpr int kWidth = Width;
  static constexpr Activation kActivation = A;
  static constexpr bool kIsRecurrent = false;
};
template <int Width>
struct Gru {
  static constexpr int kWidth = Width;
  static constexpr Activation kActivation = Activation::identity;
  static constexpr bool kIsRecurrent = true;
};
// Images have it (recurrent_at_run_time.h), and networks that learn do not.
template <int Width>
struct Lstm : Gru<Width> {
  static_assert(Width < 0, "an Lstm is run and not trained: take a Gru");
};

// Parameters in one flat array, layer by layer: weights (in, columns), bias (columns), and of a
// recurrent layer hidden weights (width, columns) and hidden bias (columns). Columns are a dense
// layer's width, and a GRU's gates side by side, 3 width.
template <class T, int InputDim, class... Layers>
struct Sequential {
  using Scalar = T;
  static constexpr int kLayerCount = static_cast<int>(sizeof...(Layers));
  static_assert((Layers::kIsRecurrent || ...), "a Sequential without a recurrent layer is an Mlp");

  struct Shape {
    static constexpr int kCount = kLayerCount + 1;
    static constexpr int kWidth[kCount] = {InputDim, Layers::kWidth...};
  };
  static constexpr bool kRecurrent[kLayerCount] = {Layers::kIsRecurrent...};
  static constexpr Activation kActivations[kLayerCount] = {Layers::kActivation...};
  static constexpr int kInputDim = InputDim;
  static constexpr int kOutputDim = Shape::kWidth[kLayerCount];

  static constexpr int input_dim(int layer) { return Shape::kWidth[layer]; }
  static constexpr int output_dim(int layer) { return Shape::kWidth[layer + 1]; }
  static constexpr Activation activation(int layer) { return kActivations[layer]; }
  static constexpr bool is_recurrent(int layer) { return kRecurrent[layer]; }
  static constexpr const char* layer_name(int layer) {
    return is_recurrent(layer) ? "gru" : "dense";
  }
  static constexpr int columns(int layer) {
    return is_recurrent(layer) ? 3 * output_dim(layer) : output_dim(layer);
  }
  static constexpr int parameter_count(int layer) {
    return (input_dim(layer) + 1) * columns(layer) +
           (is_recurrent(layer) ? (output_dim(layer) + 1) * columns(layer) : 0);
  }
  static constexpr int weights_offset(int layer) {
    int offset = 0;
    for (int l = 0; l < layer; l++) offset += parameter_count(l);
    return offset;
  }
  static constexpr int bias_offset(int layer) {
    return weights_offset(layer) + input_dim(layer) * columns(layer);
  }
  static constexpr int hidden_weights_offset(int layer) {
    return bias_offset(layer) + columns(layer);
  }
  static constexpr int hidden_bias_offset(int layer) {
    return hidden_weights_offset(layer) + output_dim(layer) * columns(layer);
  }
  static constexpr int kParameterCount = weights_offset(kLayerCount);
  static constexpr int max_of(int a, int b) { return a > b ? a : b; }
  static constexpr int widest_hidden() {
    int widest = 1;
    for (int l = 0; l + 1 < kLayerCount; l++) widest = max_of(widest, output_dim(l));
    return widest;
  }
  // Number of hidden activations of one sample before layer `layer`.
  static constexpr int hidden_offset(int layer) {
    int offset = 0;
    for (int l = 0; l < layer; l++) offset += output_dim(l);
    return offset;
  }
  static constexpr int kHiddenCount = hidden_offset(kLayerCount - 1);
  // The same of hidden states, and the whole one.
  static constexpr int state_offset(int layer) {
    int offset = 0;
    for (int l = 0; l < layer; l++) offset += is_recurrent(l) ? output_dim(l) : 0;
    return offset;
  }
  static constexpr int kStateDim = state_offset(kLayerCount);
  static constexpr int widest_recurrent() {
    int widest = 1;
    for (int l = 0; l < kLayerCount; l++) {
      if (is_recurrent(l)) widest = max_of(widest, output_dim(l));
    }
    return widest;
  }
  static constexpr bool stores_pre_activation() {
    for (const Activation activation : kActivations) {
      if (needs_pre_activation(activation)) return true;
    }
    return false;
  }

  // A MlpBuffer of it can be named, so that an algorithm that learns none says that in a sentence.
  static constexpr bool kStoresHiddenPreActivation = false, kStoresOutputPreActivation = false;

  alignas(64) T values[kParameterCount];

  T* weights(int layer) { return values + weights_offset(layer); }
  const T* weights(int layer) const { return values + weights_offset(layer); }
  T* bias(int layer) { return values + bias_offset(layer); }
  const T* bias(int layer) const { return values + bias_offset(layer); }
  T* hidden_weights(int layer) { return values + hidden_weights_offset(layer); }
  const T* hidden_weights(int layer) const { return values + hidden_weights_offset(layer); }
  T* hidden_bias(int layer) { return values + hidden_bias_offset(layer); }
  const T* hidden_bias(int layer) const { return values + hidden_bias_offset(layer); }
};

template <class T, int InputDim, class... Layers>
struct HiddenState<Sequential<T, InputDim, Layers...>> {
  static constexpr int kDim = Sequential<T, InputDim, Layers...>::kStateDim;
};
// PyTorch's defaults: a dense layer's weights and bias as initialize_kaiming() of mlp.h has them,
// a recurrent layer's uniform in +-1/sqrt(width).
template <class Device, class T, int InputDim, class... Layers>
void initialize_kaiming(Device, Sequential<T, InputDim, Layers...>& network, std::uint32_t seed,
                        std::uint32_t network_index) {
  using Network = Sequential<T, InputDim, Layers...>;
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    const RandomStream stream{seed, Purpose::initialize, network_index,
                              static_cast<std::uint32_t>(layer)};
    const int fan_in =
        Network::is_recurrent(layer) ? Network::output_dim(layer) : Network::input_dim(layer);
    const T bound = T(1) / math::sqrt(static_cast<T>(fan_in));
    for (int i = 0; i < Network::parameter_count(layer); i++) {
      network.weights(layer)[i] = uniform<T>(stream, static_cast<std::uint32_t>(i), -bound, bound);
    }
  }
}

// Visit the network's arrays, layer by layer, in the order in which they lie.
template <class T, int InputDim, class... Layers, class Visitor>
void for_each_tensor(const char* name, Sequential<T, InputDim, Layers...>& network,
                     Visitor&& visitor) {
  using Network = Sequential<T, InputDim, Layers...>;
  static_assert(Network::kLayerCount <= 10, "a network has at most ten layers");
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    const auto in = static_cast<std::uint32_t>(Network::input_dim(layer));
    const auto out = static_cast<std::uint32_t>(Network::output_dim(layer));
    const auto columns = static_cast<std::uint32_t>(Network::columns(layer));
    const DataType type = data_type_of(network.values);
    const auto visit = [&](std::uint32_t rows, const char* part, T* values) {
      visitor(TensorInfo{name, type, rows, columns, layer, part}, static_cast<void*>(values));
    };
    visit(in, "weights", network.weights(layer));
    visit(1, "bias", network.bias(layer));
    if (!Network::is_recurrent(layer)) continue;
    visit(out, "hidden_weights", network.hidden_weights(layer));
    visit(1, "hidden_bias", network.hidden_bias(layer));
  }
}

}  // namespace rlt
