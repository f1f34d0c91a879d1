// The squashed Gaussian (Haarnoja et al. 2018, "Soft actor-critic algorithms and applications",
// arXiv 1812.05905, appendix C): for each dimension of the action a network gives mean and log_std,
// and
//   u = mean + std noise,  std = exp(log_std),  noise ~ N(0, 1),  action = tanh(u)
//   log pi(action) =
//     sum_i [ -noise_i^2 / 2 - log_std_i - log(2 pi) / 2 - log(1 - tanh(u_i)^2) ]
//   log(1 - tanh(u)^2) = 2 (log 2 - u - softplus(-2 u)), which neither cancels nor overflows
#pragma once

#include "rltools/core/device.h"
#include "rltools/core/math.h"

namespace rlt {

// As in the authors' implementation; beyond these bounds log_std has no gradient.
constexpr double kMinLogStd = -20, kMaxLogStd = 2;
constexpr double kLog2 = 0.69314718055994530942;
constexpr double kHalfLog2Pi = 0.91893853320467274178;

template <class T>
inline T bounded_log_std(T log_std) {
  return math::clamp(log_std, static_cast<T>(kMinLogStd), static_cast<T>(kMaxLogStd));
}

// Compute action = tanh(mean + std noise) and its log-probability, of one dimension.
template <class T>
[[gnu::always_inline]] inline void squash_gaussian(T mean, T log_std, T noise, T& action,
                                                   T& log_probability) {
  const T bounded = bounded_log_std(log_std);
  const T u = math::fma(math::exp(bounded), noise, mean);
  const T log_derivative = T(2) * (static_cast<T>(kLog2) - u - math::softplus(T(-2) * u));
  const T log_density = math::fma(T(-0.5) * noise, noise, -bounded) - static_cast<T>(kHalfLog2Pi);
  action = math::tanh(u);
  log_probability = log_density - log_derivative;
}

// Compute the gradients of a loss with respect to mean and log_std from those with respect to
// action and log-probability.
template <class T>
[[gnu::always_inline]] inline void squash_gaussian_backward(T log_std, T noise, T action,
                                                            T action_gradient,
                                                            T log_probability_gradient,
                                                            T& mean_gradient, T& log_std_gradient) {
  const T bounded = bounded_log_std(log_std);
  const T squashed = action_gradient * math::fma(-action, action, T(1));
  const T u_gradient = math::fma(T(2) * log_probability_gradient, action, squashed);
  const T noise_gradient =
      math::fma(u_gradient, math::exp(bounded) * noise, -log_probability_gradient);
  mean_gradient = u_gradient;
  log_std_gradient = bounded == log_std ? noise_gradient : T(0);
}

// Draw actions (Rows, Action) from the actor's output (Rows, 2 Action) with noise (Rows, Action);
// log_probability (Rows, 1) is that of a row's action.
template <int Rows, int Action, class T>
Generic sample_actions(Generic, const T* output, const T* noise, T* action, T* log_probability) {
  // Means and log_stds are put side by side first, for compilers to vectorize what follows.
  T of_dimension[Rows * Action];
  for (int row = 0; row < Rows; row++) {
    for (int i = 0; i < Action; i++) {
      action[row * Action + i] = output[row * 2 * Action + i];
      of_dimension[row * Action + i] = output[row * 2 * Action + Action + i];
    }
  }
  for (int k = 0; k < Rows * Action; k++) {
    squash_gaussian(action[k], of_dimension[k], noise[k], action[k], of_dimension[k]);
  }
  for (int row = 0; row < Rows; row++) {
    T sum = of_dimension[row * Action];
    for (int i = 1; i < Action; i++) sum += of_dimension[row * Action + i];
    log_probability[row] = sum;
  }
  return {};
}

// Compute the gradient of the actor's output (Rows, 2 Action), from that of the actions (Rows,
// Action) and of every row's log-probability.
template <int Rows, int Action, class T>
Generic sample_actions_backward(Generic, const T* output, const T* noise, const T* action,
                                const T* action_gradient, T log_probability_gradient,
                                T* output_gradient) {
  T mean_gradient[Rows * Action], log_std[Rows * Action];  // then its gradient
  for (int row = 0; row < Rows; row++) {
    for (int i = 0; i < Action; i++) {
      log_std[row * Action + i] = output[row * 2 * Action + Action + i];
    }
  }
  for (int k = 0; k < Rows * Action; k++) {
    squash_gaussian_backward(log_std[k], noise[k], action[k], action_gradient[k],
                             log_probability_gradient, mean_gradient[k], log_std[k]);
  }
  for (int row = 0; row < Rows; row++) {
    for (int i = 0; i < Action; i++) {
      output_gradient[row * 2 * Action + i] = mean_gradient[row * Action + i];
      output_gradient[row * 2 * Action + Action + i] = log_std[row * Action + i];
    }
  }
  return {};
}

}  // namespace rlt
