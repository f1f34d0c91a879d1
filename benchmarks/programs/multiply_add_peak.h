// The peak of the core: independent fused multiply-adds of the widest vector, in registers (the
// horizontal roof of Williams, Waterman and Patterson 2009).
#pragma once

#include "measuring.h"
#include "rltools/kernels/simd/vector.h"

namespace rlt::multiply_add_peak {

// Enough independent sums to hide the latency of the multiply-add, few enough for the registers.
constexpr int kSums = kernels::kLanes == 16 || kernels::kLanes == 4 ? 24 : 12;

inline float add_products(long iterations, float factor, float term) {
  using kernels::Vector;
  const Vector factors = kernels::broadcast(factor), terms = kernels::broadcast(term);
  Vector sums[kSums];
#pragma GCC unroll 32
  for (int i = 0; i < kSums; i++) sums[i] = kernels::broadcast(static_cast<float>(i));
  for (long iteration = 0; iteration < iterations; iteration++) {
#pragma GCC unroll 32
    for (int i = 0; i < kSums; i++) sums[i] = kernels::multiply_add(sums[i], factors, terms);
  }
  float lanes[kernels::kLanes], total = 0.0f;
  for (int i = 0; i < kSums; i++) {
    kernels::store(lanes, sums[i]);
    for (const float lane : lanes) total += lane;
  }
  return total;
}

inline volatile float sink;  // results go here, so that no compiler leaves their computation out

inline double peak_gflops(double duration_s) {
  const volatile float factor = 0.999f, term = 0.001f;
  constexpr long kIterations = 100000;  // some 0.5 ms
  const double run_s =
      seconds_per_run(duration_s / 2, [&] { sink = add_products(kIterations, factor, term); });
  return 2e-9 * kSums * kernels::kLanes * kIterations / run_s;
}

}  // namespace rlt::multiply_add_peak
