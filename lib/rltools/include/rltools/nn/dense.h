// The fully connected layer's three products, reference implementation. These are the hot
// operations that kernels/<target>/ overrides; every override gives the same bits (docs/design.md,
// "Numerics"). Weights are stored (In, Out); all arrays are row-major and contiguous.
//
// A term whose first factor is zero may be left out: with finite weights it changes nothing but the
// sign of a zero. That sign is not passed on: outputs have no -0, and of gradients it is
// unspecified (nothing that reads them depends on it).
#pragma once

#include "rltools/core/device.h"
#include "rltools/core/math.h"
#include "rltools/nn/activation.h"

namespace rlt {

// output (Batch, Out) = A(input (Batch, In) . weights (In, Out) + bias (Out))
// Each element starts at its bias and accumulates over the inputs in order.
template <Activation A, int Batch, int In, int Out, class T>
Generic dense_forward(Generic device, const T* weights, const T* bias, const T* input, T* output) {
  for (int sample = 0; sample < Batch; sample++) {
    for (int out = 0; out < Out; out++) {
      T sum = bias[out];
      for (int in = 0; in < In; in++) {
        sum = math::fma(input[sample * In + in], weights[in * Out + out], sum);
      }
      output[sample * Out + out] = activation_value<A>(sum + T(0));
    }
  }
  return device;
}

// sums (Columns) += the rows of `values` (Rows, Columns), in order
template <int Rows, int Columns, class T>
void add_column_sums(const T* values, T* sums) {
  for (int column = 0; column < Columns; column++) {
    T sum = sums[column];
    for (int row = 0; row < Rows; row++) sum += values[row * Columns + column];
    sums[column] = sum;
  }
}

// weights_gradient (In, Out) += input^T . output_gradient; bias_gradient (Out) += column sums.
// Each element accumulates over the samples in order, starting from what it holds.
template <int Batch, int In, int Out, class T>
Generic dense_backward_weights(Generic device, const T* input, const T* output_gradient,
                               T* weights_gradient, T* bias_gradient) {
  for (int in = 0; in < In; in++) {
    for (int out = 0; out < Out; out++) {
      T sum = weights_gradient[in * Out + out];
      for (int sample = 0; sample < Batch; sample++) {
        sum = math::fma(input[sample * In + in], output_gradient[sample * Out + out], sum);
      }
      weights_gradient[in * Out + out] = sum;
    }
  }
  add_column_sums<Batch, Out>(output_gradient, bias_gradient);
  return device;
}

// input_gradient (Batch, In) = output_gradient (Batch, Out) . weights^T, times the derivative of
// the activation A that `input` came out of (identity for what came from nowhere). `pre_activation`
// went into A; it is read only where needs_pre_activation(A), and may be null otherwise, as `input`
// may for identity. Each element starts at zero and accumulates over the outputs in order.
template <Activation A, int Batch, int In, int Out, class T>
Generic dense_backward_input(Generic device, const T* weights, const T* output_gradient,
                             const T* pre_activation, const T* input, T* input_gradient) {
  for (int sample = 0; sample < Batch; sample++) {
    for (int in = 0; in < In; in++) {
      T sum = T(0);
      for (int out = 0; out < Out; out++) {
        sum = math::fma(output_gradient[sample * Out + out], weights[in * Out + out], sum);
      }
      input_gradient[sample * In + in] = sum;
    }
  }
  activation_backward<A, Batch * In>(device, pre_activation, input, input_gradient);
  return device;
}

}  // namespace rlt
