// Batch normalization and weights of unit length by a block's threads: a column for each.
#pragma once

#include "rltools/kernels/block/threads.h"
#include "rltools/nn/batch_norm.h"

namespace rlt {

template <Activation A, int Rows, int Width, class Columns>
Block batch_norm_forward(Block device, const float* scale, const float* bias, float* values,
                         float* output, float* mean, float* variance, float* inverse_std) {
  return block::for_each_element<Columns::kCount>(
      device,
      [=](int i) {
        const int c = Columns::kFirst + i;
        batch_norm_forward<A, Rows, Width, Range<0, 1>>(Generic{}, scale + c, bias + c, values + c,
                                                        output + c, mean + c, variance + c,
                                                        inverse_std + c);
      },
      scale, bias, values, output, mean, variance, inverse_std);
}

template <int Rows, int Width, class Columns>
Block batch_norm_backward(Block device, const float* scale, const float* normalized,
                          const float* inverse_std, float* gradient, float* scale_gradient,
                          float* bias_gradient) {
  return block::for_each_element<Columns::kCount>(
      device,
      [=](int i) {
        const int c = Columns::kFirst + i;
        batch_norm_backward<Rows, Width, Range<0, 1>>(Generic{}, scale + c, normalized + c,
                                                      inverse_std + c, gradient + c,
                                                      scale_gradient + c, bias_gradient + c);
      },
      scale, normalized, inverse_std, gradient, scale_gradient, bias_gradient);
}

template <int In, int Out>
Block normalize_weights(Block device, float* weights) {
  return block::for_each_element<Out>(
      device, [=](int i) { normalize_weights_of<In, Out, Range<0, 1>>(weights + i); }, weights);
}

}  // namespace rlt
