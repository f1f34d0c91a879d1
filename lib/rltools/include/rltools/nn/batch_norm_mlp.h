// A multi-layer perceptron with batch normalization before each of its layers, as XQC's networks
// are (Palenicek et al. 2025, arXiv 2509.25174):
//
//   x = norm(input);  for each hidden layer: x = ReLU(norm(weights x));  output = weights x + bias
//
// Its weights have unit length (normalize_weights()). In training a pass takes mean and variance
// from its batch, which has to be a whole one. Otherwise it takes their running averages, with
// which each normalization but the first is a part of the layer before it: fold() gives the Mlp
// that has the same outputs, for acting, for a policy's image, and for gradients with respect to
// inputs.
#pragma once

#include "rltools/core/tasks.h"
#include "rltools/nn/batch_norm.h"
#include "rltools/nn/mlp.h"
#include "rltools/nn/orthogonal.h"

namespace rlt {

// Parameters in one flat array: for each layer the scale and bias (in) of the normalization before
// it and its weights (in, out), and at the end the output's bias.
template <class T, class Dimensions_>
struct BatchNormMlp {
  using Scalar = T;
  using Shape = Dimensions_;
  static_assert(Shape::kCount >= 2, "a network needs at least an input and an output width");
  static constexpr int kLayerCount = Shape::kCount - 1;
  static constexpr int kInputDim = Shape::kWidth[0];
  static constexpr int kOutputDim = Shape::kWidth[kLayerCount];
  // The Mlp that fold() gives.
  using Folded = Mlp<T, Shape, Activation::relu, Activation::identity>;

  static constexpr int input_dim(int layer) { return Shape::kWidth[layer]; }
  static constexpr int output_dim(int layer) { return Shape::kWidth[layer + 1]; }
  static constexpr Activation activation(int layer) { return Folded::activation(layer); }
  static constexpr int max_of(int a, int b) { return a > b ? a : b; }
  static constexpr int widest_hidden() { return Folded::widest_hidden(); }
  static constexpr int widest_input() { return max_of(kInputDim, widest_hidden()); }
  // Numbers of all normalizations before that of layer `layer`.
  static constexpr int norm_offset(int layer) {
    int offset = 0;
    for (int l = 0; l < layer; l++) offset += input_dim(l);
    return offset;
  }
  static constexpr int kNormCount = norm_offset(kLayerCount);
  static constexpr int scale_offset(int layer) {
    int offset = 0;
    for (int l = 0; l < layer; l++) offset += input_dim(l) * (2 + output_dim(l));
    return offset;
  }
  static constexpr int kParameterCount = scale_offset(kLayerCount) + kOutputDim;

  alignas(64) T values[kParameterCount];

  T* norm_scale(int layer) { return values + scale_offset(layer); }
  const T* norm_scale(int layer) const { return values + scale_offset(layer); }
  T* norm_bias(int layer) { return norm_scale(layer) + input_dim(layer); }
  const T* norm_bias(int layer) const { return norm_scale(layer) + input_dim(layer); }
  T* weights(int layer) { return norm_scale(layer) + 2 * input_dim(layer); }
  const T* weights(int layer) const { return norm_scale(layer) + 2 * input_dim(layer); }
  T* output_bias() { return values + scale_offset(kLayerCount); }
  const T* output_bias() const { return values + scale_offset(kLayerCount); }
};

template <class Network>
constexpr bool kIsBatchNormMlp = false;
template <class T, class Shape>
constexpr bool kIsBatchNormMlp<BatchNormMlp<T, Shape>> = true;

namespace detail {

template <class T, int... Before, int... Widths>
struct Rewidened<BatchNormMlp<T, Dimensions<Before...>>, Widths...> {
  using Old = BatchNormMlp<T, Dimensions<Before...>>;
  using Type = BatchNormMlp<T, Dimensions<Old::kInputDim, Widths..., Old::kOutputDim>>;
};

}  // namespace detail

// Mean and variance of each normalized number, as running averages over the updates.
template <class Network>
struct BatchNormStatistics {
  using T = typename Network::Scalar;
  T mean[Network::kNormCount];
  T variance[Network::kNormCount];
};

// Arrays that a forward pass over `Batch` samples leaves for the backward pass. For each layer:
// what was normalized and what goes into the layer (Batch, in), and of the batch mean, variance
// and 1 / sqrt(variance + epsilon) (in).
template <class Network, int Batch>
struct BatchNormBuffer {
  using Owner = Network;
  static constexpr int kBatch = Batch;
  using T = typename Network::Scalar;
  alignas(64) T normalized[Batch * Network::kNormCount];
  alignas(64) T input[Batch * Network::kNormCount];
  BatchNormStatistics<Network> batch;
  T inverse_std[Network::kNormCount];

