// Adam (Kingma and Ba 2015, algorithm 1, in PyTorch's arrangement), and polyak averaging over flat
// parameters.
//
// A moment below the smallest normal number becomes zero: behind a unit that stays inactive it
// would otherwise decay to subnormal numbers and stay there, which many processors compute with
// slowly. No parameter notices: with epsilon = 1e-8 its step would be 1e-30 of the learning rate.
#pragma once

#include "rltools/core/arrays.h"
#include "rltools/core/device.h"
#include "rltools/core/math.h"

namespace rlt {

// First and second moments of a network's gradient, and the powers of the two decay rates.
template <class Network>
struct AdamState {
  Network first_moment;
  Network second_moment;
  double decay_power[2];  // beta1^t, beta2^t: double, since 1 - beta2^t loses digits for small t
};

template <class T>
struct AdamParameters {
  T learning_rate;
  T beta1;
  T beta2;
  T epsilon;
};

// The scalars of one step, as the element-wise kernel needs them.
template <class T>
struct AdamStep {
  T beta1, one_minus_beta1;
  T beta2, one_minus_beta2;
  T learning_rate;                   // learning_rate / (1 - beta1^t)
  T inverse_sqrt_second_correction;  // 1 / sqrt(1 - beta2^t)
  T epsilon;
};

template <class T>
inline T without_subnormal(T x) {
  return math::absolute(x) < math::kSmallestNormal<T> ? T(0) : x;
}

template <class T>
inline void adam_element(const AdamStep<T>& step, T gradient, T& parameter, T& first_moment,
                         T& second_moment) {
  const T first =
      without_subnormal(math::fma(step.beta1, first_moment, step.one_minus_beta1 * gradient));
  const T second = without_subnormal(
      math::fma(step.beta2, second_moment, step.one_minus_beta2 * gradient * gradient));
  first_moment = first;
  second_moment = second;
  const T denominator =
      math::fma(math::sqrt(second), step.inverse_sqrt_second_correction, step.epsilon);
  parameter = math::fma(-step.learning_rate, first / denominator, parameter);
}

// One Adam step over Count parameters.
template <int Count, class T>
Generic adam_update(Generic device, const AdamStep<T>& step, const T* gradient, T* parameters,
                    T* first_moment, T* second_moment) {
  for (int i = 0; i < Count; i++) {
    adam_element(step, gradient[i], parameters[i], first_moment[i], second_moment[i]);
  }
  return device;
}

// target += rate * (source - target)
template <int Count, class T>
Generic polyak_update(Generic device, T rate, const T* source, T* target) {
  for (int i = 0; i < Count; i++) target[i] = math::fma(rate, source[i] - target[i], target[i]);
  return device;
}

// The sum of squares of Count numbers: sixteen partial sums, element i in number i % 16, added up
// in order.
template <int Count, class T>
T sum_of_squares(Generic, const T* values) {
  constexpr int kPartial = 16;
  T partial[kPartial] = {};
  for (int first = 0; first + kPartial <= Count; first += kPartial) {
    for (int i = 0; i < kPartial; i++) {
      partial[i] = math::fma(values[first + i], values[first + i], partial[i]);
    }
  }
  for (int i = Count - Count % kPartial; i < Count; i++) {
    partial[i % kPartial] = math::fma(values[i], values[i], partial[i % kPartial]);
  }
  T sum = partial[0];
  for (int i = 1; i < kPartial; i++) sum += partial[i];
  return sum;
}

// Scale gradients to a norm of `largest`, over all of their parameters, where it is more; 0 is no
// bound. Returns the norm that they had.
template <class Device, class T, class... Networks>
T bound_norm(Device device, T largest, Networks&... gradients) {
  T squares = T(0);
  ((squares += sum_of_squares<Networks::kParameterCount>(device, gradients.values)), ...);
  const T norm = math::sqrt(squares);
  if (largest > T(0) && norm > largest) {
    const T factor = largest / norm;
    (scale<Networks::kParameterCount>(device, factor, gradients.values), ...);
  }
  return norm;
}

template <class Network>
void initialize(AdamState<Network>& state) {
  using T = typename Network::Scalar;
  for (int i = 0; i < Network::kParameterCount; i++) {
    state.first_moment.values[i] = T(0);
    state.second_moment.values[i] = T(0);
  }
  state.decay_power[0] = state.decay_power[1] = 1.0;
}

// Apply one Adam step with `gradient` to `network`.
template <class Device, class Network>
void adam_step(Device device, const AdamParameters<typename Network::Scalar>& parameters,
               AdamState<Network>& state, const Network& gradient, Network& network) {
  using T = typename Network::Scalar;
  state.decay_power[0] *= static_cast<double>(parameters.beta1);
  state.decay_power[1] *= static_cast<double>(parameters.beta2);
  AdamStep<T> step;
  step.beta1 = parameters.beta1;
  step.one_minus_beta1 = T(1) - parameters.beta1;
  step.beta2 = parameters.beta2;
  step.one_minus_beta2 = T(1) - parameters.beta2;
  step.learning_rate =
      static_cast<T>(static_cast<double>(parameters.learning_rate) / (1.0 - state.decay_power[0]));
  step.inverse_sqrt_second_correction =
      static_cast<T>(1.0 / math::sqrt(1.0 - state.decay_power[1]));
  step.epsilon = parameters.epsilon;
  adam_update<Network::kParameterCount>(device, step, gradient.values, network.values,
                                        state.first_moment.values, state.second_moment.values);
}

}  // namespace rlt
