// The actions that an executor has output, for policies that see their own last ones. An image asks
// for them by channels behind the contract's observations, `<action>_t-<n>`: element `action` of
// the action that was given out n ticks ago, normalized to [-1, 1]; 0 before there were that many
// (docs/executor.md). Nothing is allocated.
#pragma once

#include "rltools/policy/format.h"

namespace rlt {

// Ticks that are kept where nothing else is said: 1 KB for four elements.
constexpr int kHistoryTicks = 64;

// A past action that a channel of an image asks for; `ticks` is 0 for any other channel.
struct PastAction {
  std::uint32_t action, ticks;
};

namespace detail {

// Return n of a name `<action>_t-<n>`, which is a text as is_text() has it; 0 for any other name. A
// number too large for any history stays too large.
inline std::uint32_t ticks_of_name(const char (&name)[kChannelNameBytes], const char* action) {
  constexpr std::uint32_t kTooMany = 100000;
  const char* const parts[] = {action, "_t-"};
  std::size_t i = 0;
  for (const char* text : parts) {
    for (; *text != '\0'; text++, i++) {
      if (name[i] != *text) return 0;
    }
  }
  if (name[i] == '0') return 0;
  std::uint32_t ticks = 0;
  for (; name[i] != '\0'; i++) {
    if (name[i] < '0' || name[i] > '9') return 0;
    if (ticks < kTooMany) ticks = 10 * ticks + static_cast<std::uint32_t>(name[i] - '0');
  }
  return ticks;
}

}  // namespace detail

// Return the past action that a channel asks for, whose texts and range have been checked.
inline PastAction past_action(const PolicyImageChannel& channel, const PolicyContract& contract) {
  const bool is_normalized = channel.unit[0] == '1' && channel.unit[1] == '\0' &&
                             channel.minimum >= -1.0f && channel.minimum <= -1.0f &&
                             channel.maximum >= 1.0f && channel.maximum <= 1.0f;
  for (int i = 0; is_normalized && i < contract.action_dim; i++) {
    const std::uint32_t ticks = detail::ticks_of_name(channel.name, contract.actions[i].name);
    if (ticks != 0) return {static_cast<std::uint32_t>(i), ticks};
  }
  return {0, 0};
}

// Return the distance of an element behind the latest action's first one.
inline std::uint32_t history_index(const PastAction& past, const PolicyContract& contract) {
  return (past.ticks - 1) * static_cast<std::uint32_t>(contract.action_dim) + past.action;
}

// The last `Ticks` actions of up to `MaxActions` elements.
template <int Ticks, int MaxActions>
class ActionHistory {
  static_assert(Ticks > 0 && Ticks * MaxActions <= 32768, "an index of the history has 15 bits");

 public:
  explicit ActionHistory(int action_dim)
      : action_dim_(static_cast<std::uint32_t>(action_dim)), size_(Ticks * action_dim_) {}

  // Forget all actions.
  void reset() {
    for (float& value : values_) value = 0.0f;
  }
  // Add the latest action, normalized.
  void add(const float* action) {
    latest_ = (latest_ == 0 ? size_ : latest_) - action_dim_;
    for (std::uint32_t i = 0; i < action_dim_; i++) values_[latest_ + i] = action[i];
  }
  float at(std::uint32_t index_before) const {
    const std::uint32_t index = latest_ + index_before;
    return values_[index < size_ ? index : index - size_];
  }

 private:
  const std::uint32_t action_dim_, size_;
  std::uint32_t latest_ = 0;
  float values_[Ticks * MaxActions] = {};
};

// An executor that keeps none.
template <int MaxActions>
class ActionHistory<0, MaxActions> {
 public:
  explicit ActionHistory(int) {}
  void reset() {}
  void add(const float*) {}
  float at(std::uint32_t) const { return 0.0f; }
};

}  // namespace rlt
