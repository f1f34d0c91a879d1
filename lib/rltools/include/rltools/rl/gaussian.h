// Gaussian policies with a deviation that does not depend on the state, and how far one has moved
// from another: for an action a that was drawn with mean m and deviation d, and a policy that has
// mean m' and deviation d' now, summed over the dimensions of the action,
//   log ratio = log pi'(a) - log pi(a) = log d - log d' + (a - m)^2 / 2 d^2 - (a - m')^2 / 2 d'^2
//   KL(pi || pi') = log d' - log d + (d^2 + (m - m')^2) / 2 d'^2 - 1/2
//   dlog pi'/dm' = (a - m') / d'^2,  dlog pi'/dlog d' = (a - m')^2 / d'^2 - 1
#pragma once

#include "rltools/core/math.h"
#include "rltools/core/unrolled.h"

namespace rlt {

// The logarithms of the deviations, as a network for Adam.
template <class T, int Action>
struct LogStd {
  using Scalar = T;
  static constexpr int kParameterCount = Action;
  alignas(64) T values[Action];
};

// The deviations of choices, which have none: for the same code, a number that stays as it is.
template <class T>
struct LogStd<T, 0> {
  using Scalar = T;
  static constexpr int kParameterCount = 0;
  T values[1] = {};
};

// The deviations of both, as the rows of a batch need them.
template <class T, int Action>
struct GaussianChange {
  T narrowing[Action];                            // log d - log d'
  T variance_ratio[Action];                       // d^2 / d'^2, exactly 1 where d' is d
  T precision_before[Action], precision[Action];  // 1 / d^2, 1 / d'^2

  GaussianChange(const T (&log_std_before)[Action], const T (&log_std)[Action]) {
    for (int i = 0; i < Action; i++) {
      narrowing[i] = log_std_before[i] - log_std[i];
      variance_ratio[i] = math::exp(T(2) * narrowing[i]);
      precision_before[i] = math::exp(T(-2) * log_std_before[i]);
      precision[i] = math::exp(T(-2) * log_std[i]);
    }
  }
};

template <class T>
struct LogRatioAndKl {
  T log_ratio, kl;
};

// Compute the ratio and the KL divergence of one row; also dlog pi'/dm' and dlog pi'/dlog d',
// (Action) each.
template <class T, int Action>
LogRatioAndKl<T> gaussian_change(const GaussianChange<T, Action>& change, const T* action,
                                 const T* mean_before, const T* mean, T* mean_slope,
                                 T* log_std_slope) {
  LogRatioAndKl<T> result{T(0), T(0)};
  unrolled<Action>([&](int i) {
    const T before = action[i] - mean_before[i], now = action[i] - mean[i];
    const T moved = mean_before[i] - mean[i];
    const T precision = change.precision[i];
    mean_slope[i] = now * precision;
    log_std_slope[i] = math::fma(mean_slope[i], now, T(-1));
    result.log_ratio +=
        change.narrowing[i] +
        T(0.5) * (before * before * change.precision_before[i] - now * now * precision);
    result.kl += T(0.5) * (math::fma(moved * moved, precision, change.variance_ratio[i]) - T(1)) -
                 change.narrowing[i];
  });
  return result;
}

}  // namespace rlt
