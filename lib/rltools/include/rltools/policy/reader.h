// Reads a policy image (docs/policy_image.md) of any shape in place, and checks all of it that can
// be checked without running the policy.
#pragma once

#include "rltools/core/finite.h"
#include "rltools/nn/recurrent_at_run_time.h"
#include "rltools/policy/contract.h"
#include "rltools/policy/entry_envelope.h"
#include "rltools/policy/format.h"

namespace rlt {

// The outcome of a check: a reason, and the layer, channel, number or example that it is about
// (else 0).
struct PolicyVerdict {
  PolicyReason reason;
  std::uint32_t where;

  constexpr bool accepted() const { return reason == PolicyReason::accepted; }
};

// The parts of an image that parse_policy() accepted. The image's bytes outlive this and stay as
// they are: PolicyRunner in runtime.h sees to that.
struct PolicyView {
  const PolicyImageHeader* header;
  const PolicyImageRecurrence* recurrence;  // null in format 1: there is no hidden state
  const PolicyImageLayer* layers;
  const PolicyImageChannel* observations;
  const PolicyImageChannel* actions;
  const PolicyImageChoice* choices;  // what actions choose from, in their order; null: none chooses
  const AliasingFloat* mean;         // null where there is no normalizer
  const AliasingFloat* inverse_std;
  const AliasingFloat*
      parameters;  // of each layer weights (in, out), then bias (out); or RecurrentParameters
  // For each, with `begins` in format 2 only: begins (a word), observation, trace (a word), output,
  // action.
  const AliasingFloat* examples;
  std::uint32_t widest;        // of observation and layers
  std::uint32_t max_products;  // of one recurrent layer; 0: there are none
  std::uint32_t output_dim;    // of the last layer: the actions' number where none chooses
  bool is_masked;              // an observation forbids a choice
  bool states_entry;           // else `entry` is kEntryAtRest
  EntryEnvelope entry;
};

inline int gate_count(const PolicyImageLayer& layer) {
  return is_of_kind(layer, PolicyLayerKind::lstm) ? kLstmGates : kGruGates;
}

// Return the numbers of the hidden state; 0: there is none.
inline std::uint32_t state_dim(const PolicyView& policy) {
  return policy.recurrence == nullptr ? 0 : policy.recurrence->state_dim;
}

// Return the words of an example before its observation.
inline std::uint32_t words_before_observation(const PolicyView& policy) {
  return policy.recurrence == nullptr ? 0 : 1;
}
inline std::uint32_t example_floats(const PolicyView& policy) {
  return words_before_observation(policy) + policy.header->observation_dim + 1u +
         policy.output_dim + policy.header->action_dim;
}
inline const AliasingFloat* example_observation(const PolicyView& policy, std::uint32_t example) {
  return policy.examples + std::size_t{example} * example_floats(policy) +
         words_before_observation(policy);
}

namespace detail {

// Return the record at an address within an image, which lies on a four-byte boundary.
template <class Record>
inline const Record* record_at(const void* address) {
  return static_cast<const Record*>(address);
}

// Return whether finite numbers are equal; 0 equals -0.
inline bool same_value(float a, float b) { return !(a < b) && !(a > b); }

// Return accepted, or the number of the first value that is not finite.
template <class Values>
inline PolicyVerdict check_finite(Values values, std::uint64_t count) {
  const std::uint64_t first = finite_count(values, count);
  if (first == count) return {PolicyReason::accepted, 0};
  return {PolicyReason::not_finite, static_cast<std::uint32_t>(first)};
}

template <std::size_t Capacity>
inline bool is_text(const char (&field)[Capacity]) {
  std::size_t length = 0;
  while (length < Capacity && field[length] != '\0') length++;
  if (length == 0 || length == Capacity) return false;
  for (std::size_t i = length; i < Capacity; i++) {
    if (field[i] != '\0') return false;
  }
  return true;
}

// Return whether it is a text without a bar. Neither a unit nor the name of a choice has one: it
// stands between those names in a Channel.
template <std::size_t Capacity>
inline bool is_text_without_bar(const char (&field)[Capacity]) {
  for (const char c : field) {
    if (c == '|') return false;
  }
  return is_text(field);
}

template <std::size_t Capacity>
inline bool same_text(const char (&field)[Capacity], const char* text) {
  for (std::size_t i = 0; i < Capacity; i++) {
    if (field[i] != text[i]) return false;
    if (text[i] == '\0') return true;
  }
  return false;
}

// Check length, magic, version and checksum.
inline PolicyReason check_envelope(const std::uint8_t* image, std::size_t count) {
  if (reinterpret_cast<std::uintptr_t>(image) % 4 != 0) return PolicyReason::misaligned;
  if (count < sizeof(PolicyImageHeader)) return PolicyReason::too_short;
  const auto& header = *detail::record_at<PolicyImageHeader>(image);
  for (std::size_t i = 0; i < sizeof(kPolicyMagic); i++) {
    if (header.magic[i] != kPolicyMagic[i]) return PolicyReason::bad_magic;
  }
  const bool is_recurrent = header.version == kRecurrentPolicyVersion;
  if (header.version != kPolicyVersion && !is_recurrent) return PolicyReason::unknown_version;
  const std::size_t header_bytes = policy_header_bytes(is_recurrent);
  if (header.header_bytes != header_bytes || header.total_bytes != count || count < header_bytes) {
    return PolicyReason::wrong_size;
  }
  if (policy_image_crc32(image, count) != header.crc32) return PolicyReason::wrong_crc;
  return PolicyReason::accepted;
}

// Return whether a layer is right. A recurrent one stands in format 2 only, and has no activation
// but its own.
inline bool is_layer(const PolicyImageLayer& layer, bool may_be_recurrent) {
  if (layer.output_dim == 0 || layer.reserved[0] != 0 || layer.reserved[1] != 0) return false;
  if (is_recurrent(layer)) return may_be_recurrent && layer.activation == 0;
  return is_of_kind(layer, PolicyLayerKind::dense) && layer.activation < kActivationCount &&
         has_activation(static_cast<Activation>(layer.activation));
}

// Check that the layers follow on each other, from the observations to the outputs; count the
// parameters.
inline PolicyVerdict check_layers(PolicyView& policy, std::uint64_t& parameter_count) {
  const PolicyImageHeader& header = *policy.header;
  const PolicyImageLayer* layers = policy.layers;
  std::uint32_t width = header.observation_dim;
  std::uint64_t state = 0;
  parameter_count = 0;
  policy.widest = width;
  policy.max_products = 0;
  for (std::uint32_t i = 0; i < header.layer_count; i++) {
    const PolicyImageLayer& layer = layers[i];
    if (layer.input_dim != width || !is_layer(layer, policy.recurrence != nullptr)) {
      return {PolicyReason::malformed, i};
    }
    width = layer.output_dim;
    if (is_recurrent(layer)) {
      const auto columns = static_cast<std::uint32_t>(gate_count(layer)) * width;
      parameter_count += (layer.input_dim + std::uint64_t{1} + width + 1) * columns;
      state += static_cast<std::uint32_t>(state_dim(layer));
      if (2 * columns > policy.max_products) policy.max_products = 2 * columns;
    } else {
      parameter_count += (layer.input_dim + std::uint64_t{1}) * width;
    }
    if (width > policy.widest) policy.widest = width;
  }
  if (width != policy.output_dim || state != state_dim(policy)) {
    return {PolicyReason::malformed, header.layer_count};
  }
  return {PolicyReason::accepted, 0};
}

inline PolicyVerdict check_channels(const PolicyImageChannel* channels, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; i++) {
    const PolicyImageChannel& channel = channels[i];
    if (!is_text(channel.name) || !is_text_without_bar(channel.unit))
      return {PolicyReason::malformed, i};
    if (!is_finite(channel.minimum) || !is_finite(channel.maximum) ||
        !is_finite(channel.maximum - channel.minimum)) {
      return {PolicyReason::not_finite, i};
    }
    if (!(channel.minimum < channel.maximum)) return {PolicyReason::malformed, i};
  }
  return {PolicyReason::accepted, 0};
}

// Return the number of choices of an action, in an image with choices: 0 where it is none, or
// cannot be.
inline int choice_count(const PolicyImageChannel& channel) {
  if (!same_text(channel.unit, kChoiceUnit)) return 0;
  const bool is_count = channel.maximum >= 1.0f && channel.maximum < float{kMaxChoices};
  const int last = is_count ? static_cast<int>(channel.maximum) : 0;
  const bool is_range = same_value(channel.minimum, 0.0f) && is_count &&
                        same_value(channel.maximum, static_cast<float>(last));
  return is_range ? last + 1 : 0;
}

// Count outputs and choices of the actions, whose table lies within the image.
inline PolicyVerdict count_choices(const PolicyView& policy, std::uint32_t& outputs,
                                   std::uint32_t& choices) {
  outputs = choices = 0;
  for (std::uint32_t i = 0; i < policy.header->action_dim; i++) {
    const auto count = static_cast<std::uint32_t>(choice_count(policy.actions[i]));
    if (count == 0 && same_text(policy.actions[i].unit, kChoiceUnit)) {
      return {PolicyReason::malformed, policy.header->observation_dim + i};
    }
    choices += count;
    outputs += count == 0 ? 1 : count;
  }
  return {choices == 0 ? PolicyReason::malformed : PolicyReason::accepted, 0};
}

// Return the observation that is the mask of a choice (contract.h); -1: there is none.
inline int mask_of(const PolicyView& policy, int action, const PolicyImageChoice& choice) {
  const int length = static_cast<int>(text_length(choice.name));
  for (int i = 0; i < policy.header->observation_dim; i++) {
    if (is_mask_of(policy.observations[i].name, policy.actions[action].name, choice.name, length)) {
      return i;
    }
  }
  return -1;
}

inline bool has_masks(const PolicyView& policy) {
  const PolicyImageChoice* choice = policy.choices;
  bool found = false;
  for (int i = 0; choice != nullptr && i < policy.header->action_dim; i++) {
    const int count = choice_count(policy.actions[i]);
    for (int k = 0; k < count; k++) found = found || mask_of(policy, i, *choice++) >= 0;
  }
  return found;
}

// Read the entry envelope, which lies within the image: finite, and no bound below 0.
inline PolicyVerdict check_entry(const PolicyImageEntry& record, EntryEnvelope& entry) {
  entry = {record.speed_m_s, record.offset_m, record.tilt_rad, record.rate_rad_s, record.height_m};
  const float bounds[] = {entry.speed_m_s, entry.offset_m, entry.tilt_rad, entry.rate_rad_s,
                          entry.height_m};
  const PolicyVerdict verdict = check_finite(bounds, 5);
  if (!verdict.accepted()) return verdict;
  for (std::uint32_t i = 0; i < 5; i++) {
    if (bounds[i] < 0.0f) return {PolicyReason::malformed, i};
  }
  return {record.reserved == 0 ? PolicyReason::accepted : PolicyReason::malformed, 0};
}

// Return 1 if a recurrent policy's example begins with a hidden state of zeros, else 0.
inline std::uint32_t begins_word(const PolicyView& policy, std::uint32_t example) {
  std::uint32_t word;
  __builtin_memcpy(&word, policy.examples + std::size_t{example} * example_floats(policy), 4);
  return word;
}

// Check that every number is finite; examples are checked without their traces, which are no
// floats. The first of sequences begins one.
inline PolicyVerdict check_numbers(const PolicyView& policy, std::uint64_t parameter_count) {
  const PolicyImageHeader& header = *policy.header;
  if (policy.mean != nullptr) {
    const PolicyVerdict verdict = check_finite(policy.mean, 2u * header.observation_dim);
    if (!verdict.accepted()) return verdict;
  }
  const PolicyVerdict verdict = check_finite(policy.parameters, parameter_count);
  if (!verdict.accepted()) return verdict;
  for (std::uint32_t i = 0; i < header.example_count; i++) {
    const std::uint32_t begins = policy.recurrence == nullptr ? 1 : begins_word(policy, i);
    if (begins > 1 || (i == 0 && begins == 0)) return {PolicyReason::malformed, i};
    const AliasingFloat* example = example_observation(policy, i);
    if (!all_finite(example, header.observation_dim) ||
        !all_finite(example + header.observation_dim + 1, policy.output_dim + header.action_dim)) {
      return {PolicyReason::not_finite, i};
    }
  }
  return {PolicyReason::accepted, 0};
}

}  // namespace detail

