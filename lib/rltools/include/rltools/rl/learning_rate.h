// The learning rate of a policy's learning: as large as a wished divergence from the policy that
// acted allows (Schulman et al. 2017, arXiv 1707.06347, section 4, with a learning rate in place of
// a penalty), times what a schedule says.
#pragma once

#include "rltools/core/math.h"
#include "rltools/nn/optimizer.h"

namespace rlt {

template <class T, class Hyperparameters>
AdamParameters<T> adam_parameters(const Hyperparameters& hyper, T rate) {
  return {rate, static_cast<T>(hyper.adam_beta1), static_cast<T>(hyper.adam_beta2),
          static_cast<T>(hyper.adam_epsilon)};
}

constexpr double kRateFactor = 1.5, kSmallestRate = 1e-6, kLargestRate = 1e-2;

// Return the learning rate after a minibatch whose divergence from the policy that acted is `kl`,
// in nats.
template <class T>
T adapted_rate(T rate, T kl, T target) {
  if (kl > T(2) * target) {
    return math::maximum(rate / static_cast<T>(kRateFactor), static_cast<T>(kSmallestRate));
  }
  if (kl < T(0.5) * target) {
    return math::minimum(rate * static_cast<T>(kRateFactor), static_cast<T>(kLargestRate));
  }
  return rate;
}

// Return the schedule's factor of the learning rate: from 1 evenly to `lr_end_factor`, when
// `progress_fraction` of the run is done, 0 to 1. Exactly 1 throughout where lr_end_factor is.
template <class T>
T rate_factor(T lr_end_factor, T progress_fraction) {
  return T(1) - (T(1) - lr_end_factor) * progress_fraction;
}

// Return the factor by a square: the square root falls evenly. So more of the run has a small
// learning rate.
template <class T>
T squared_rate_factor(T lr_end_factor, T progress_fraction) {
  const T root = rate_factor(math::sqrt(lr_end_factor), progress_fraction);
  return root * root;
}

// Return the divergence to wish for, which goes with the square of the learning rate.
template <class T>
T scheduled_divergence(T target, T factor) {
  return target * (factor * factor);
}

}  // namespace rlt