  T* normalized_of(int layer) { return normalized + Batch * Network::norm_offset(layer); }
  const T* normalized_of(int layer) const {
    return normalized + Batch * Network::norm_offset(layer);
  }
  T* input_of(int layer) { return input + Batch * Network::norm_offset(layer); }
  const T* input_of(int layer) const { return input + Batch * Network::norm_offset(layer); }
};

namespace detail {

// A layer's bias before a normalization, which would take any away again.
template <class T, int Width>
struct NoBias {
  static constexpr T kZero[Width] = {};
};

// function(one worker, Range of columns) for the columns of a normalization.
template <int Batch, int Width, class Device, class Function>
void for_norm_columns(Device device, Function&& function) {
  constexpr int kCacheLine = 16;  // floats
  constexpr int kParts = parts_of<Device>(long{Batch} * Width, 16384, 16384);
  for_ranges<Width, kParts, kCacheLine>(device, function);
}

}  // namespace detail

// Run `input` (Batch, InputDim) through the network with the batch's own means and variances, and
// set `output` (Rows, OutputDim) for the Rows samples from FirstRow on; the others count in means
// and variances alone.
template <int FirstRow = 0, class Device, class T, class Shape, class Input, class Output,
          int Batch>
void forward_training(Device device, const BatchNormMlp<T, Shape>& network, const Input& input,
                      Output& output, BatchNormBuffer<BatchNormMlp<T, Shape>, Batch>& buffer) {
  using Network = BatchNormMlp<T, Shape>;
  static_assert(Size<Input::kRows>::template kIs<Batch>,
                "the input's number of samples (rows) differs from that of the buffer");
  static_assert(Size<Input::kColumns>::template kIs<Network::kInputDim>,
                "the input's width (columns) differs from the width that the network takes");
  static_assert(Size<Output::kColumns>::template kIs<Network::kOutputDim>,
                "the output's width (columns) differs from the width that the network gives");
  static_assert(FirstRow + Output::kRows <= Batch, "the output has more rows than the batch");
  __builtin_memcpy(buffer.normalized, input.data(), sizeof(T) * Batch * Network::kInputDim);
  detail::for_each_layer(
      [&](auto index) {
        constexpr int kLayer = decltype(index)::value;
        constexpr int kIn = Network::input_dim(kLayer), kOut = Network::output_dim(kLayer);
        constexpr int kOffset = Network::norm_offset(kLayer);
        constexpr Activation kActivation = kLayer == 0 ? Activation::identity : Activation::relu;
        detail::for_norm_columns<Batch, kIn>(device, [&](auto part, auto columns) {
          batch_norm_forward<kActivation, Batch, kIn, decltype(columns)>(
              part, network.norm_scale(kLayer), network.norm_bias(kLayer),
              buffer.normalized_of(kLayer), buffer.input_of(kLayer), buffer.batch.mean + kOffset,
              buffer.batch.variance + kOffset, buffer.inverse_std + kOffset);
        });
        constexpr bool kIsLast = kLayer == Network::kLayerCount - 1;
        constexpr int kRows = kIsLast ? Output::kRows : Batch;
        const T* own = buffer.input_of(kLayer) + (kIsLast ? FirstRow * kIn : 0);
        const T* bias = kIsLast ? network.output_bias() : detail::NoBias<T, kOut>::kZero;
        T* result;
        if constexpr (kIsLast) {
          result = output.data();
        } else {
          result = buffer.normalized_of(kLayer + 1);
        }
        for_rows<kRows, long{kIn} * kOut>(device, [&](auto part, auto rows) {
          constexpr int kFirst = decltype(rows)::kFirst;
          dense_forward<Activation::identity, decltype(rows)::kCount, kIn, kOut>(
              part, network.weights(kLayer), bias, own + kFirst * kIn, result + kFirst * kOut);
        });
      },
      detail::LayersOf<Network>{});
}

// Accumulate the gradients of all parameters, from output_gradient (Rows, OutputDim) of the samples
// from FirstRow on; the others have no part in the loss but by means and variances.
template <int FirstRow = 0, class Device, class T, class Shape, class OutputGradient, int Batch,
          int Width>
void backward_training(Device device, const BatchNormMlp<T, Shape>& network,
                       const BatchNormBuffer<BatchNormMlp<T, Shape>, Batch>& buffer,
                       const OutputGradient& output_gradient,
                       BatchNormMlp<T, Shape>& parameters_gradient,
                       GradientBuffer<T, Batch, Width>& scratch) {
  using Network = BatchNormMlp<T, Shape>;
  static_assert(Width >= Network::widest_input(),
                "the gradient buffer is narrower than the network's widest layer");
  static_assert(FirstRow + OutputGradient::kRows <= Batch, "more rows than the batch");
  const T* gradient = output_gradient.data();
  detail::for_each_layer_from_last(
      [&](auto index) {
        constexpr int kLayer = decltype(index)::value;
        constexpr int kIn = Network::input_dim(kLayer), kOut = Network::output_dim(kLayer);
        constexpr int kOffset = Network::norm_offset(kLayer);
        constexpr bool kIsLast = kLayer == Network::kLayerCount - 1;
        constexpr int kRows = kIsLast ? OutputGradient::kRows : Batch;
        constexpr int kFirstRow = kIsLast ? FirstRow : 0;
        const T* own = buffer.input_of(kLayer) + kFirstRow * kIn;
        T unused_bias[kIsLast ? 1 : kOut] = {};
        dense_backward_weights<kRows, kIn, kOut>(
            device, own, gradient, parameters_gradient.weights(kLayer),
            kIsLast ? parameters_gradient.output_bias() : unused_bias);
        T* previous = scratch.values[kLayer % 2];
        if constexpr (kRows < Batch) {
          for (int i = 0; i < kFirstRow * kIn; i++) previous[i] = T(0);
          for (int i = (kFirstRow + kRows) * kIn; i < Batch * kIn; i++) previous[i] = T(0);
        }
        for_rows<kRows, long{kIn} * kOut>(device, [&](auto part, auto rows) {
          constexpr int kFirst = decltype(rows)::kFirst;
          constexpr Activation kActivation = kLayer == 0 ? Activation::identity : Activation::relu;
          dense_backward_input<kActivation, decltype(rows)::kCount, kIn, kOut>(
              part, network.weights(kLayer), gradient + kFirst * kOut,
              static_cast<const T*>(nullptr), own + kFirst * kIn,
              previous + (kFirstRow + kFirst) * kIn);
        });
        detail::for_norm_columns<Batch, kIn>(device, [&](auto part, auto columns) {
          batch_norm_backward<Batch, kIn, decltype(columns)>(
              part, network.norm_scale(kLayer), buffer.normalized_of(kLayer),
              buffer.inverse_std + kOffset, previous, parameters_gradient.norm_scale(kLayer),
              parameters_gradient.norm_bias(kLayer));
        });
        gradient = previous;
      },
      detail::LayersOf<Network>{});
}

// Scale the weights of each output of each layer to unit length; the output's bias stays.
template <class Device, class T, class Shape>
void normalize_weights(Device device, BatchNormMlp<T, Shape>& network) {
  using Network = BatchNormMlp<T, Shape>;
  detail::for_each_layer(
      [&](auto index) {
        constexpr int kLayer = decltype(index)::value;
        normalize_weights<Network::input_dim(kLayer), Network::output_dim(kLayer)>(
            device, network.weights(kLayer));
      },
      detail::LayersOf<Network>{});
}

// Begin with orthogonal weights (orthogonal.h) of unit length, scales of 1 and biases of 0, and
// with statistics that leave numbers as they are.
template <class Device, class T, class Shape>
void initialize_orthogonal(Device device, BatchNormMlp<T, Shape>& network,
                           BatchNormStatistics<BatchNormMlp<T, Shape>>& statistics,
                           std::uint32_t seed, std::uint32_t network_index) {
  using Network = BatchNormMlp<T, Shape>;
  set_zero(device, network);
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    for (int i = 0; i < Network::input_dim(layer); i++) network.norm_scale(layer)[i] = T(1);
    draw_orthogonal(network.weights(layer), Network::input_dim(layer), Network::output_dim(layer),
                    {seed, Purpose::initialize, network_index, static_cast<std::uint32_t>(layer)});
  }
  normalize_weights(device, network);
  for (int i = 0; i < Network::kNormCount; i++) {
    statistics.mean[i] = T(0);
    statistics.variance[i] = T(1);
  }
}

