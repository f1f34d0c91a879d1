// What the core can do at most: independent fused multiply-adds of the widest vector, in registers
// (the horizontal roof of Williams, Waterman and Patterson 2009).
#pragma once

#include <ctime>

#include "rltools/kernels/simd/vector.h"

namespace rlt::multiply_add_peak {

// The processor time of this thread: the time that passes, less what other processes take.
inline double seconds_now() {
  std::timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

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
  long iterations = 1000;
  for (;;) {
    const double started = seconds_now();
    sink = add_products(iterations, factor, term);
    const double elapsed = seconds_now() - started;
    if (elapsed >= duration_s / 2) {
      const double operations = 2.0 * kSums * kernels::kLanes * static_cast<double>(iterations);
      return operations / elapsed / 1e9;
    }
    iterations *= 2;
  }
}

}  // namespace rlt::multiply_add_peak
