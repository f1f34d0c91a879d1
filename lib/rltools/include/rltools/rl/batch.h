// Operations on the rows of a batch: what updates do besides the passes of their networks. Rows are
// independent of each other, so that a device with threads, or with memory of its own, may do these
// in its own way: an overload for it is called, as with kernels. Here is the reference. Sums over
// rows, as of losses, are none of these: their order is their bits.
#pragma once

#include <cstdint>

#include "rltools/core/arrays.h"
#include "rltools/core/math.h"

namespace rlt {

// result[i] = source[number[i]]
template <int Count, class T>
Generic gather(Generic device, const T* source, const std::uint32_t* number, T* result) {
  for (int i = 0; i < Count; i++) result[i] = source[number[i]];
  return device;
}

// Gather the transition of a replay buffer with this number (sample_slots()) into row `sample` of a
// batch: its observation, next_observation, observation_action, reward and not_terminated, 1 or 0.
template <class Replay, class Batch>
void gather_transition(const Replay& replay, std::uint32_t number, Batch& batch, int sample) {
  constexpr int kObservation = Batch::kObservation, kAction = Batch::kAction;
  using T = typename Batch::T;
  const auto [buffer, slot] = slot_of(replay, number);
  const T* next = next_observation(buffer, slot);
  const T* seen = buffer.observation + slot * kObservation;
  T* joined = batch.observation_action.row(sample);
  __builtin_memcpy(batch.observation.row(sample), seen, kObservation * sizeof(T));
  __builtin_memcpy(joined, seen, kObservation * sizeof(T));
  __builtin_memcpy(batch.next_observation.row(sample), next, kObservation * sizeof(T));
  __builtin_memcpy(joined + kObservation, buffer.action + slot * kAction, kAction * sizeof(T));
  batch.reward(sample, 0) = buffer.reward[slot];
  batch.not_terminated(sample, 0) = buffer.flags[slot] & buffer.kTerminated ? T(0) : T(1);
}

// Gather a batch of them.
template <class Replay, class Batch>
Generic gather_transitions(Generic device, const Replay& replay, const std::uint32_t* number,
                           Batch& batch) {
  for (int sample = 0; sample < Batch::kBatch; sample++) {
    gather_transition(replay, number[sample], batch, sample);
  }
  return device;
}

// Rows of `result` (Rows, Left + Right) = (row of left, row of right)
template <int Rows, int Left, int Right, class T>
Generic join_columns(Generic device, const T* left, const T* right, T* result) {
  for (int row = 0; row < Rows; row++) {
    for (int i = 0; i < Left; i++) result[row * (Left + Right) + i] = left[row * Left + i];
    for (int i = 0; i < Right; i++) {
      result[row * (Left + Right) + Left + i] = right[row * Right + i];
    }
  }
  return device;
}

// result (Rows, Count) = the columns from First on of source (Rows, Columns)
template <int Rows, int Columns, int First, int Count, class T>
Generic copy_columns(Generic device, const T* source, T* result) {
  for (int row = 0; row < Rows; row++) {
    for (int i = 0; i < Count; i++) result[row * Count + i] = source[row * Columns + First + i];
  }
  return device;
}

// action = clip(action + std noise)
template <int Count, class T>
Generic add_noise(Generic device, T std, const T* noise, T* action) {
  for (int i = 0; i < Count; i++) {
    action[i] = math::clamp(math::fma(std, noise[i], action[i]), T(-1), T(1));
  }
  return device;
}

// action = clip(action + clip(std noise, -bound, bound))
template <int Count, class T>
Generic add_bounded_noise(Generic device, T std, T bound, const T* noise, T* action) {
  for (int i = 0; i < Count; i++) {
    const T added = math::clamp(std * noise[i], -bound, bound);
    action[i] = math::clamp(action[i] + added, T(-1), T(1));
  }
  return device;
}

// value = min(value, other)
template <int Count, class T>
Generic take_minimum(Generic device, const T* other, T* value) {
  for (int i = 0; i < Count; i++) value[i] = math::minimum(value[i], other[i]);
  return device;
}

// Return sum - values[0] / divisor - values[1] / divisor …
template <int Count, class T>
T subtract_quotients(Generic, T sum, const T* values, T divisor) {
  for (int i = 0; i < Count; i++) sum -= values[i] / divisor;
  return sum;
}

// Pass `gradient` to the smaller of two values, and to the first one of equals.
template <int Count, class T>
Generic minimum_backward(Generic device, const T* a, const T* b, T gradient, T* gradient_a,
                         T* gradient_b) {
  for (int i = 0; i < Count; i++) {
    const bool first_is_smaller = a[i] <= b[i];
    gradient_a[i] = first_is_smaller ? gradient : T(0);
    gradient_b[i] = first_is_smaller ? T(0) : gradient;
  }
  return device;
}

// target = reward + gamma not_terminated value
template <int Count, class T>
Generic discounted_targets(Generic device, T gamma, const T* reward, const T* not_terminated,
                           const T* value, T* target) {
  for (int i = 0; i < Count; i++) {
    target[i] = math::fma(gamma * not_terminated[i], value[i], reward[i]);
  }
  return device;
}

}  // namespace rlt
