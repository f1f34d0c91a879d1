// The gates of a recurrent layer of run-time shape for Arm Cortex-M: sums that need no clamp, as
// nearly all, are told by one comparison of integers, and their sigmoid is straight-line code. The
// reference is gru_gates_at_run_time() of nn/gru_at_run_time.h; the bits are the same.
#pragma once

#include "rltools/nn/gru_at_run_time.h"

namespace rlt {

namespace kernels {

// Twice the bits of a float, so that its sign falls out; NaN and infinity are above all numbers.
constexpr std::uint32_t kUnclampedBits2 = 0x42200000u << 1;  // of 40

inline __attribute__((noinline)) float any_sigmoid(float x) { return math::sigmoid(x); }

// math::sigmoid() for |x| < 40, where its clamps and its test for NaN change nothing.
inline float unclamped_sigmoid(float x) {
  const math::ReducedExponential reduced = math::reduce_exponential(-x);
  const float scale = math::power_of_two(reduced.n_bits - 64u);
  const float sum = scale + 0x1p-64f;
  const float lost = 0x1p-64f - (sum - scale);
  return 1.0f / (sum + math::fma(scale, reduced.expm1, lost)) * 0x1p-64f;
}

}  // namespace kernels

inline CortexM gru_gates_at_run_time(CortexM device, int count, const float* others, float* sums) {
  for (int i = 0; i < count; i++) {
    const float x = sums[i] + others[i];
    const bool is_plain = math::to_bits(x) << 1 < kernels::kUnclampedBits2;
    sums[i] = is_plain ? kernels::unclamped_sigmoid(x) : kernels::any_sigmoid(x);
  }
  return device;
}

}  // namespace rlt
