// The gates of a recurrent layer of run-time shape for Arm Cortex-M: sums that need no clamp, as
// nearly all, are told by one comparison of integers, and their sigmoid is straight-line code. The
// reference is gates_at_run_time() of nn/recurrent_at_run_time.h; the bits are the same.
#pragma once

#include "rltools/nn/recurrent_at_run_time.h"

namespace rlt {

namespace kernels {

// Twice the bits of 40, so that a sign falls out; NaN and infinity are above all numbers. Below it
// the clamps of math::sigmoid() and its test for NaN change nothing.
constexpr std::uint32_t kUnclampedBits2 = 0x42200000u << 1;

inline __attribute__((noinline)) float any_sigmoid(float x) { return math::sigmoid(x); }

}  // namespace kernels

inline CortexM gates_at_run_time(CortexM device, int count, const float* others, float* sums) {
  for (int i = 0; i < count; i++) {
    const float x = sums[i] + others[i];
    const bool is_plain = math::to_bits(x) << 1 < kernels::kUnclampedBits2;
    sums[i] = is_plain ? math::unclamped_sigmoid(-x) : kernels::any_sigmoid(x);
  }
  return device;
}

}  // namespace rlt
