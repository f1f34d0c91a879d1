// The dense layer's weight gradient in two halves, one for each thread. It is split between inputs,
// whose weights are independent: each element still accumulates over the samples in order, so the
// bits are those of nn/dense.h. (The other two products are split by rows, in nn/mlp.h.)
#pragma once

#include "rltools/core/run_both.h"
#include "rltools/kernels/simd/dense.h"

namespace rlt {

namespace threads {

// weights_gradient rows [First, First + Inputs) of In. The columns of the input that they need are
// copied side by side, as dense_backward_weights takes them.
template <int First, int Inputs, int Batch, int In, int Out>
void backward_weights_of(const float* input, const float* output_gradient, float* weights_gradient,
                         float* bias_gradient) {
  alignas(64) float columns[Batch * Inputs];
  for (int sample = 0; sample < Batch; sample++) {
    for (int in = 0; in < Inputs; in++) {
      columns[sample * Inputs + in] = input[sample * In + First + in];
    }
  }
  dense_backward_weights<Batch, Inputs, Out>(HostSimd{}, columns, output_gradient,
                                             weights_gradient + First * Out, bias_gradient);
}

}  // namespace threads

template <int Batch, int In, int Out>
HostSimdThreads dense_backward_weights(HostSimdThreads device, const float* input,
                                       const float* output_gradient, float* weights_gradient,
                                       float* bias_gradient) {
  if constexpr (In > 1 && long{Batch} * In * Out >= kFewestMultiplyAddsToSplit) {
    constexpr int kHalf = (In + 1) / 2;
    run_both(
        device,
        [&](auto) {
          threads::backward_weights_of<0, kHalf, Batch, In, Out>(input, output_gradient,
                                                                 weights_gradient, bias_gradient);
        },
        [&](auto) {
          float unused_bias[Out] = {};  // the other half computes it
          threads::backward_weights_of<kHalf, In - kHalf, Batch, In, Out>(
              input, output_gradient, weights_gradient, unused_bias);
        });
  } else {
    dense_backward_weights<Batch, In, Out>(HostSimd{}, input, output_gradient, weights_gradient,
                                           bias_gradient);
  }
  return {};
}

}  // namespace rlt
