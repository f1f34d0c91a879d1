// The dense layer's products for processors without floating-point unit (product.h). Bits equal
// those of nn/dense.h.
#pragma once

#include "rltools/kernels/soft_float/device.h"
#include "rltools/kernels/soft_float/product.h"
#include "rltools/nn/dense.h"

namespace rlt {

template <Activation A, int Batch, int In, int Out>
SoftFloat dense_forward(SoftFloat device, const float* weights, const float* bias,
                        const float* input, float* output) {
  for (int sample = 0; sample < Batch; sample++, input += In, output += Out) {
    for (int out = 0; out < Out; out++) output[out] = bias[out];
    kernels::add_soft_row(input, weights, {1, Out, 1}, In, Out, output);
    for (int out = 0; out < Out; out++) {
      output[out] = kernels::activation_on_integers<A>(output[out]);
    }
  }
  return device;
}

template <int Batch, int In, int Out>
SoftFloat dense_backward_weights(SoftFloat device, const float* input, const float* output_gradient,
                                 float* weights_gradient, float* bias_gradient) {
  for (int in = 0; in < In; in++) {
    kernels::add_soft_row(input + in, output_gradient, {In, Out, 1}, Batch, Out,
                          weights_gradient + in * Out);
  }
  for (int out = 0; out < Out; out++) {
    float sum = bias_gradient[out];
    for (int sample = 0; sample < Batch; sample++) sum += output_gradient[sample * Out + out];
    bias_gradient[out] = sum;
  }
  return device;
}

template <Activation A, int Batch, int In, int Out>
SoftFloat dense_backward_input(SoftFloat device, const float* weights, const float* output_gradient,
                               const float* pre_activation, const float* input,
                               float* input_gradient) {
  for (int sample = 0; sample < Batch; sample++) {
    float* sums = input_gradient + sample * In;
    for (int in = 0; in < In; in++) sums[in] = 0.0f;
    kernels::add_soft_row(output_gradient + sample * Out, weights, {1, 1, Out}, Out, In, sums);
  }
  activation_backward<A, Batch * In>(device, pre_activation, input, input_gradient);
  return device;
}

}  // namespace rlt