// Move the statistics by a share of the way to those of a batch.
template <class Network>
void move_statistics(typename Network::Scalar share, const BatchNormStatistics<Network>& batch,
                     BatchNormStatistics<Network>& statistics) {
  for (int i = 0; i < Network::kNormCount; i++) {
    statistics.mean[i] = math::fma(share, batch.mean[i] - statistics.mean[i], statistics.mean[i]);
    statistics.variance[i] =
        math::fma(share, batch.variance[i] - statistics.variance[i], statistics.variance[i]);
  }
}

// Return false where a variance is none: those of a state from elsewhere are checked with this.
template <class Network>
bool is_consistent(const BatchNormStatistics<Network>& statistics) {
  for (const auto variance : statistics.variance) {
    if (!(variance >= 0)) return false;
  }
  return true;
}

// How the first normalization changes an input, before its scale and bias: (input - shift) scale.
// It stays outside of the folded network, because folding it would lose digits of inputs with a
// mean that is large beside their deviation.
template <class Network>
struct InputNorm {
  using T = typename Network::Scalar;
  T shift[Network::kInputDim];
  T scale[Network::kInputDim];
};
template <class T, class Shape>
void set_input_norm(const BatchNormStatistics<BatchNormMlp<T, Shape>>& statistics,
                    InputNorm<BatchNormMlp<T, Shape>>& norm) {
  for (int i = 0; i < BatchNormMlp<T, Shape>::kInputDim; i++) {
    norm.shift[i] = statistics.mean[i];
    norm.scale[i] = T(1) / math::sqrt(statistics.variance[i] + static_cast<T>(kBatchNormEpsilon));
  }
}