// Check all that can be checked without running the policy, and fill `policy`. `image` lies on a
// four-byte boundary.
inline PolicyVerdict parse_policy(const std::uint8_t* image, std::size_t count,
                                  PolicyView& policy) {
  const PolicyReason envelope = detail::check_envelope(image, count);
  if (envelope != PolicyReason::accepted) return {envelope, 0};
  const auto& header = *detail::record_at<PolicyImageHeader>(image);
  if (header.observation_dim == 0 || header.action_dim == 0 || header.layer_count == 0 ||
      header.example_count == 0 || (header.flags & ~kPolicyFlags) != 0 || header.reserved != 0 ||
      !is_step_interval(header.step_interval_us) || !detail::is_text(header.experiment) ||
      !detail::is_text(header.environment)) {
    return {PolicyReason::malformed, 0};
  }
  const std::uint64_t channel_count = std::uint64_t{header.observation_dim} + header.action_dim;
  std::uint64_t tables_bytes = header.header_bytes + header.layer_count * sizeof(PolicyImageLayer) +
                               channel_count * sizeof(PolicyImageChannel);
  if (tables_bytes > count) return {PolicyReason::malformed, 0};

  policy.header = &header;
  policy.recurrence = nullptr;
  if (header.version == kRecurrentPolicyVersion) {
    policy.recurrence = detail::record_at<PolicyImageRecurrence>(image + sizeof(PolicyImageHeader));
    if (!is_recurrence(*policy.recurrence, header.step_interval_us)) {
      return {PolicyReason::malformed, 0};
    }
  }
  policy.layers = detail::record_at<PolicyImageLayer>(image + header.header_bytes);
  policy.observations = detail::record_at<PolicyImageChannel>(policy.layers + header.layer_count);
  policy.actions = policy.observations + header.observation_dim;
  policy.choices = nullptr;
  policy.is_masked = false;
  policy.states_entry = (header.flags & kPolicyHasEntry) != 0;
  policy.entry = kEntryAtRest;
  policy.output_dim = header.action_dim;
  PolicyVerdict verdict{PolicyReason::accepted, 0};
  std::uint32_t choices = 0;
  if ((header.flags & kPolicyHasChoices) != 0) {
    policy.choices = detail::record_at<PolicyImageChoice>(policy.actions + header.action_dim);
    verdict = detail::count_choices(policy, policy.output_dim, choices);
    if (!verdict.accepted()) return verdict;
    tables_bytes += choices * sizeof(PolicyImageChoice);
  }
  const std::uint64_t entry_offset = tables_bytes;
  if (policy.states_entry) tables_bytes += sizeof(PolicyImageEntry);
  std::uint64_t parameter_count;
  verdict = detail::check_layers(policy, parameter_count);
  if (!verdict.accepted()) return verdict;
  const bool has_normalizer = (header.flags & kPolicyHasNormalizer) != 0;
  const std::uint64_t float_count = (has_normalizer ? 2u * header.observation_dim : 0u) +
                                    parameter_count +
                                    std::uint64_t{header.example_count} * example_floats(policy);
  if (tables_bytes + float_count * 4 != count) return {PolicyReason::malformed, 0};
  verdict = detail::check_channels(policy.observations, static_cast<std::uint32_t>(channel_count));
  if (!verdict.accepted()) return verdict;
  for (std::uint32_t i = 0; i < choices; i++) {
    if (!detail::is_text_without_bar(policy.choices[i].name)) return {PolicyReason::malformed, i};
  }
  policy.is_masked = detail::has_masks(policy);
  if (policy.states_entry) {
    const auto& record = *detail::record_at<PolicyImageEntry>(image + entry_offset);
    verdict = detail::check_entry(record, policy.entry);
    if (!verdict.accepted()) return verdict;
  }

  const auto* numbers = detail::record_at<AliasingFloat>(image + tables_bytes);
  policy.mean = has_normalizer ? numbers : nullptr;
  policy.inverse_std = has_normalizer ? numbers + header.observation_dim : nullptr;
  policy.parameters = numbers + (has_normalizer ? 2u * header.observation_dim : 0u);
  policy.examples = policy.parameters + parameter_count;
  return detail::check_numbers(policy, parameter_count);
}

}  // namespace rlt
