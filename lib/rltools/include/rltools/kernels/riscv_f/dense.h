// The dense layer's products for RISC-V with floating-point unit (product.h). Bits equal those of
// nn/dense.h.
#pragma once

#include "rltools/kernels/riscv_f/device.h"
#include "rltools/kernels/riscv_f/product.h"
#include "rltools/nn/dense.h"

namespace rlt {

template <Activation A, int Batch, int In, int Out>
RiscvF dense_forward(RiscvF device, const float* weights, const float* bias, const float* input,
                     float* output) {
  kernels::product_by_rows<Batch, Out, In, kernels::Strides<In, 1>, kernels::Strides<Out, 1>>(
      input, weights, [=](int, int out) { return bias[out]; },
      [=](int sample, int out, float sum) {
        output[sample * Out + out] = activation_value<A>(sum + 0.0f);
      });
  return device;
}

template <int Batch, int In, int Out>
RiscvF dense_backward_weights(RiscvF device, const float* input, const float* output_gradient,
                              float* weights_gradient, float* bias_gradient) {
  kernels::product_by_rows<In, Out, Batch, kernels::Strides<1, In>, kernels::Strides<Out, 1>>(
      input, output_gradient, [=](int in, int out) { return weights_gradient[in * Out + out]; },
      [=](int in, int out, float sum) { weights_gradient[in * Out + out] = sum; });
  for (int out = 0; out < Out; out++) {
    float sum = bias_gradient[out];
    for (int sample = 0; sample < Batch; sample++) sum += output_gradient[sample * Out + out];
    bias_gradient[out] = sum;
  }
  return device;
}

template <Activation A, int Batch, int In, int Out>
RiscvF dense_backward_input(RiscvF device, const float* weights, const float* output_gradient,
                            const float* pre_activation, const float* input,
                            float* input_gradient) {
  kernels::product_by_rows<Batch, In, Out, kernels::Strides<Out, 1>, kernels::Strides<1, Out>>(
      output_gradient, weights, [](int, int) { return 0.0f; },
      [=](int sample, int in, float sum) { input_gradient[sample * In + in] = sum; });
  activation_backward<A, Batch * In>(device, pre_activation, input, input_gradient);
  return device;
}

}  // namespace rlt
