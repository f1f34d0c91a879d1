// Operations on the rows of a batch (rl/batch.h, rl/normalizer.h, rl/squashed_gaussian.h) and
// arrays of random numbers by a block's threads.
#pragma once

#include "rltools/core/random.h"
#include "rltools/kernels/block/threads.h"
#include "rltools/rl/batch.h"
#include "rltools/rl/normalizer.h"
#include "rltools/rl/replay_buffer.h"
#include "rltools/rl/squashed_gaussian.h"

namespace rlt {

// ---- Random numbers -----------------------------------------------------------------------------

inline void fill_uniform_index(Block device, RandomStream stream, std::uint32_t* destination,
                               int count, std::uint32_t bound) {
  block::for_each_element(
      device, count,
      [=](int i) { destination[i] = uniform_index(stream, static_cast<std::uint32_t>(i), bound); },
      destination);
}

inline void fill_uniform(Block device, RandomStream stream, float* destination, int count,
                         float low, float high) {
  block::for_each_element(
      device, count,
      [=](int i) { destination[i] = uniform(stream, static_cast<std::uint32_t>(i), low, high); },
      destination);
}

inline void fill_standard_normal(Block device, RandomStream stream, float* destination, int count) {
  block::for_each_element(
      device, count,
      [=](int i) {
        destination[i] = standard_normal<float>(stream, static_cast<std::uint32_t>(i));
      },
      destination);
}

inline void permuted_indices(Block device, RandomStream stream, std::uint32_t first,
                             std::uint32_t* to, int rows, std::uint32_t count) {
  block::for_each_element(
      device, rows,
      [=](int i) { to[i] = permuted_index(stream, first + static_cast<std::uint32_t>(i), count); },
      to);
}

// ---- Transitions of a replay buffer ------------------------------------------------------------

namespace block {

// numbers[i] = sample(replay, i)
template <class Replay, class Sample>
void sample_slots(Block device, const Replay& replay, std::uint32_t* numbers, int count,
                  const Sample& sample) {
  const Output<std::uint32_t> to(device, numbers, count);
  for_each_element(
      device, count,
      [of = &replay, result = to.data, sample](int i) {
        result[i] = sample(*of, static_cast<std::uint32_t>(i));
      },
      to.data);
  to.copy_back();
}

}  // namespace block

template <class T, int S, int O, int A>
void sample_slots(Block device, const ReplayBuffer<T, S, O, A>& replay, RandomStream random,
                  std::uint32_t* slots, int count) {
  block::sample_slots(device, replay, slots, count, [random](const auto& of, std::uint32_t i) {
    return sample_slot(of, random, i);
  });
}
template <class Buffer, int N>
void sample_slots(Block device, const ReplayBuffers<Buffer, N>& replay, RandomStream random,
                  std::uint32_t* numbers, int count) {
  const std::uint32_t in_use = slots_in_use(replay);
  block::sample_slots(device, replay, numbers, count,
                      [random, in_use](const auto& of, std::uint32_t i) {
                        return sample_slot(of, random, i, in_use);
                      });
}

template <class Replay, class Batch>
Block gather_transitions(Block device, const Replay& replay, const std::uint32_t* number,
                         Batch& batch) {
  const block::Input<std::uint32_t> from(device, number, Batch::kBatch);
  return block::for_each_element<Batch::kBatch>(
      device,
      [of = &replay, numbers = from.data, to = &batch](int sample) {
        gather_transition(*of, numbers[sample], *to, sample);
      },
      from.data);
}

// ---- Rows of a batch ----------------------------------------------------------------------------

template <int Count, class T>
Block gather(Block device, const T* source, const std::uint32_t* number, T* result) {
  return block::for_each_element<Count>(
      device, [=](int i) { result[i] = source[number[i]]; }, source, number, result);
}

template <int Rows, int Left, int Right, class T>
Block join_columns(Block device, const T* left, const T* right, T* result) {
  return block::for_each_element<Rows*(Left + Right)>(
      device,
      [=](int i) {
        const int row = i / (Left + Right), column = i % (Left + Right);
        result[i] = column < Left ? left[row * Left + column] : right[row * Right + column - Left];
      },
      left, right, result);
}

template <int Rows, int Columns, int First, int Count, class T>
Block copy_columns(Block device, const T* source, T* result) {
  return block::for_each_element<Rows * Count>(
      device, [=](int i) { result[i] = source[i / Count * Columns + First + i % Count]; }, source,
      result);
}

template <int Count, class T>
Block add_noise(Block device, T std, const T* noise, T* action) {
  return block::for_each_element<Count>(
      device, [=](int i) { add_noise<1>(Generic{}, std, noise + i, action + i); }, noise, action);
}

template <int Count, class T>
Block add_bounded_noise(Block device, T std, T bound, const T* noise, T* action) {
  return block::for_each_element<Count>(
      device, [=](int i) { add_bounded_noise<1>(Generic{}, std, bound, noise + i, action + i); },
      noise, action);
}

template <int Count, class T>
Block take_minimum(Block device, const T* other, T* value) {
  return block::for_each_element<Count>(
      device, [=](int i) { take_minimum<1>(Generic{}, other + i, value + i); }, other, value);
}

template <int Count>
float subtract_quotients(Block device, float sum, const float* values, float divisor) {
  if constexpr (Count > block::kMaxCopied) {
    return subtract_quotients<Count>(Generic{}, sum, values, divisor);
  } else {
    float* quotient = device.threads->results<float, Count>();
    block::for_each_element<Count>(
        device, [=](int i) { quotient[i] = values[i] / divisor; }, values);
    for (int i = 0; i < Count; i++) sum -= quotient[i];
    return sum;
  }
}

template <int Count, class T>
Block minimum_backward(Block device, const T* a, const T* b, T gradient, T* gradient_a,
                       T* gradient_b) {
  return block::for_each_element<Count>(
      device,
      [=](int i) {
        minimum_backward<1>(Generic{}, a + i, b + i, gradient, gradient_a + i, gradient_b + i);
      },
      a, b, gradient_a, gradient_b);
}

template <int Count, class T>
Block discounted_targets(Block device, T gamma, const T* reward, const T* not_terminated,
                         const T* value, T* target) {
  return block::for_each_element<Count>(
      device,
      [=](int i) {
        discounted_targets<1>(Generic{}, gamma, reward + i, not_terminated + i, value + i,
                              target + i);
      },
      reward, not_terminated, value, target);
}

template <int Rows, class T, int D>
Block normalize_rows(Block device, const Normalizer<T, D>& normalizer, const T* observations,
                     T* result) {
  return block::for_each_element<Rows>(
      device,
      [of = &normalizer, observations, result](int row) {
        normalize_part<D>(*of, observations + row * D, result + row * D);
      },
      &normalizer, observations, result);
}

template <int Rows, class T, int D>
Block normalize_rows(Block device, const Normalizer<T, D>& normalizer, const T* observations,
                     const std::uint32_t* number, T* result) {
  return block::for_each_element<Rows>(
      device,
      [of = &normalizer, observations, number, result](int row) {
        normalize_part<D>(*of, observations + number[row] * D, result + row * D);
      },
      &normalizer, observations, number, result);
}

template <int Rows, int Columns, class T, int D>
Block normalize_columns(Block device, const Normalizer<T, D>& normalizer, T* rows) {
  return block::for_each_element<Rows>(
      device,
      [of = &normalizer, rows](int row) {
        normalize_part<D>(*of, rows + row * Columns, rows + row * Columns);
      },
      &normalizer, rows);
}

template <int Rows, int Action, class T>
Block sample_actions(Block device, const T* output, const T* noise, T* action, T* log_probability) {
  return block::for_each_element<Rows>(
      device,
      [=](int row) {
        sample_actions<1, Action>(Generic{}, output + row * 2 * Action, noise + row * Action,
                                  action + row * Action, log_probability + row);
      },
      output, noise, action, log_probability);
}

template <int Rows, int Action, class T>
Block sample_actions_backward(Block device, const T* output, const T* noise, const T* action,
                              const T* action_gradient, T log_probability_gradient,
                              T* output_gradient) {
  return block::for_each_element<Rows>(
      device,
      [=](int row) {
        sample_actions_backward<1, Action>(Generic{}, output + row * 2 * Action,
                                           noise + row * Action, action + row * Action,
                                           action_gradient + row * Action, log_probability_gradient,
                                           output_gradient + row * 2 * Action);
      },
      output, noise, action, action_gradient, output_gradient);
}

}  // namespace rlt
