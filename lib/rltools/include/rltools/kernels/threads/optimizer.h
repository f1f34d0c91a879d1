// Adam, a range of the parameters for each task: they are independent of each other.
#pragma once

#include "rltools/core/tasks.h"
#include "rltools/kernels/threads/pool.h"
#include "rltools/nn/optimizer.h"

namespace rlt {

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
