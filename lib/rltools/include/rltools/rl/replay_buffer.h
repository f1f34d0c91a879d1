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
  // present one).
  static constexpr std::uint8_t kTransition = 1;
  static constexpr std::uint8_t kTerminated = 2;

  T observation[kSlots * ObservationDim];
  T action[kSlots * ActionDim];
  T reward[kSlots];
  std::uint8_t flags[kSlots];
  std::uint32_t position;  // slot of the present observation
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

// Where the next observation goes: the slot after the present one; the oldest observation is
// overwritten once full.
template <class T, int S, int O, int A>
T* advance(ReplayBuffer<T, S, O, A>& replay) {
  if (replay.size > 0) replay.position = (replay.position + 1) % S;
  if (replay.size < S) replay.size++;
  replay.flags[replay.position] = 0;
  return replay.observation + replay.position * O;
}

// The observation that is answered next, or ends its episode.
template <class T, int S, int O, int A>
T* present_observation(ReplayBuffer<T, S, O, A>& replay) {
  return replay.observation + replay.position * O;
}

// Completes the present slot to a transition. Call advance() next, for the observation that the
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

// A transition's slot, uniform over all transitions held; the buffer must hold at least one.
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

// False where the contents cannot have come from advance() and record(): a state from elsewhere is
// checked with this before anything is sampled from it. `steps` is the number recorded in all, or
// no fewer than that where steps may be lost.
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

}  // namespace rlt
