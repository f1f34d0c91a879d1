// Checks whether a policy image is made for a contract: its channels, choices and rate are those of
// the contract, and the executor keeps what else it asks for (docs/policy_image.md).
#pragma once

#include "rltools/policy/action_history.h"
#include "rltools/policy/contract.h"
#include "rltools/policy/observation_sum.h"
#include "rltools/policy/reader.h"

namespace rlt {

namespace detail {

inline bool same_channel(const PolicyImageChannel& channel, const Channel& expected) {
  const char* unit = rlt::choice_count(expected) > 0 ? kChoiceUnit : expected.unit;
  return same_text(channel.name, expected.name) && same_text(channel.unit, unit) &&
         same_value(channel.minimum, expected.minimum) &&
         same_value(channel.maximum, expected.maximum);
}

inline bool same_name(const PolicyImageChoice& choice, const char* name, int length) {
  for (int i = 0; i < length; i++) {
    if (choice.name[i] != name[i]) return false;
  }
  return choice.name[length] == '\0';
}

// Check that the actions of both choose from the same names, given that their channels are the
// same.
inline PolicyVerdict check_choices(const PolicyView& policy, const PolicyContract& contract) {
  const PolicyImageChoice* choices = policy.choices;
  for (int i = 0; i < contract.action_dim; i++) {
    const int count = choices == nullptr ? 0 : choice_count(policy.actions[i]);
    bool are_same = count == rlt::choice_count(contract.actions[i]);
    for_each_choice(contract.actions[i], [&](const char* name, int length) {
      are_same = are_same && same_name(*choices++, name, length);
    });
    if (!are_same) {
      const auto first = std::uint32_t{policy.header->observation_dim};
      return {PolicyReason::other_contract, first + static_cast<std::uint32_t>(i)};
    }
  }
  return {PolicyReason::accepted, 0};
}

}  // namespace detail

// Return the number of channels behind the contract's observations, which ask for past actions
// (action_history.h) and for sums (observation_sum.h); of an image that check_contract() accepts.
inline std::uint32_t added_input_count(const PolicyView& policy, const PolicyContract& contract) {
  return policy.header->observation_dim - static_cast<std::uint32_t>(contract.observation_dim);
}

// Check that the image's channels and rate are those of `contract`, and that further observations
// ask for actions of at most `history_ticks` ticks ago, and, where there is a history, for sums;
// `where` counts the image's observations, then the actions.
inline PolicyVerdict check_contract(const PolicyView& policy, const PolicyContract& contract,
                                    std::uint32_t history_ticks = 0) {
  const PolicyImageHeader& header = *policy.header;
  if (header.observation_dim < contract.observation_dim ||
      header.action_dim != contract.action_dim ||
      header.step_interval_us != contract.step_interval_us) {
    return {PolicyReason::other_contract, 0};
  }
  const std::uint32_t count = std::uint32_t{header.observation_dim} + header.action_dim;
  const auto first_added = static_cast<std::uint32_t>(contract.observation_dim);
  int sums = 0;
  for (std::uint32_t i = 0; i < count; i++) {
    const PolicyImageChannel& channel = policy.observations[i];
    const bool is_action = i >= header.observation_dim;
    if (i < first_added || is_action) {
      const Channel& expected =
          is_action ? contract.actions[i - header.observation_dim] : contract.observations[i];
      if (!detail::same_channel(channel, expected)) return {PolicyReason::other_contract, i};
      continue;
    }
    if (history_ticks > 0 && summed_observation(channel, contract) >= 0) {
      if (++sums > kMaxSums) return {PolicyReason::too_large, i};
      continue;
    }
    const PastAction past = past_action(channel, contract);
    if (past.ticks == 0) return {PolicyReason::other_contract, i};
    if (past.ticks > history_ticks) return {PolicyReason::history_too_long, i};
  }
  return detail::check_choices(policy, contract);
}

}  // namespace rlt
