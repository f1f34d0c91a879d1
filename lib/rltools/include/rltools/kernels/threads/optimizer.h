// Adam in two halves, one for each thread: parameters are independent of each other.
#pragma once

#include "rltools/core/run_both.h"
#include "rltools/nn/optimizer.h"

namespace rlt {

template <int Count>
HostSimdThreads adam_update(HostSimdThreads device, const AdamStep<float>& step,
                            const float* gradient, float* parameters, float* first_moment,
                            float* second_moment) {
  if constexpr (Count >= 2048) {
    constexpr int kHalf = Count / 32 * 16;  // whole cache lines
    run_both(
        device,
        [&](auto one_device) {
          adam_update<kHalf>(one_device, step, gradient, parameters, first_moment, second_moment);
        },
        [&](auto one_device) {
          adam_update<Count - kHalf>(one_device, step, gradient + kHalf, parameters + kHalf,
                                     first_moment + kHalf, second_moment + kHalf);
        });
  } else {
    adam_update<Count>(HostSimd{}, step, gradient, parameters, first_moment, second_moment);
  }
  return {};
}

}  // namespace rlt
