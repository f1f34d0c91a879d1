// The contract between a policy and what it acts on: what the elements of observations and
// actions are called, their units and ranges, and the time of a step.
#pragma once

#include <cstdint>

#include "rltools/core/math.h"

namespace rlt {

// One element of an observation or an action: what it is called, its SI unit ("1" where it has
// none) and range. An action's range is that of the physical quantity: physical = minimum + (a + 1)
// / 2 * (maximum - minimum).
//
// An action may be a choice: its unit is the names of what there is to choose from, with a bar
// between them, and its value the number of one of them, from 0. choice() makes such a channel.
struct Channel {
  const char* name;
  const char* unit;
  float minimum, maximum;
};

// Return the number of choices of a channel; 0 for one that is no choice.
constexpr int choice_count(const Channel& channel) {
  if (channel.unit == nullptr) return 0;  // of a table with too few channels
  int bars = 0;
  for (const char* c = channel.unit; *c != '\0'; c++) bars += *c == '|';
  return bars == 0 ? 0 : bars + 1;
}

// Return a channel whose value is the number of one of `names`, such as "left|right".
constexpr Channel choice(const char* name, const char* names) {
  const int count = choice_count({name, names, 0.0f, 0.0f});
  return {name, names, 0.0f, static_cast<float>(count - 1)};
}

// Call visit(first, length) for the name of each of a channel's choices.
template <class Visit>
constexpr void for_each_choice(const Channel& channel, Visit&& visit) {
  const char* first = channel.unit;
  for (int left = choice_count(channel); left > 0; left--) {
    int length = 0;
    while (first[length] != '|' && first[length] != '\0') length++;
    visit(first, length);
    first += length + 1;
  }
}

// Return the number of outputs of the network whose actions these are: one for each of a choice's
// names, and one for each action that is none.
constexpr int output_count(const Channel* actions, int action_dim) {
  int count = 0;
  for (int i = 0; i < action_dim; i++) {
    const int choices = choice_count(actions[i]);
    count += choices == 0 ? 1 : choices;
  }
  return count;
}

// Return the number of names of all choices.
constexpr int choice_count(const Channel* actions, int action_dim) {
  int count = 0;
  for (int i = 0; i < action_dim; i++) count += choice_count(actions[i]);
  return count;
}

// Return the number of the largest of `count` finite outputs; the first of equal ones.
template <class T>
constexpr int largest_output(const T* outputs, int count) {
  int best = 0;
  for (int i = 1; i < count; i++) best = outputs[i] > outputs[best] ? i : best;
  return best;
}

// A mask: an observation that is called `<action>:<choice>` forbids that choice where it is below
// one half. Where all choices of an action are forbidden, none is.
constexpr float kMinAllowed = 0.5f;

// Return whether `name` is that of the mask of the choice that is `length` characters from `choice`
// on.
constexpr bool is_mask_of(const char* name, const char* action, const char* choice, int length) {
  for (; *action != '\0'; action++, name++) {
    if (*name != *action) return false;
  }
  if (*name++ != ':') return false;
  for (int i = 0; i < length; i++, name++) {
    if (*name != choice[i]) return false;
  }
  return *name == '\0';
}

// Return the same as largest_output(), of those for which is_allowed(number).
template <class T, class IsAllowed>
constexpr int largest_allowed(const T* outputs, int count, IsAllowed&& is_allowed) {
  int best = -1;
  for (int i = 0; i < count; i++) {
    if (is_allowed(i) && (best < 0 || outputs[i] > outputs[best])) best = i;
  }
  return best < 0 ? largest_output(outputs, count) : best;
}

// The longest step: of a clock of microseconds, which wraps after 71 minutes, two of them can still
// be distinguished from the time before.
constexpr std::uint32_t kMaxStepInterval_us = 600'000'000;

constexpr bool is_step_interval(std::uint32_t interval_us) {
  return interval_us >= 1 && interval_us <= kMaxStepInterval_us;
}

// Parts of a contract that its tools assumed, as nobody stated them: flags of the images that are
// written for it.
constexpr std::uint32_t kStepIntervalAssumed = 8, kSafeActionAssumed = 16;

// The meaning of observations and actions on the board on which a policy is to run. The arrays
// outlive it.
struct PolicyContract {
  std::uint32_t step_interval_us;
  int observation_dim;
  int action_dim;
  const Channel* observations;
  const Channel* actions;
  // The safe action, for when there is no finite one, in the channels' units (action_dim); null:
  // the middle of every range, and the first of all choices.
  const float* safe_action = nullptr;
  std::uint32_t assumed = 0;
};

inline float middle_of(float minimum, float maximum) { return 0.5f * (maximum + minimum); }

// Return the observation that is the mask of number `number` of an action's choices; -1: there is
// none.
constexpr int mask_of(const Channel* observations, int observation_dim, const Channel& action,
                      int number) {
  int found = -1, present = 0;
  for_each_choice(action, [&](const char* choice, int length) {
    if (present++ != number) return;
    for (int i = 0; i < observation_dim; i++) {
      const bool is_first = found < 0;
      if (is_first && is_mask_of(observations[i].name, action.name, choice, length)) found = i;
    }
  });
  return found;
}

// Return element `index` of the action that is taken where there is no finite one.
inline float safe_action(const PolicyContract& contract, int index) {
  const Channel& channel = contract.actions[index];
  if (contract.safe_action != nullptr) return contract.safe_action[index];
  return choice_count(channel) > 0 ? 0.0f : middle_of(channel.minimum, channel.maximum);
}

// Set action (action_dim) to the safe action.
inline void take_safe_action(const PolicyContract& contract, float* action) {
  for (int i = 0; i < contract.action_dim; i++) action[i] = safe_action(contract, i);
}

// Return channel `index` of all: the observations, then the actions.
inline const Channel& channel_of(const PolicyContract& contract, int index) {
  return index < contract.observation_dim ? contract.observations[index]
                                          : contract.actions[index - contract.observation_dim];
}

namespace detail {

// void for a type that exists: <type_traits> is not everywhere where policies run.
template <class>
struct VoidOf {
  using Type = void;
};

// A contract may state a safe action, `kSafeAction[kActionDim]` in the channels' units. An
// environment may have it from its contract in policy/contracts/. A run's run.json keeps it for
// exports of its policy.
template <class Environment, class = void>
struct SafeAction {
  static constexpr const float* kValues = nullptr;
  static constexpr bool kIsWithinRanges = true;
};
template <class Environment>
struct SafeAction<Environment, typename VoidOf<decltype(Environment::kSafeAction)>::Type> {
  static constexpr const float* kValues = Environment::kSafeAction;
  static constexpr bool is_within_ranges() {
    for (int i = 0; i < Environment::kActionDim; i++) {
      const Channel& channel = Environment::kActions[i];
      if (!(kValues[i] >= channel.minimum && kValues[i] <= channel.maximum)) return false;
    }
    return true;
  }
  static constexpr bool kIsWithinRanges = is_within_ranges();
};

template <class Environment, class = void>
struct Assumed {
  static constexpr std::uint32_t kValue = 0;
};
template <class Environment>
struct Assumed<Environment, typename VoidOf<decltype(Environment::kAssumed)>::Type> {
  static constexpr std::uint32_t kValue = Environment::kAssumed;
};

}  // namespace detail

template <class Environment>
constexpr PolicyContract policy_contract() {
  static_assert(detail::SafeAction<Environment>::kIsWithinRanges,
                "the environment's kSafeAction lies outside the range of its channel");
  static_assert(is_step_interval(Environment::kStepInterval_us),
                "the environment's kStepInterval_us is 0, or more than 600 s");
  return {Environment::kStepInterval_us,
          Environment::kObservationDim,
          Environment::kActionDim,
          Environment::kObservations,
          Environment::kActions,
          detail::SafeAction<Environment>::kValues,
          detail::Assumed<Environment>::kValue};
}

// Return a normalized action in physical units: -1 is the channel's minimum, 1 its maximum; beyond,
// it is clamped, and so is what rounding takes out of the range. The action is a number: a NaN
// would pass.
inline float physical_action(float action, float minimum, float maximum) {
  const float half_range = 0.5f * (maximum - minimum);
  const float physical =
      math::fma(math::clamp(action, -1.0f, 1.0f), half_range, middle_of(minimum, maximum));
  return math::clamp(physical, minimum, maximum);
}

// Return the normalized action of a physical one, which beyond its range counts as its bound. Exact
// for a range whose half is a power of two about zero, such as [-2, 2] or [-1, 1].
template <class T>
T normalized_action(T physical, float minimum, float maximum) {
  const T low = static_cast<T>(minimum), high = static_cast<T>(maximum);
  const T middle = static_cast<T>(middle_of(minimum, maximum));
  const T half_range = static_cast<T>(0.5f * (maximum - minimum));
  return math::clamp((math::clamp(physical, low, high) - middle) / half_range, T(-1), T(1));
}

}  // namespace rlt
