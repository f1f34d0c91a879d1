// The dense layer's products for Arm Cortex-M with FPU: tiles of 5 x 4 sums stay in the 32
// single-precision registers, so that a multiply-add costs 0.45 loads instead of 2. Bits equal
// those of nn/dense.h.
#pragma once

#include "rltools/kernels/cortex_m/relu.h"
#include "rltools/kernels/register_tile.h"
#include "rltools/nn/dense.h"

namespace rlt {

template <Activation A, int Batch, int In, int Out>
CortexM dense_forward(CortexM, const float* weights, const float* bias, const float* input,
                      float* output) {
  kernels::product<5, 4, Batch, 0, Out, In, kernels::Strides<In, 1>, kernels::Strides<Out, 1>>(
      input, weights, [=](int, int out) { return bias[out]; },
      [=](int sample, int out, float sum) {
        output[sample * Out + out] = kernels::activation_of_sum<A>(sum);
      });
  return {};
}

template <int Batch, int In, int Out>
CortexM dense_backward_weights(CortexM, const float* input, const float* output_gradient,
                               float* weights_gradient, float* bias_gradient) {
  kernels::product<5, 4, In, 0, Out, Batch, kernels::Strides<1, In>, kernels::Strides<Out, 1>>(
      input, output_gradient, [=](int in, int out) { return weights_gradient[in * Out + out]; },
      [=](int in, int out, float sum) { weights_gradient[in * Out + out] = sum; });
  // Column sums, of as many columns at a time as stay in registers.
  constexpr int kColumns = 16;
  for (int first = 0; first < Out / kColumns * kColumns; first += kColumns) {
    float sum[kColumns];
#pragma GCC unroll 16
    for (int c = 0; c < kColumns; c++) sum[c] = bias_gradient[first + c];
    for (int sample = 0; sample < Batch; sample++) {
#pragma GCC unroll 16
      for (int c = 0; c < kColumns; c++) sum[c] += output_gradient[sample * Out + first + c];
    }
#pragma GCC unroll 16
    for (int c = 0; c < kColumns; c++) bias_gradient[first + c] = sum[c];
  }
  for (int out = Out / kColumns * kColumns; out < Out; out++) {
    float sum = bias_gradient[out];
    for (int sample = 0; sample < Batch; sample++) sum += output_gradient[sample * Out + out];
    bias_gradient[out] = sum;
  }
  return {};
}

template <Activation A, int Batch, int In, int Out>
CortexM dense_backward_input(CortexM, const float* weights, const float* output_gradient,
                             const float* pre_activation, const float* input,
                             float* input_gradient) {
  constexpr bool kIsRelu = A == Activation::relu;
  kernels::product<5, 4, Batch, 0, In, Out, kernels::Strides<Out, 1>, kernels::Strides<1, Out>>(
      output_gradient, weights, [](int, int) { return 0.0f; },
      [=](int sample, int in, float sum) {
        const int i = sample * In + in;
        input_gradient[i] = kIsRelu ? kernels::relu_gradient(input[i], sum) : sum;
      });
  if constexpr (!kIsRelu) {
    activation_backward<A, Batch * In>(CortexM{}, pre_activation, input, input_gradient);
  }
  return {};
}

}  // namespace rlt
