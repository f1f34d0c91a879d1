// Adam, a range of the parameters for each worker: they are independent of each other.
#pragma once

#include "rltools/core/tasks.h"
#include "rltools/kernels/threads/second_thread.h"
#include "rltools/nn/optimizer.h"

namespace rlt {

template <int Count>
HostSimdThreads adam_update(HostSimdThreads device, const AdamStep<float>& step,
                            const float* gradient, float* parameters, float* first_moment,
                            float* second_moment) {
  constexpr bool kShared = Count >= 2048;
  constexpr int kCacheLine = 16;  // floats
  for_ranges<Count, kShared, kCacheLine>(device, [&](auto part, auto range) {
    constexpr int kFirst = decltype(range)::kFirst;
    adam_update<decltype(range)::kCount>(HostSimd(part), step, gradient + kFirst,
                                         parameters + kFirst, first_moment + kFirst,
                                         second_moment + kFirst);
  });
  return device;
}

}  // namespace rlt
