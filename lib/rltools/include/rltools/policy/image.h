// Writes a network as a deployable policy image (docs/policy_image.md), with example inputs and
// what this device computes for them. No allocation; the image's size is known at compile time.
#pragma once

#include "rltools/core/random.h"
#include "rltools/nn/mlp.h"
#include "rltools/policy/contract.h"
#include "rltools/policy/format.h"

namespace rlt {

// Purpose of the examples' random numbers, far from those of core/random.h; their seed is 0 for
// every policy.
constexpr Purpose kPolicyExamples = static_cast<Purpose>(0x52544c50u);

// Statistics of a running observation normaliser: normalised = (observation - mean) * inverse_std.
struct PolicyNormaliser {
  const float* mean;  // (observation_dim); null where the policy takes observations as they are
  const float* inverse_std;  // (observation_dim)
};

// Where a policy comes from; everything of the image but network and contract.
struct PolicyOrigin {
  const char* experiment;
  const char* environment;
  std::uint32_t step;  // environment steps of the training run
  std::uint32_t seed;  // of the training run
  std::uint32_t fingerprint;
  const std::uint8_t* state_sha256;  // 32 bytes
};

// Size of the image of a network whose actions are `action_dim` elements, which may choose from
// `choices` names in all.
template <class Network>
constexpr std::uint32_t policy_image_bytes(bool has_normaliser = false,
                                           int action_dim = Network::kOutputDim, int choices = 0) {
  constexpr auto kObservation = static_cast<std::uint32_t>(Network::kInputDim);
  constexpr auto kOutput = static_cast<std::uint32_t>(Network::kOutputDim);
  const auto action = static_cast<std::uint32_t>(action_dim);
  const auto choice = static_cast<std::uint32_t>(choices);
  constexpr auto kLayers = static_cast<std::uint32_t>(Network::kLayerCount);
  constexpr auto kParameters = static_cast<std::uint32_t>(Network::kParameterCount);
  return sizeof(PolicyImageHeader) + kLayers * sizeof(PolicyImageLayer) +
         (kObservation + action) * sizeof(PolicyImageChannel) + choice * sizeof(PolicyImageChoice) +
         (has_normaliser ? 2u : 0u) * kObservation * 4u + kParameters * 4u +
         kPolicyExampleCount * (kObservation + kOutput + action + 1u) * 4u;
}

namespace detail {

// Appends to an array of bytes; the caller knows that they fit.
struct ByteWriter {
  std::uint8_t* position;

