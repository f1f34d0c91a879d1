// Replay buffer that stores each observation once: slot i holds an observation, the action taken
// there and its reward; the next observation is that of slot i + 1. See docs/design.md, "Training
// state, checkpoint and hash".
#pragma once

#include <cstdint>

#include "rltools/core/random.h"

namespace rlt {

// Slots is the number of observations kept: transitions plus one for each episode's end plus the
// one under way.
template <class T, int Slots_, int ObservationDim, int ActionDim>
struct ReplayBuffer {
  static constexpr int kSlots = Slots_;
  static constexpr int kObservationDim = ObservationDim;
  static constexpr int kActionDim = ActionDim;

  // Flags of a slot. A slot without kTransition holds the last observation of an episode (or the
  // current one).
  static constexpr std::uint8_t kTransition = 1;
  static constexpr std::uint8_t kTerminated = 2;

  T observation[kSlots * ObservationDim];
  T action[kSlots * ActionDim];
  T reward[kSlots];
  std::uint8_t flags[kSlots];
  std::uint32_t position;  // slot of the current observation
  std::uint32_t size;      // slots in use
};

template <class T, int S, int O, int A>
void clear(ReplayBuffer<T, S, O, A>& replay) {
  for (int i = 0; i < S * O; i++) replay.observation[i] = T(0);
  for (int i = 0; i < S * A; i++) replay.action[i] = T(0);
  for (int i = 0; i < S; i++) replay.reward[i] = T(0);
  for (int i = 0; i < S; i++) replay.flags[i] = 0;
  replay.position = 0;
  replay.size = 0;
}

// Move on to the next slot and return where its observation goes; once full, the oldest observation
// is overwritten.
template <class T, int S, int O, int A>
T* advance(ReplayBuffer<T, S, O, A>& replay) {
  if (replay.size > 0) replay.position = (replay.position + 1) % S;
  if (replay.size < S) replay.size++;
  replay.flags[replay.position] = 0;
  return replay.observation + replay.position * O;
}

// Return the current observation: the next action answers it, or it ends its episode.
template <class T, int S, int O, int A>
T* current_observation(ReplayBuffer<T, S, O, A>& replay) {
  return replay.observation + replay.position * O;
}

// Complete the current slot to a transition. Call advance() next, for the observation that the
// action led to.
template <class T, int S, int O, int A>
void record(ReplayBuffer<T, S, O, A>& replay, const T* action, T reward, bool terminated) {
  const std::uint32_t slot = replay.position;
  for (int i = 0; i < A; i++) replay.action[slot * A + i] = action[i];
  replay.reward[slot] = reward;
  replay.flags[slot] =
      static_cast<std::uint8_t>(ReplayBuffer<T, S, O, A>::kTransition |
                                (terminated ? ReplayBuffer<T, S, O, A>::kTerminated : 0));
}

// Draw a transition's slot, uniform over all transitions held; the buffer must hold at least one.
// A slot without a transition is drawn again, from the stream's next substream.
template <class T, int S, int O, int A>
std::uint32_t sample_slot(const ReplayBuffer<T, S, O, A>& replay, RandomStream random,
                          std::uint32_t index) {
  constexpr int kAttempts = 64;  // all fail with a probability below (share of ends)^64
  std::uint32_t slot = 0;
  for (int attempt = 0; attempt < kAttempts; attempt++) {
    slot = uniform_index(random, index, replay.size);
    if (replay.flags[slot] & ReplayBuffer<T, S, O, A>::kTransition) return slot;
    random.substream++;
  }
  while (!(replay.flags[slot] & ReplayBuffer<T, S, O, A>::kTransition)) {
    slot = (slot + 1) % replay.size;
  }
  return slot;
}

// slots[i] = sample_slot(replay, random, i)
template <class Device, class T, int S, int O, int A>
void sample_slots(Device device, const ReplayBuffer<T, S, O, A>& replay, RandomStream random,
                  std::uint32_t* slots, int count) {
  fill_uniform_index(device, random, slots, count, replay.size);
  for (int i = 0; i < count; i++) {
    if (!(replay.flags[slots[i]] & ReplayBuffer<T, S, O, A>::kTransition)) {
      slots[i] = sample_slot(replay, random, static_cast<std::uint32_t>(i));
    }
  }
}

// Return false where the contents cannot have come from advance() and record(): a state from
// elsewhere is checked with this before anything is sampled from it. `steps` is the number recorded
// in all, or no fewer than that where steps may be lost.
template <class T, int S, int O, int A>
bool is_consistent(const ReplayBuffer<T, S, O, A>& replay, std::uint32_t steps,
                   bool may_be_lost = false) {
  constexpr std::uint8_t kTransition = ReplayBuffer<T, S, O, A>::kTransition;
  constexpr std::uint8_t kTerminated = ReplayBuffer<T, S, O, A>::kTerminated;
  constexpr auto kSlots = static_cast<std::uint32_t>(S);
  if (replay.size < 1 || replay.size > kSlots || replay.position >= replay.size) return false;
  const bool is_full = replay.size == kSlots;
  if (!is_full && replay.position != replay.size - 1) return false;
  if (replay.flags[replay.position] != 0) return false;
  std::uint32_t transitions = 0;
  for (std::uint32_t slot = 0; slot < replay.size; slot++) {
    const std::uint8_t flags = replay.flags[slot];
    if (flags != 0 && flags != kTransition && flags != (kTransition | kTerminated)) return false;
    if (flags != 0) transitions++;
  }
  if (may_be_lost) return transitions <= steps;
  if (!is_full) return transitions == steps;  // nothing has been overwritten
  return transitions <= steps && (transitions > 0 || steps == 0);
}

template <class T, int S, int O, int A>
const T* next_observation(const ReplayBuffer<T, S, O, A>& replay, std::uint32_t slot) {
  return replay.observation + ((slot + 1) % S) * O;
}

// ---- A replay buffer for each of N environments, sampled as one ---------------------------------

template <class Buffer, int N>
struct ReplayBuffers {
  static constexpr int kCount = N;
  static constexpr int kSlots = Buffer::kSlots;  // of each
  Buffer buffer[N];
};

// Return the buffer of an environment. That of a single one is a ReplayBuffer.
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

// Return the slot with a number that sample_slots() has drawn.
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

// Return the number of the slot with this index among those in use, of one buffer after the other.
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

// Draw the number of the transition with this index, uniform over all that are held in `in_use`
// slots; at least one must be. A slot without a transition is drawn again, from the stream's next
// substream.
template <class Buffer, int N>
std::uint32_t sample_slot(const ReplayBuffers<Buffer, N>& replay, RandomStream random,
                          std::uint32_t index, std::uint32_t in_use) {
  constexpr int kAttempts = 64;  // all fail with a probability below (share of ends)^64
  std::uint32_t drawn = uniform_index(random, index, in_use);
  std::uint32_t number = detail::number_of_slot(replay, drawn);
  for (int attempt = 1; attempt < kAttempts && !detail::is_transition(replay, number); attempt++) {
    random.substream++;
    drawn = uniform_index(random, index, in_use);
    number = detail::number_of_slot(replay, drawn);
  }
  while (!detail::is_transition(replay, number)) {
    drawn = (drawn + 1) % in_use;
    number = detail::number_of_slot(replay, drawn);
  }
  return number;
}

// Return the number of slots in use, of all buffers.
template <class Buffer, int N>
std::uint32_t slots_in_use(const ReplayBuffers<Buffer, N>& replay) {
  std::uint32_t in_use = 0;
  for (const Buffer& buffer : replay.buffer) in_use += buffer.size;
  return in_use;
}

// numbers[i] = sample_slot(replay, random, i)
template <class Device, class Buffer, int N>
void sample_slots(Device device, const ReplayBuffers<Buffer, N>& replay, RandomStream random,
                  std::uint32_t* numbers, int count) {
  const std::uint32_t in_use = slots_in_use(replay);
  fill_uniform_index(device, random, numbers, count, in_use);
  for (int i = 0; i < count; i++) {
    numbers[i] = detail::number_of_slot(replay, numbers[i]);
    if (!detail::is_transition(replay, numbers[i])) {
      numbers[i] = sample_slot(replay, random, static_cast<std::uint32_t>(i), in_use);
    }
  }
}

// Check as for a single buffer; `steps` are those of all environments.
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
