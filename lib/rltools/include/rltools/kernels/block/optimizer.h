// Adam, polyak averaging, sums of squares and losses by a block's threads. What is added up is
// added up in the reference's order.
#pragma once

#include "rltools/kernels/block/threads.h"
#include "rltools/nn/loss.h"
#include "rltools/nn/optimizer.h"

namespace rlt {

template <int Count>
Block adam_update(Block device, const AdamStep<float>& step, const float* gradient,
                  float* parameters, float* first_moment, float* second_moment) {
  return block::for_each_element<Count>(
      device,
      [=](int i) {
        adam_element(step, gradient[i], parameters[i], first_moment[i], second_moment[i]);
      },
      gradient, parameters, first_moment, second_moment);
}

template <int Count>
Block polyak_update(Block device, float rate, const float* source, float* target) {
  return block::for_each_element<Count>(
      device, [=](int i) { polyak_update<1>(Generic{}, rate, source + i, target + i); }, source,
      target);
}

template <int Count>
float sum_of_squares(Block device, const float* values) {
  constexpr int kPartial = 16;
  if (Count < block::kMinElementsToShare || !block::are_shared(values)) {
    return sum_of_squares<Count>(Generic{}, values);
  }
  float* partial = device.threads->results<float, kPartial>();
  device.threads->run([values, partial](int thread) {
    if (thread >= kPartial) return;
    float sum = 0.0f;
    for (int i = thread; i < Count; i += kPartial) sum = math::fma(values[i], values[i], sum);
    partial[thread] = sum;
  });
  float sum = partial[0];
  for (int i = 1; i < kPartial; i++) sum += partial[i];
  return sum;
}

// The threads compute differences and gradient, and the leader the sum.
template <int Count>
float mean_squared_error(Block device, const float* prediction, const float* target, float divisor,
                         float* gradient) {
  if constexpr (Count > block::kMaxCopied) {
    return mean_squared_error<Count>(Generic{}, prediction, target, divisor, gradient);
  } else {
    float* difference = device.threads->results<float, Count>();
    block::for_each_element<Count>(
        device,
        [=](int i) {
          difference[i] = prediction[i] - target[i];
          gradient[i] = 2.0f * difference[i] / divisor;
        },
        prediction, target, gradient);
    float sum = 0.0f;
    for (int i = 0; i < Count; i++) sum = math::fma(difference[i], difference[i], sum);
    return sum / divisor;
  }
}

}  // namespace rlt
