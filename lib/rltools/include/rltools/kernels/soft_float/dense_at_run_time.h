// The fully connected layer of run-time shape for processors without floating-point unit
// (product.h). Bits equal those of nn/dense_at_run_time.h.
#pragma once

#include "rltools/kernels/soft_float/device.h"
#include "rltools/kernels/soft_float/product.h"

namespace rlt {

inline SoftFloat dense_forward_at_run_time(SoftFloat device, Activation activation, int in, int out,
                                           const AliasingFloat* weights, const AliasingFloat* bias,
                                           const float* input, float* output) {
  for (int o = 0; o < out; o++) output[o] = bias[o];
  kernels::add_soft_row(input, weights, {1, out, 1}, in, out, output);
  if (activation == Activation::relu) {
    for (int o = 0; o < out; o++) {
      output[o] = kernels::activation_on_integers<Activation::relu>(output[o]);
    }
    return device;
  }
  for (int o = 0; o < out; o++) output[o] += 0.0f;  // there is no -0
  activation_at_run_time(device, activation, out, output);
  return device;
}

}  // namespace rlt
