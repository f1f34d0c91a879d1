// Every kernel of a device against the reference, bit by bit, over odd shapes. A test instantiates
// its device's kernels as functions, and no more: the checks and the reference's kernels, which the
// compiler needs longer for, are compiled once for all tests (agreement/).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "rltools/nn/mlp.h"
#include "rltools/nn/optimizer.h"
#include "rltools/nn/window_passes.h"

namespace kernel_agreement {

using namespace rlt;

// ---- A device's kernels, as functions -----------------------------------------------------------

// A dense layer's three products, in one shape.
struct DenseKernels {
  Activation activation;
  int batch, in, out;
  void (*forward)(const float* weights, const float* bias, const float* input, float* output);
  void (*backward_weights)(const float* input, const float* gradient, float* weights_gradient,
                           float* bias_gradient);
  void (*backward_input)(const float* weights, const float* gradient, const float* pre_activation,
                         const float* input, float* input_gradient);
};

struct ActivationKernels {
  Activation activation;
  int count;
  void (*forward)(const float* input, float* output);
  void (*backward)(const float* pre_activation, const float* output, float* gradient);
};

struct OptimizerKernels {
  int count;
  void (*adam_update)(const AdamStep<float>& step, const float* gradient, float* parameters,
                      float* first_moment, float* second_moment);
  void (*polyak_update)(float rate, const float* source, float* target);
};

// A network with two recurrent layers over windows in which episodes begin: what it computes, with
// its states, and all of its gradients, from these parameters, inputs and gradients of outputs.
struct RecurrentKernels {
  int width;
  int parameters;
  void (*run)(const float* parameters, const float* input, const float* output_gradient,
              std::vector<float>& results, std::vector<float>& gradients);
};

constexpr int kWindows = 7, kWindowSteps = 5, kRecurrentInput = 6, kRecurrentOutput = 4;

template <class Device, int Width>
RecurrentKernels recurrent_kernels() {
  using Network = Sequential<float, kRecurrentInput, Dense<13, Activation::relu>, Gru<Width>,
                             Gru<3>, Dense<kRecurrentOutput, Activation::identity>>;
  return {Width, Network::kParameterCount,
          [](const float* parameters, const float* input, const float* output_gradient,
             std::vector<float>& results, std::vector<float>& gradients) {
            constexpr int kRows = kWindows * kWindowSteps;
            static Network network, gradient;
            static Matrix<float, kRows, kRecurrentInput> inputs, input_gradient;
            static Matrix<float, kRows, kRecurrentOutput> output, slope;
            static Matrix<float, kWindows, Network::kStateDim> state, state_gradient;
            static WindowBuffer<Network, kWindows, kWindowSteps> buffer;
            static WindowGradientBuffer<float, kWindows, kWindowSteps, Network::widest_hidden(),
                                        Network::widest_recurrent()>
                scratch;
            std::uint8_t begins[kRows];
            const auto take = [](auto& matrix, const float* from) {
              for (float& value : matrix.values) value = *from++;
            };
            take(network, parameters);
            take(inputs, input);
            take(slope, output_gradient);
            take(state, parameters);
            set_zero(Generic{}, gradient);
            for (int row = 0; row < kRows; row++) begins[row] = row % 6 == 4;
            forward_windows(Device{}, network, inputs, begins, state, output, buffer);
            backward_windows(Device{}, network, inputs, begins, output, buffer, slope.data(),
                             gradient, input_gradient.data(), state_gradient.data(), scratch);
            const auto put = [](std::vector<float>& list, const auto& matrix) {
              for (const float value : matrix.values) list.push_back(value);
            };
            put(results, output);
            put(results, state);
            put(gradients, gradient);
            put(gradients, input_gradient);
            put(gradients, state_gradient);
          }};
}

template <class Device, Activation A, int Batch, int In, int Out>
DenseKernels dense_kernels() {
  return {
      A,
      Batch,
      In,
      Out,
      [](const float* weights, const float* bias, const float* input, float* output) {
        dense_forward<A, Batch, In, Out>(Device{}, weights, bias, input, output);
      },
      [](const float* input, const float* gradient, float* weights_gradient, float* bias_gradient) {
        dense_backward_weights<Batch, In, Out>(Device{}, input, gradient, weights_gradient,
                                               bias_gradient);
      },
      [](const float* weights, const float* gradient, const float* pre_activation,
         const float* input, float* input_gradient) {
        dense_backward_input<A, Batch, In, Out>(Device{}, weights, gradient, pre_activation, input,
                                                input_gradient);
      }};
}

template <class Device, Activation A, int Count>
ActivationKernels activation_kernels() {
  return {A, Count,
          [](const float* input, float* output) {
            activation_forward<A, Count>(Device{}, input, output);
          },
          [](const float* pre_activation, const float* output, float* gradient) {
            activation_backward<A, Count>(Device{}, pre_activation, output, gradient);
          }};
}

template <class Device, int Count>
OptimizerKernels optimizer_kernels() {
  return {Count,
          [](const AdamStep<float>& step, const float* gradient, float* parameters,
             float* first_moment, float* second_moment) {
            adam_update<Count>(Device{}, step, gradient, parameters, first_moment, second_moment);
          },
          [](float rate, const float* source, float* target) {
            polyak_update<Count>(Device{}, rate, source, target);
          }};
}

// ---- The shapes ---------------------------------------------------------------------------------

constexpr int kSizes[] = {1, 3, 4, 13, 64, 100, 257};

// Each size once as batch, as inputs and as outputs.
template <class Device, std::size_t... Index>
std::vector<DenseKernels> kernels_of_sizes(std::index_sequence<Index...>) {
  return {dense_kernels<Device, Activation::relu, kSizes[Index], kSizes[(Index + 5) % 7],
                        kSizes[(Index * 3 + 3) % 7]>()...};
}
template <class Device>
std::vector<DenseKernels> kernels_of_sizes() {
  return kernels_of_sizes<Device>(std::make_index_sequence<7>());
}

// The shape of check_extreme_sums().
template <class Device, Activation A>
DenseKernels kernels_of_sums() {
  return dense_kernels<Device, A, 20, 64, 64>();
}

// A batch whose input gradient is worked through in blocks of weights with a smaller one at the
// end, which no pair of the sizes above makes.
template <class Device>
DenseKernels kernels_of_blocks() {
  return dense_kernels<Device, Activation::relu, 20, 100, 64>();
}

template <class Device>
std::vector<ActivationKernels> kernels_of_activations() {
  return {activation_kernels<Device, Activation::identity, 257>(),
          activation_kernels<Device, Activation::relu, 257>(),
          activation_kernels<Device, Activation::gelu, 257>(),
          activation_kernels<Device, Activation::tanh, 257>(),
          activation_kernels<Device, Activation::sigmoid, 257>(),
          activation_kernels<Device, Activation::softplus, 257>(),
          activation_kernels<Device, Activation::elu, 257>(),
          activation_kernels<Device, Activation::silu, 257>(),
          activation_kernels<Device, Activation::hardtanh, 257>()};
}

template <class Device>
std::vector<OptimizerKernels> kernels_of_optimizer() {
  return {optimizer_kernels<Device, 4545>(), optimizer_kernels<Device, 13>()};
}

// The compiler needs as long for one of these as for all shapes of dense layers of a brief run.
template <class Device>
RecurrentKernels kernels_of_narrow_recurrent() {
  return recurrent_kernels<Device, 3>();
}
// Of its gates' 51 columns some fill a tile of vectors, some a smaller one, and some no vector;
// then a layer that fills none.
template <class Device>
RecurrentKernels kernels_of_wide_recurrent() {
  return recurrent_kernels<Device, 17>();
}
// ---- The checks: agreement/checks.cpp -----------------------------------------------------------

std::vector<float> random_values(int count, std::uint32_t stream);
bool same_bits(const std::vector<float>& a, const std::vector<float>& b);
// The same bits, or NaN in both (which NaN an operation gives is not defined).
bool same_numbers(const std::vector<float>& a, const std::vector<float>& b);

// Each takes the reference's kernels of the same shape from agreement/reference.cpp, and fails
// where it has none.
void check_dense(const DenseKernels& device);
void check_extreme_sums(const DenseKernels& device);
void check_activation(const ActivationKernels& device);
void check_optimizer(const OptimizerKernels& device);
void check_recurrent(const RecurrentKernels& device);

template <class Device>
void check_sums() {
  check_extreme_sums(kernels_of_sums<Device, Activation::identity>());
  check_extreme_sums(kernels_of_sums<Device, Activation::relu>());
  check_extreme_sums(kernels_of_sums<Device, Activation::tanh>());
}

// For kernels that differ from tested ones in the width of their vectors alone.
template <class Device>
void run_briefly() {
  for (const auto& kernels : kernels_of_sizes<Device>()) check_dense(kernels);
  check_dense(kernels_of_sums<Device, Activation::tanh>());
  check_recurrent(kernels_of_narrow_recurrent<Device>());
  check_sums<Device>();
}

template <class Device>
void run() {
  for (const auto& kernels : kernels_of_sizes<Device>()) check_dense(kernels);
  check_recurrent(kernels_of_wide_recurrent<Device>());
  check_dense(kernels_of_sums<Device, Activation::identity>());
  check_dense(kernels_of_sums<Device, Activation::tanh>());
  check_dense(dense_kernels<Device, Activation::tanh, 100, 13, 4>());
  check_dense(dense_kernels<Device, Activation::relu, 100, 257, 3>());
  // Fewer columns than a vector has lanes, of the output and of the input's gradient.
  check_dense(dense_kernels<Device, Activation::relu, 100, 64, 13>());
  check_dense(dense_kernels<Device, Activation::relu, 100, 13, 64>());
  check_dense(kernels_of_blocks<Device>());
  check_sums<Device>();
  for (const auto& kernels : kernels_of_activations<Device>()) check_activation(kernels);
  for (const auto& kernels : kernels_of_optimizer<Device>()) check_optimizer(kernels);
}

}  // namespace kernel_agreement
