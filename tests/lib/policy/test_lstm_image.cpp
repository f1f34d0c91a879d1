// Policy images with an LSTM, which no training writes: read, run, kept by a runner, and refused
// where a number of theirs is another. Test: -O1
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "policy_networks.h"
#include "rltools/devices/host.h"
#include "rltools/policy/runtime.h"

using namespace rlt;
using namespace policy_networks;

namespace {

constexpr int kIn = Contract::kObservationDim, kOut = Contract::kActionDim, kWidth = 3;
constexpr std::uint32_t kExamples = 6, kSecond = 4;
constexpr std::size_t kParameters = (kIn + kWidth + 2) * 4 * kWidth + (kWidth + 1) * kOut;
constexpr std::size_t kExampleFloats = 1 + kIn + 1 + 2 * kOut;

template <class Record>
void append(Bytes& image, const Record& record) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&record);
  image.insert(image.end(), bytes, bytes + sizeof(record));
}

void seal(Bytes& image) {
  auto& header = *reinterpret_cast<PolicyImageHeader*>(image.data());
  header.total_bytes = static_cast<std::uint32_t>(image.size());
  header.crc32 = policy_image_crc32(image.data(), image.size());
}

// 5-LSTM3-2, whose examples have the numbers that the reader's own pass gives.
Bytes lstm_image(std::uint16_t state_dim = 2 * kWidth, std::uint8_t activation = 0) {
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
  const std::size_t first = image.size();
  for (std::uint32_t i = 0; i < kExamples; i++) {
    append(image, std::uint32_t{i == 0 || i == kSecond});
    for (std::uint32_t k = 0; k < kIn; k++) {
      append(image, uniform<float>({6, Purpose::shuffle, i}, k, -2.0f, 2.0f));
    }
    for (std::size_t k = 0; k < 1 + 2 * kOut; k++) append(image, 0.0f);
  }
  seal(image);
  PolicyView view;
  if (!parse_policy(image.data(), image.size(), view).accepted()) return image;
  std::vector<float> scratch(scratch_floats_to_run(view));
  for (std::uint32_t i = 0; i < kExamples; i++) {
    float output[kOut], action[kOut];
    const AliasingFloat* observation = example_observation(view, i);
    float* state = detail::begins_word(view, i) != 0 ? nullptr : next_state(view, scratch.data());
    const std::uint32_t trace =
        policy_trace(Generic{}, view, observation, state, output, scratch.data());
    scale_action(view, observation, output, action);
    std::uint8_t* results = image.data() + first + 4 * (i * kExampleFloats + 1 + kIn);
    std::memcpy(results, &trace, 4);
    std::memcpy(results + 4, output, sizeof(output));
    std::memcpy(results + 4 + sizeof(output), action, sizeof(action));
  }
  seal(image);
  return image;
}

// Layers 2 x 5, products 8 x 3, the state after a step and the kept one 6 each.
constexpr std::size_t kFloats = 2 * 5 + 8 * 3 + 2 * 6;

PolicyVerdict verdict_on(Bytes image) {
  static PolicyRunner<kFloats, 1> runner(policy_contract<Contract>());
  seal(image);
  return runner.accept(Host{}, image.data(), image.size());
}

}  // namespace

TEST_CASE("an image with an LSTM is accepted where there is memory for its state, and time") {
  const Bytes image = lstm_image();
  CHECK(verdict_on(image).accepted());
  PolicyRunner<kFloats - 1, 1> too_small(policy_contract<Contract>());
  CHECK(too_small.accept(Generic{}, image.data(), image.size()).reason == PolicyReason::too_large);
  PolicyRunner<kFloats> timeless(policy_contract<Contract>());
  CHECK(timeless.accept(Generic{}, image.data(), image.size()).reason ==
        PolicyReason::state_not_kept);
}

TEST_CASE("a runner keeps outputs and cells of an LSTM, and goes on from both") {
  const Bytes image = lstm_image();
  PolicyView view;
  REQUIRE(parse_policy(image.data(), image.size(), view).accepted());
  REQUIRE(state_dim(view) == 2 * kWidth);
  static PolicyRunner<kFloats, 1> runner(policy_contract<Contract>());
  REQUIRE(runner.accept(Host{}, image.data(), image.size()).accepted());
  ActionHistory<1, kOut> history(kOut);
  ObservationSums sums;
  float state[2 * kWidth] = {}, products[8 * kWidth];
  float normalised[kOut], action[kOut], output[kWidth];
  for (std::uint32_t i = 0; i < 20; i++) {
    float observation[kIn];
    for (std::uint32_t k = 0; k < kIn; k++) {
      observation[k] = uniform<float>({7, Purpose::shuffle, i}, k, -2.0f, 2.0f);
    }
    if (i == 10) {
      runner.reset_state();
      for (float& each : state) each = 0.0f;
    }
    REQUIRE(runner.forward_in_time(Host{}, observation, history, sums, normalised, action));
    lstm_forward_at_run_time(Generic{}, kIn, kWidth,
                             recurrent_parameters(kLstmGates, kIn, kWidth, view.parameters),
                             observation, state, products, state, output);
    REQUIRE(std::memcmp(runner.last_state(), state, sizeof(state)) == 0);
    runner.keep_state();
  }
}

TEST_CASE("what is no LSTM, or is another, is refused") {
  CHECK(verdict_on(lstm_image(kWidth)).reason == PolicyReason::malformed);
  CHECK(verdict_on(lstm_image(2 * kWidth, 1)).reason == PolicyReason::malformed);
  Bytes as_gru = lstm_image();
  as_gru[policy_header_bytes(true) + 5] = 1;
  CHECK(verdict_on(as_gru).reason == PolicyReason::malformed);
  const Bytes image = lstm_image();
  const std::size_t examples = image.size() - 4 * kExamples * kExampleFloats;
  // Another bit of any parameter shows in a trace, and so does a reset elsewhere.
  const std::size_t parameters = examples - 4 * kParameters;
  int refused = 0;
  for (std::size_t i = 0; i < kParameters; i++) {
    Bytes changed = image;
    changed[parameters + 4 * i + 1] ^= 1;
    refused += verdict_on(changed).reason == PolicyReason::example_not_reproduced;
  }
  CHECK(refused == static_cast<int>(kParameters));
  Bytes goes_on = image;
  goes_on[examples + 4 * kSecond * kExampleFloats] = 0;
  const PolicyVerdict verdict = verdict_on(goes_on);
  CHECK(verdict.reason == PolicyReason::example_not_reproduced);
  CHECK(verdict.where == kSecond);
  // Cut off, or with another checksum.
  for (std::size_t count = sizeof(PolicyImageHeader); count < image.size(); count += 5) {
    CHECK_FALSE(
        verdict_on(Bytes(image.begin(), image.begin() + static_cast<long>(count))).accepted());
  }
}
