// The steps of a recurrent layer by a block's threads: a unit of a sequence for each, or a
// sequence.
#pragma once

#include "rltools/kernels/block/threads.h"
#include "rltools/nn/gru.h"

namespace rlt {

template <int Sequences, int Steps, int Hidden>
Block gru_step_forward(Block device, int step, const std::uint8_t* begins,
                       const float* hidden_product, float* state, float* gates, float* kept_product,
                       float* previous, float* output) {
  return block::for_each_element<Sequences * Hidden>(
      device,
      [=](int element) {
        const int sequence = element / Hidden, i = element % Hidden;
        const int row = sequence * Steps + step;
        float* own = state + sequence * Hidden;
        gru_forward_element<Hidden>(i, hidden_product + sequence * 3 * Hidden, own,
                                    gates + row * 3 * Hidden, kept_product + row * Hidden,
                                    previous + row * Hidden, output + row * Hidden);
        if (step < Steps - 1 && is_reset_behind(begins, row)) own[i] = 0.0f;
      },
      begins, hidden_product, state, gates, kept_product, previous, output);
}

template <int Sequences, int Steps, int Hidden>
Block gru_step_backward(Block device, int step, const std::uint8_t* begins,
                        const float* output_gradient, const float* through, float* direct,
                        float* gates, const float* kept_product, const float* previous,
                        float* product_gradient, float* step_gradient) {
  return block::for_each_element<Sequences * Hidden>(
      device,
      [=](int element) {
        const int sequence = element / Hidden, i = element % Hidden;
        const int row = sequence * Steps + step;
        const float passes = step < Steps - 1 && is_reset_behind(begins, row) ? 0.0f : 1.0f;
        gru_backward_element<Hidden>(i, passes, output_gradient + row * Hidden,
                                     through + sequence * Hidden, direct + sequence * Hidden,
                                     gates + row * 3 * Hidden, kept_product + row * Hidden,
                                     previous + row * Hidden, product_gradient + row * 3 * Hidden,
                                     step_gradient + sequence * 3 * Hidden);
      },
      begins, output_gradient, through, direct, gates, kept_product, previous, product_gradient,
      step_gradient);
}

template <int Sequences, int Hidden>
Block gru_bound_gradients(Block device, float* direct, float* through) {
  if (!block::are_shared(direct, through)) {
    gru_bound_gradients<Sequences, Hidden>(Generic{}, direct, through);
    return device;
  }
  device.threads->run([direct, through](int thread) {
    for (int sequence = thread; sequence < Sequences; sequence += block::kThreads) {
      gru_bound_sequence<Hidden>(direct + sequence * Hidden, through + sequence * Hidden);
    }
  });
  return device;
}

}  // namespace rlt