// Normalize rows (Rows, InputDim), in place.
template <int Rows, class Network, class T>
void normalize_inputs(const InputNorm<Network>& norm, T* rows) {
  for (int row = 0; row < Rows; row++) {
    for (int i = 0; i < Network::kInputDim; i++) {
      T& value = rows[row * Network::kInputDim + i];
      value = (value - norm.shift[i]) * norm.scale[i];
    }
  }
}

// Set the Mlp that gives, for normalized inputs, what the network gives with these statistics.
template <class T, class Shape, Activation Output>
void fold(const BatchNormMlp<T, Shape>& network,
          const BatchNormStatistics<BatchNormMlp<T, Shape>>& statistics,
          Mlp<T, Shape, Activation::relu, Output>& folded) {
  using Network = BatchNormMlp<T, Shape>;
  detail::for_each_layer(
      [&](auto index) {
        constexpr int kLayer = decltype(index)::value;
        constexpr int kIn = Network::input_dim(kLayer), kOut = Network::output_dim(kLayer);
        const T* weights = network.weights(kLayer);
        T* result = folded.weights(kLayer);
        T* bias = folded.bias(kLayer);
        for (int o = 0; o < kOut; o++) bias[o] = T(0);
        if constexpr (kLayer == 0) {
          for (int i = 0; i < kIn; i++) {
            const T scale = network.norm_scale(0)[i], shift = network.norm_bias(0)[i];
            for (int o = 0; o < kOut; o++) {
              bias[o] = math::fma(shift, weights[i * kOut + o], bias[o]);
              result[i * kOut + o] = scale * weights[i * kOut + o];
            }
          }
          weights = result;
        }
        T factor[kOut];
        if constexpr (kLayer == Network::kLayerCount - 1) {
          for (int o = 0; o < kOut; o++) {
            factor[o] = T(1);
            bias[o] += network.output_bias()[o];
          }
        } else {  // the normalization behind this layer
          constexpr int kFirst = Network::norm_offset(kLayer + 1);
          const T* scale = network.norm_scale(kLayer + 1);
          const T* shift = network.norm_bias(kLayer + 1);
          for (int o = 0; o < kOut; o++) {
            const T variance = statistics.variance[kFirst + o];
            factor[o] = scale[o] / math::sqrt(variance + static_cast<T>(kBatchNormEpsilon));
            bias[o] = math::fma(bias[o] - statistics.mean[kFirst + o], factor[o], shift[o]);
          }
        }
        for (int i = 0; i < kIn; i++) {
          for (int o = 0; o < kOut; o++) result[i * kOut + o] = weights[i * kOut + o] * factor[o];
        }
      },
      detail::LayersOf<Network>{});
}

