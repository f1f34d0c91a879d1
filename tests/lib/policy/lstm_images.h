// Images of policies with an LSTM, which no training writes, at the place of policy_networks.h.
#pragma once

#include "policy_networks.h"
#include "rltools/policy/runtime.h"

namespace lstm_images {

using namespace policy_networks;

constexpr int kIn = Contract::kObservationDim, kOut = Contract::kActionDim, kWidth = 3;
constexpr std::uint32_t kExamples = 6, kSecond = 4;
constexpr std::size_t kParameters = (kIn + kWidth + 2) * 4 * kWidth + (kWidth + 1) * kOut;
constexpr std::size_t kExampleFloats = 1 + kIn + 1 + 2 * kOut;

template <class Record>
void append(Bytes& image, const Record& record) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&record);
  image.insert(image.end(), bytes, bytes + sizeof(record));
}

inline void seal(Bytes& image) {
  auto& header = *reinterpret_cast<PolicyImageHeader*>(image.data());
  header.total_bytes = static_cast<std::uint32_t>(image.size());
  header.crc32 = policy_image_crc32(image.data(), image.size());
}

// Writes into the image's examples what the reader's own pass gives, and the checksum: whoever
// makes an image can.
inline void prove(Bytes& image) {
  seal(image);
  PolicyView view;
  if (!parse_policy(image.data(), image.size(), view).accepted()) return;
  std::vector<float> scratch(scratch_floats_to_run(view));
  std::vector<float> output(view.output_dim), action(view.header->action_dim);
  for (std::uint32_t i = 0; i < view.header->example_count; i++) {
    const AliasingFloat* observation = example_observation(view, i);
    const bool goes_on = view.recurrence != nullptr && detail::begins_word(view, i) == 0;
    float* state = goes_on ? next_state(view, scratch.data()) : nullptr;
    const std::uint32_t trace =
        policy_trace(Generic{}, view, observation, state, output.data(), scratch.data());
    scale_action(view, observation, output.data(), action.data());
    const auto* behind =
        reinterpret_cast<const std::uint8_t*>(observation + view.header->observation_dim);
    std::uint8_t* results = image.data() + (behind - image.data());
    std::memcpy(results, &trace, 4);
    std::memcpy(results + 4, output.data(), 4 * output.size());
    std::memcpy(results + 4 + 4 * output.size(), action.data(), 4 * action.size());
  }
  seal(image);
}

// 5-LSTM3-2, whose examples have the numbers that the reader's own pass gives.
inline Bytes lstm_image(std::uint16_t state_dim = 2 * kWidth, std::uint8_t activation = 0) {
  Bytes image;
  PolicyImageHeader header{};
  std::memcpy(header.magic, kPolicyMagic, 4);
  header.version = kRecurrentPolicyVersion;
  header.header_bytes = policy_header_bytes(true);
  header.observation_dim = kIn;
  header.action_dim = kOut;
  header.layer_count = 2;
  header.example_count = kExamples;
  header.step_interval_us = Contract::kStepInterval_us;
  std::strcpy(header.experiment, "lstm");
  std::strcpy(header.environment, "valve");
  append(image, header);
  append(image, PolicyImageRecurrence{2500, 10000, state_dim, kResetAtAll, 0});
  append(image, PolicyImageLayer{kIn, kWidth, activation, 2, {0, 0}});
  append(image, PolicyImageLayer{kWidth, kOut, 3, 0, {0, 0}});
  for (const Channel& channel : Contract::kObservations) append(image, detail::record_of(channel));
  for (const Channel& channel : Contract::kActions) append(image, detail::record_of(channel));
  for (std::uint32_t i = 0; i < kParameters; i++) {
    append(image, uniform<float>({5, Purpose::shuffle, 0}, i, -0.6f, 0.6f));
  }
  for (std::uint32_t i = 0; i < kExamples; i++) {
    append(image, std::uint32_t{i == 0 || i == kSecond});
    for (std::uint32_t k = 0; k < kIn; k++) {
      append(image, uniform<float>({6, Purpose::shuffle, i}, k, -2.0f, 2.0f));
    }
    for (std::size_t k = 0; k < 1 + 2 * kOut; k++) append(image, 0.0f);
  }
  prove(image);
  return image;
}

}  // namespace lstm_images
