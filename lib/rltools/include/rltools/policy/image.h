// Writes a network as a deployable policy image (docs/policy_image.md), with example inputs and
// what this device computes for them: of format 1, or of format 2 where the network is recurrent.
// No allocation; the image's size is known at compile time.
#pragma once

#include "rltools/core/random.h"
#include "rltools/nn/mlp.h"
#include "rltools/nn/window_passes.h"
#include "rltools/policy/contract.h"
#include "rltools/policy/format.h"

namespace rlt {

// Purpose of the examples' random numbers, far from those of core/random.h; their seed is 0 for
// every policy.
constexpr Purpose kPolicyExamples = static_cast<Purpose>(0x52544c50u);

// Statistics of a running observation normalizer: normalized = (observation - mean) * inverse_std.
struct PolicyNormalizer {
  const float* mean;  // (observation_dim); null where the policy takes observations as they are
  const float* inverse_std;  // (observation_dim)
};

// The origin of a policy: everything of the image but network and contract.
struct PolicyOrigin {
  const char* experiment;
  const char* environment;
  std::uint32_t step;  // environment steps of the training run
  std::uint32_t seed;  // of the training run
  std::uint32_t fingerprint;
  const std::uint8_t* state_sha256;  // 32 bytes
};

// Examples of its image.
template <class Network>
constexpr std::uint16_t kExamplesOf =
    kIsRecurrent<Network> ? kRecurrentExampleCount : kPolicyExampleCount;

// Return the size of the image of a network whose actions are `action_dim` elements, which may
// choose from `choices` names in all.
template <class Network>
constexpr std::uint32_t policy_image_bytes(bool has_normalizer = false,
                                           int action_dim = Network::kOutputDim, int choices = 0) {
  constexpr auto kObservation = static_cast<std::uint32_t>(Network::kInputDim);
  constexpr auto kOutput = static_cast<std::uint32_t>(Network::kOutputDim);
  const auto action = static_cast<std::uint32_t>(action_dim);
  const auto choice = static_cast<std::uint32_t>(choices);
  constexpr auto kLayers = static_cast<std::uint32_t>(Network::kLayerCount);
  constexpr auto kParameters = static_cast<std::uint32_t>(Network::kParameterCount);
  constexpr std::uint32_t kExample =
      kOutput + kObservation + 1u + (kIsRecurrent<Network> ? 1u : 0u);
  return policy_header_bytes(kIsRecurrent<Network>) + kLayers * sizeof(PolicyImageLayer) +
         (kObservation + action) * sizeof(PolicyImageChannel) + choice * sizeof(PolicyImageChoice) +
         (has_normalizer ? 2u : 0u) * kObservation * 4u + kParameters * 4u +
         kExamplesOf<Network> * (kExample + action) * 4u;
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

// Return whether a choice has as many names as its range has numbers, none of them empty.
constexpr bool choices_fit(const Channel& channel) {
  const int count = choice_count(channel);
  bool fit = count <= kMaxChoices && channel.minimum >= 0.0f && channel.minimum <= 0.0f &&
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

// Return the checksum of the network's output, and of every layer's, which lie in `hidden` one
// behind the other.
template <class Network>
std::uint32_t trace_of(const float* hidden, const Matrix<float, 1, Network::kOutputDim>& output) {
  const std::uint32_t trace = crc32(hidden, sizeof(float) * Network::kHiddenCount);
  return crc32(output.values, sizeof(output.values[0]) * Network::kOutputDim, trace);
}

// A step of a network, from the hidden state that is kept here, if it has one; returns its trace.
template <class Network, bool IsRecurrent = kIsRecurrent<Network>>
struct ExampleSteps {
  MlpBuffer<Network, 1> buffer;

  void begin() {}
  template <class Device>
  std::uint32_t step(Device device, const Network& network,
                     const Matrix<float, 1, Network::kInputDim>& input,
                     Matrix<float, 1, Network::kOutputDim>& output) {
    forward(device, network, input, output, buffer);
    return trace_of<Network>(buffer.hidden, output);
  }
};
template <class Network>
struct ExampleSteps<Network, true> {
  WindowBuffer<Network, 1, 1> buffer;
  Matrix<float, 1, Network::kStateDim> state;

  void begin() {
    for (float& value : state.values) value = 0.0f;
  }
  template <class Device>
  std::uint32_t step(Device device, const Network& network,
                     const Matrix<float, 1, Network::kInputDim>& input,
                     Matrix<float, 1, Network::kOutputDim>& output) {
    forward_step(device, network, input, state, output, buffer);
    return trace_of<Network>(buffer.hidden, output);
  }
};

// Add one example: input drawn uniformly from the channels' ranges, checksum of every layer's
// output, network output, physical action. Of a recurrent network it is a step, behind the word
// that says whether a sequence begins with it.
template <class Device, class Network>
void add_example(Device device, ByteWriter& writer, const Network& network,
                 const PolicyContract& contract, const PolicyNormalizer& normalizer,
                 std::uint32_t example, ExampleSteps<Network>& steps) {
  const RandomStream random{0, kPolicyExamples, example};
  Matrix<float, 1, Network::kInputDim> observation, input;
  Matrix<float, 1, Network::kOutputDim> output, action;
  for (int i = 0; i < Network::kInputDim; i++) {
    const Channel& channel = contract.observations[i];
    const float value =
        uniform<float>(random, static_cast<std::uint32_t>(i), channel.minimum, channel.maximum);
    observation.values[i] = value;
    input.values[i] = normalizer.mean == nullptr
                          ? value
                          : (value - normalizer.mean[i]) * normalizer.inverse_std[i];
  }
  const std::uint32_t begins = example == 0 || example == kSecondSequence ? 1 : 0;
  if (begins != 0) steps.begin();
  const std::uint32_t trace = steps.step(device, network, input, output);
  const float* element = output.values;
  for (int i = 0; i < contract.action_dim; i++) {
    const Channel& channel = contract.actions[i];
    const int choices = choice_count(channel);
    const auto is_allowed = [&](int number) {
      const int mask = mask_of(contract.observations, contract.observation_dim, channel, number);
      return mask < 0 || observation.values[mask] >= kMinAllowed;
    };
    action.values[i] = choices > 0
                           ? static_cast<float>(largest_allowed(element, choices, is_allowed))
                           : physical_action(*element, channel.minimum, channel.maximum);
    element += choices > 0 ? choices : 1;
  }
  if constexpr (kIsRecurrent<Network>) writer.add(begins);
  writer.add(observation.values, sizeof(float) * Network::kInputDim);
  writer.add(trace);
  writer.add(output.values, sizeof(float) * Network::kOutputDim);
  writer.add(action.values, sizeof(float) * static_cast<std::size_t>(contract.action_dim));
}

// Return a layer's record; all layers of an Mlp are dense.
template <class Network>
constexpr PolicyImageLayer layer_record(int layer) {
  PolicyLayerKind kind = PolicyLayerKind::dense;
  if constexpr (kIsRecurrent<Network>) {
    if (Network::is_recurrent(layer)) kind = PolicyLayerKind::gru;
  }
  return {static_cast<std::uint16_t>(Network::input_dim(layer)),
          static_cast<std::uint16_t>(Network::output_dim(layer)),
          static_cast<std::uint8_t>(Network::activation(layer)),
          static_cast<std::uint8_t>(kind),
          {0, 0}};
}

constexpr std::uint32_t kPauseSteps =
    4;  // that a hidden state outlasts, where nothing else is said

inline PolicyImageRecurrence recurrence_record(std::uint32_t trained_interval_us, int state_dim) {
  const std::uint32_t pause_us = trained_interval_us > kMaxStepInterval_us / kPauseSteps
                                     ? kMaxStepInterval_us
                                     : kPauseSteps * trained_interval_us;
  return {trained_interval_us, pause_us, static_cast<std::uint16_t>(state_dim), kResetAtAll, 0};
}

}  // namespace detail

// Write policy_image_bytes<Network>(normalizer.mean != nullptr, ...) bytes to `image`, by the
// contract's actions. A step of training, with which a hidden state moves on, has `ticks_per_step`
// of the contract's intervals.
template <class Device, class Network>
void write_policy_image(Device device, const Network& network, const PolicyContract& contract,
                        const PolicyNormalizer& normalizer, const PolicyOrigin& origin,
                        std::uint8_t* image, std::uint32_t ticks_per_step = 1) {
  static_assert(
      data_type_of(static_cast<const typename Network::Scalar*>(nullptr)) == DataType::f32,
      "a policy image holds a network of float; this network's Scalar is another type");
  const bool has_normalizer = normalizer.mean != nullptr;
  const int choices = choice_count(contract.actions, contract.action_dim);
  const std::uint32_t bytes =
      policy_image_bytes<Network>(has_normalizer, contract.action_dim, choices);
  PolicyImageHeader header{};
  __builtin_memcpy(header.magic, kPolicyMagic, sizeof(kPolicyMagic));
  header.version = kIsRecurrent<Network> ? kRecurrentPolicyVersion : kPolicyVersion;
  header.header_bytes = policy_header_bytes(kIsRecurrent<Network>);
  header.total_bytes = bytes;
  header.observation_dim = Network::kInputDim;
  header.action_dim = static_cast<std::uint16_t>(contract.action_dim);
  header.layer_count = Network::kLayerCount;
  header.example_count = kExamplesOf<Network>;
  header.flags = (has_normalizer ? kPolicyHasNormalizer : 0u) |
                 (choices > 0 ? kPolicyHasChoices : 0u) | contract.assumed;
  header.step_interval_us = contract.step_interval_us;
  header.step = origin.step;
  header.seed = origin.seed;
  header.fingerprint = origin.fingerprint;
  __builtin_memcpy(header.state_sha256, origin.state_sha256, sizeof(header.state_sha256));
  detail::copy_text(header.experiment, origin.experiment);
  detail::copy_text(header.environment, origin.environment);

  detail::ByteWriter writer{image};
  writer.add(header);
  if constexpr (kIsRecurrent<Network>) {
    const std::uint32_t trained_interval_us = ticks_per_step * contract.step_interval_us;
    writer.add(detail::recurrence_record(trained_interval_us, kStateDim<Network>));
  }
  for (int layer = 0; layer < Network::kLayerCount; layer++) {
    writer.add(detail::layer_record<Network>(layer));
  }
  detail::add_channels(writer, contract.observations, contract.observation_dim);
  detail::add_channels(writer, contract.actions, contract.action_dim);
  detail::for_each_choice_record(contract,
                                 [&](const PolicyImageChoice& record) { writer.add(record); });
  if (has_normalizer) {
    writer.add(normalizer.mean, sizeof(float) * Network::kInputDim);
    writer.add(normalizer.inverse_std, sizeof(float) * Network::kInputDim);
  }
  writer.add(network.values, sizeof(float) * Network::kParameterCount);
  detail::ExampleSteps<Network> steps;
  for (std::uint32_t example = 0; example < kExamplesOf<Network>; example++) {
    detail::add_example(device, writer, network, contract, normalizer, example, steps);
  }
  header.crc32 = policy_image_crc32(image, bytes);
  __builtin_memcpy(image, &header, sizeof(header));
}

}  // namespace rlt