// Visit the network's arrays in the order in which they lie.
template <class T, class Shape, class Visitor>
void for_each_tensor(const char* name, BatchNormMlp<T, Shape>& network, Visitor&& visitor) {
  using Network = BatchNormMlp<T, Shape>;
  static_assert(Network::kLayerCount <= 10, "a network has at most ten layers");
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    const auto in = static_cast<std::uint32_t>(Network::input_dim(layer));
    const auto out = static_cast<std::uint32_t>(Network::output_dim(layer));
    const DataType type = data_type_of(network.values);
    const auto visit = [&](const char* part, std::uint32_t rows, std::uint32_t columns, T* data) {
      visitor(TensorInfo{name, type, rows, columns, layer, part}, static_cast<void*>(data));
    };
    visit("norm_scale", 1, in, network.norm_scale(layer));
    visit("norm_bias", 1, in, network.norm_bias(layer));
    visit("weights", in, out, network.weights(layer));
    if (layer == Network::kLayerCount - 1) visit("bias", 1, out, network.output_bias());
  }
}

// Visit the statistics, layer by layer.
template <class Network, class Visitor>
void for_each_tensor(const char* name, BatchNormStatistics<Network>& statistics,
                     Visitor&& visitor) {
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    const auto in = static_cast<std::uint32_t>(Network::input_dim(layer));
    const int offset = Network::norm_offset(layer);
    const DataType type = data_type_of(statistics.mean);
    visitor(TensorInfo{name, type, 1, in, layer, "mean"},
            static_cast<void*>(statistics.mean + offset));
    visitor(TensorInfo{name, type, 1, in, layer, "variance"},
            static_cast<void*>(statistics.variance + offset));
  }
}

}  // namespace rlt
