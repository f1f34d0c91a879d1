// A replay buffer for each of N environments, sampled as one.
#pragma once

#include "rltools/rl/replay_buffer.h"

namespace rlt {

template <class Buffer, int N>
struct ReplayBuffers {
  static constexpr int kCount = N;
  static constexpr int kSlots = Buffer::kSlots;  // of each
  Buffer buffer[N];
};

// That of one environment alone is a ReplayBuffer.
template <class T, int S, int O, int A>
ReplayBuffer<T, S, O, A>& buffer_of(ReplayBuffer<T, S, O, A>& replay, int) {
  return replay;
}
template <class T, int S, int O, int A>
const ReplayBuffer<T, S, O, A>& buffer_of(const ReplayBuffer<T, S, O, A>& replay, int) {
  return replay;
}
template <class Buffer, int N>
Buffer& buffer_of(ReplayBuffers<Buffer, N>& replay, int index) {
  return replay.buffer[index];
}
template <class Buffer, int N>
const Buffer& buffer_of(const ReplayBuffers<Buffer, N>& replay, int index) {
  return replay.buffer[index];
}

template <class Buffer, int N>
void clear(ReplayBuffers<Buffer, N>& replay) {
  for (Buffer& buffer : replay.buffer) clear(buffer);
}

// A slot of one of the buffers.
template <class Buffer>
struct SlotOf {
  const Buffer& buffer;
  std::uint32_t slot;
};

// The slot with a number that sample_slots() gave.
template <class T, int S, int O, int A>
SlotOf<ReplayBuffer<T, S, O, A>> slot_of(const ReplayBuffer<T, S, O, A>& replay,
                                         std::uint32_t number) {
  return {replay, number};
}
template <class Buffer, int N>
SlotOf<Buffer> slot_of(const ReplayBuffers<Buffer, N>& replay, std::uint32_t number) {
  constexpr auto kSlots = static_cast<std::uint32_t>(Buffer::kSlots);
  return {replay.buffer[number / kSlots], number % kSlots};
}

namespace detail {

// The number of the slot with this index among those in use, of one buffer after the other.
template <class Buffer, int N>
std::uint32_t number_of_slot(const ReplayBuffers<Buffer, N>& replay, std::uint32_t index) {
  std::uint32_t environment = 0;
  while (index >= replay.buffer[environment].size) index -= replay.buffer[environment++].size;
  return environment * static_cast<std::uint32_t>(Buffer::kSlots) + index;
}

template <class Buffer, int N>
bool is_transition(const ReplayBuffers<Buffer, N>& replay, std::uint32_t number) {
  const auto [buffer, slot] = slot_of(replay, number);
  return (buffer.flags[slot] & Buffer::kTransition) != 0;
}

}  // namespace detail

// Numbers of `count` transitions, each uniform over all that are held; one at least must be. A slot
// without a transition is drawn again, from the stream's next substream.
template <class Device, class Buffer, int N>
void sample_slots(Device device, const ReplayBuffers<Buffer, N>& replay, RandomStream random,
                  std::uint32_t* numbers, int count) {
  constexpr int kAttempts = 64;  // all fail with a probability below (share of ends)^64
  std::uint32_t in_use = 0;
  for (const Buffer& buffer : replay.buffer) in_use += buffer.size;
  fill_uniform_index(device, random, numbers, count, in_use);
  for (int i = 0; i < count; i++) {
    std::uint32_t index = numbers[i];
    numbers[i] = detail::number_of_slot(replay, index);
    RandomStream again = random;
    for (int attempt = 1; attempt < kAttempts && !detail::is_transition(replay, numbers[i]);
         attempt++) {
      again.substream++;
      index = uniform_index(again, static_cast<std::uint32_t>(i), in_use);
      numbers[i] = detail::number_of_slot(replay, index);
    }
    while (!detail::is_transition(replay, numbers[i])) {
      index = (index + 1) % in_use;
      numbers[i] = detail::number_of_slot(replay, index);
    }
  }
}

// As of a single buffer; `steps` are those of all environments.
template <class Buffer, int N>
bool is_consistent(const ReplayBuffers<Buffer, N>& replay, std::uint32_t steps,
                   bool may_be_lost = false) {
  if (steps % N != 0) return false;
  for (const Buffer& buffer : replay.buffer) {
    if (!is_consistent(buffer, steps / N, may_be_lost)) return false;
  }
  return true;
}

}  // namespace rlt