  void add(const void* source, std::size_t count) {
    __builtin_memcpy(position, source, count);
    position += count;
  }
  template <class Record>
  void add(const Record& record) {
    add(&record, sizeof(Record));
  }
};

// A choice has as many names as its range has numbers, none of them empty.
constexpr bool choices_fit(const Channel& channel) {
  const int count = choice_count(channel);
  bool fit = count <= kMostChoices && channel.minimum >= 0.0f && channel.minimum <= 0.0f &&
             channel.maximum >= static_cast<float>(count - 1) &&
             channel.maximum <= static_cast<float>(count - 1);
  for_each_choice(channel, [&fit](const char*, int length) {
    fit = fit && length > 0 && length < static_cast<int>(kChannelNameBytes);
  });
  return fit;
}

constexpr bool channels_fit(const Channel* channels, int count) {
  for (int i = 0; i < count; i++) {
    if (!channels[i].name || !channels[i].unit) return false;
    if (text_length(channels[i].name) >= kChannelNameBytes) return false;
    if (choice_count(channels[i]) > 0) {
      if (!choices_fit(channels[i])) return false;
      continue;
    }
    if (text_length(channels[i].unit) >= kChannelUnitBytes) return false;
    if (!(channels[i].minimum < channels[i].maximum)) return false;
    if (!(channels[i].maximum - channels[i].minimum <= 3.4028234663852886e38f)) return false;
  }
  return true;
}

inline void add_channels(ByteWriter& writer, const Channel* channels, int count) {
  for (int i = 0; i < count; i++) {
    // GCC 12 with AVX-512 at -O1 may read a local record as if it were aligned.
    alignas(32) const PolicyImageChannel record = record_of(channels[i]);
    writer.add(record);
  }
}

// One example: input drawn uniformly from the channels' ranges, checksum of every layer's output,
// network output, physical action.
template <class Device, class Network>
void add_example(Device device, ByteWriter& writer, const Network& network,
                 const PolicyContract& contract, const PolicyNormaliser& normaliser,
                 std::uint32_t example) {
  const RandomStream random{0, kPolicyExamples, example};
  Matrix<float, 1, Network::kInputDim> observation, input;
  Matrix<float, 1, Network::kOutputDim> output, action;
  MlpBuffer<Network, 1> buffer;
  for (int i = 0; i < Network::kInputDim; i++) {
    const Channel& channel = contract.observations[i];
    const float value =
        uniform<float>(random, static_cast<std::uint32_t>(i), channel.minimum, channel.maximum);
    observation.values[i] = value;
    input.values[i] = normaliser.mean == nullptr
                          ? value
                          : (value - normaliser.mean[i]) * normaliser.inverse_std[i];
  }
  forward(device, network, input, output, buffer);
  const float* element = output.values;
  for (int i = 0; i < contract.action_dim; i++) {
    const Channel& channel = contract.actions[i];
    const int choices = choice_count(channel);
    const auto is_allowed = [&](int number) {
      const int mask = mask_of(contract.observations, contract.observation_dim, channel, number);
      return mask < 0 || observation.values[mask] >= kLeastAllowed;
    };
    action.values[i] = choices > 0
                           ? static_cast<float>(largest_allowed(element, choices, is_allowed))
                           : physical_action(*element, channel.minimum, channel.maximum);
    element += choices > 0 ? choices : 1;
  }
  std::uint32_t trace = crc32(buffer.hidden, sizeof(float) * Network::kHiddenCount);
  trace = crc32(output.values, sizeof(output.values[0]) * Network::kOutputDim, trace);
  writer.add(observation.values, sizeof(float) * Network::kInputDim);
  writer.add(trace);
  writer.add(output.values, sizeof(float) * Network::kOutputDim);
  writer.add(action.values, sizeof(float) * static_cast<std::size_t>(contract.action_dim));
}

}  // namespace detail

// Writes policy_image_bytes<Network>(normaliser.mean != nullptr, ...) bytes to `image`, by the
// contract's actions.
template <class Device, class Network>
void write_policy_image(Device device, const Network& network, const PolicyContract& contract,
                        const PolicyNormaliser& normaliser, const PolicyOrigin& origin,
                        std::uint8_t* image) {
  static_assert(
      data_type_of(static_cast<const typename Network::Scalar*>(nullptr)) == DataType::f32,
      "a policy image holds a network of float; this network's Scalar is another type");
  const bool has_normaliser = normaliser.mean != nullptr;
  const int choices = choice_count(contract.actions, contract.action_dim);
  const std::uint32_t bytes =
      policy_image_bytes<Network>(has_normaliser, contract.action_dim, choices);
  PolicyImageHeader header{};
  __builtin_memcpy(header.magic, kPolicyMagic, sizeof(kPolicyMagic));
  header.version = kPolicyVersion;
  header.header_bytes = sizeof(PolicyImageHeader);
  header.total_bytes = bytes;
  header.observation_dim = Network::kInputDim;
  header.action_dim = static_cast<std::uint16_t>(contract.action_dim);
  header.layer_count = Network::kLayerCount;
  header.example_count = kPolicyExampleCount;
  header.flags =
      (has_normaliser ? kPolicyHasNormaliser : 0u) | (choices > 0 ? kPolicyHasChoices : 0u);
  header.step_interval_us = contract.step_interval_us;
  header.step = origin.step;
  header.seed = origin.seed;
  header.fingerprint = origin.fingerprint;
  __builtin_memcpy(header.state_sha256, origin.state_sha256, sizeof(header.state_sha256));
  detail::copy_text(header.experiment, origin.experiment);
  detail::copy_text(header.environment, origin.environment);

  detail::ByteWriter writer{image};
  writer.add(header);
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    writer.add(PolicyImageLayer{static_cast<std::uint16_t>(Network::input_dim(layer)),
                                static_cast<std::uint16_t>(Network::output_dim(layer)),
                                static_cast<std::uint8_t>(Network::activation(layer)),
                                {0, 0, 0}});
  }
  detail::add_channels(writer, contract.observations, contract.observation_dim);
  detail::add_channels(writer, contract.actions, contract.action_dim);
  detail::for_each_choice_record(contract,
                                 [&](const PolicyImageChoice& record) { writer.add(record); });
  if (has_normaliser) {
    writer.add(normaliser.mean, sizeof(float) * Network::kInputDim);
    writer.add(normaliser.inverse_std, sizeof(float) * Network::kInputDim);
  }
  writer.add(network.values, sizeof(float) * Network::kParameterCount);
  for (std::uint32_t example = 0; example < kPolicyExampleCount; example++) {
    detail::add_example(device, writer, network, contract, normaliser, example);
  }
  header.crc32 = policy_image_crc32(image, bytes);
  __builtin_memcpy(image, &header, sizeof(header));
}

}  // namespace rlt
