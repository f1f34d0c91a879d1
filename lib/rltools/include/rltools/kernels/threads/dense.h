// The dense layer's weight gradient, a range of the inputs for each task. The loop that it shares
// is that of nn/dense.h:
//
//   for each input i, output o, sample s in order:
//     weights_gradient(i, o) = fma(input(s, i), output_gradient(s, o), weights_gradient(i, o))
//
// The inputs' weights are independent, so the bits are equal. (The other two products are shared by
// rows, in nn/mlp.h.)
#pragma once

#include "rltools/core/tasks.h"
#include "rltools/kernels/simd/dense.h"
#include "rltools/kernels/threads/pool.h"
#include "rltools/nn/optimizer.h"

namespace rlt {

namespace threads {

// weights_gradient rows [First, First + Inputs) of In. The columns of the input that they need are
// copied side by side, as dense_backward_weights takes them.
template <int First, int Inputs, int Batch, int In, int Out, class Device>
void backward_weights_of(Device device, const float* input, const float* output_gradient,
                         float* weights_gradient, float* bias_gradient) {
  alignas(64) float columns[Batch * Inputs];
  for (int sample = 0; sample < Batch; sample++) {
    for (int in = 0; in < Inputs; in++) {
      columns[sample * Inputs + in] = input[sample * In + First + in];
    }
  }
  dense_backward_weights<Batch, Inputs, Out>(device, columns, output_gradient,
                                             weights_gradient + First * Out, bias_gradient);
}

}  // namespace threads

template <int Batch, int In, int Out>
HostSimdThreads dense_backward_weights(HostSimdThreads device, const float* input,
                                       const float* output_gradient, float* weights_gradient,
                                       float* bias_gradient) {
  constexpr int kParts = parts_of_product<HostSimdThreads>(long{Batch} * In * Out);
  for_ranges<In, kParts>(device, [&](auto part, auto range) {
    using Inputs = decltype(range);
    const HostSimd one_worker = part;
    if constexpr (Inputs::kCount == In) {
      dense_backward_weights<Batch, In, Out>(one_worker, input, output_gradient, weights_gradient,
                                             bias_gradient);
    } else {
      float unused_bias[Out] = {};  // the first range has the bias
      threads::backward_weights_of<Inputs::kFirst, Inputs::kCount, Batch, In, Out>(
          one_worker, input, output_gradient, weights_gradient,
          Inputs::kFirst == 0 ? bias_gradient : unused_bias);
    }
  });
  return device;
}

// Adam, a range of the parameters for each task: they are independent of each other.
template <int Count>
HostSimdThreads adam_update(HostSimdThreads device, const AdamStep<float>& step,
                            const float* gradient, float* parameters, float* first_moment,
                            float* second_moment) {
  constexpr int kParts = parts_of<HostSimdThreads>(Count, 2048, 16384);
  constexpr int kCacheLine = 16;  // floats
  for_ranges<Count, kParts, kCacheLine>(device, [&](auto part, auto range) {
    constexpr int kFirst = decltype(range)::kFirst;
    adam_update<decltype(range)::kCount>(HostSimd(part), step, gradient + kFirst,
                                         parameters + kFirst, first_moment + kFirst,
                                         second_moment + kFirst);
  });
  return device;
}

}  // namespace rlt
