// Sums over time of what a policy observes, for policies that see them: what is to be held without
// an offset where something pushes steadily asks for one (its integral). An image asks for them by
// channels behind the contract's observations, `<observation>_sum`: the sum over the ticks before
// on which the policy acted, of that element times a tick's duration, never beyond the channel's
// range; 0 before there was one (docs/executor.md). Nothing is allocated.
#pragma once

#include "rltools/core/math.h"
#include "rltools/policy/format.h"

namespace rlt {

inline constexpr char kSumName[] = "_sum", kSumUnit[] = " s";  // behind the observation's
// The number of sums that an executor keeps, and what images of the core's environments limit them
// to.
constexpr int kMaxSums = 8;
constexpr float kSumLimit = 1.0f;

// Return the seconds of so many intervals, the same in training and on a board.
template <class T>
constexpr T sum_step_s(std::uint32_t interval_us, std::uint32_t ticks = 1) {
  return static_cast<T>(interval_us * ticks) * static_cast<T>(1e-6);
}

// Return the sum a tick, or a step, later.
template <class T>
[[gnu::always_inline]] inline T next_sum(T sum, T value, T step_s, T minimum, T maximum) {
  return math::clamp(math::fma(value, step_s, sum), minimum, maximum);
}

namespace detail {

// Return whether a field is this text and this suffix, one behind the other.
template <std::size_t Capacity>
bool is_joined(const char (&field)[Capacity], const char* text, const char* suffix) {
  const char* const parts[] = {text, suffix};
  std::size_t i = 0;
  for (const char* part : parts) {
    for (; *part != '\0'; part++, i++) {
      if (i >= Capacity || field[i] != *part) return false;
    }
  }
  return i < Capacity && field[i] == '\0';
}

}  // namespace detail

// Return the observation whose sum a channel asks for; -1 for any other channel. Its texts and its
// range have been checked; 0 lies in it.
inline int summed_observation(const PolicyImageChannel& channel, const PolicyContract& contract) {
  if (!(channel.minimum <= 0.0f && channel.maximum >= 0.0f)) return -1;
  for (int i = 0; i < contract.observation_dim; i++) {
    const Channel& observation = contract.observations[i];
    if (detail::is_joined(channel.name, observation.name, kSumName) &&
        detail::is_joined(channel.unit, observation.unit, kSumUnit)) {
      return i;
    }
  }
  return -1;
}

// The sums that an executor keeps for its policy, in the order in which its image asks for them.
struct ObservationSums {
  float values[kMaxSums] = {};

  // Set all sums to 0.
  void reset() {
    for (float& value : values) value = 0.0f;
  }
};

}  // namespace rlt
