// Policy images with an LSTM: read, run, kept by a runner, and refused
// where a number of theirs is another. Test: -O1
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "lstm_images.h"
#include "rltools/devices/host.h"

using namespace rlt;
using namespace lstm_images;

namespace {

// Layers 2 x 5, products 8 x 3, the state after a step and the kept one 6 each.
constexpr std::size_t kFloats = 2 * 5 + 8 * 3 + 3 * 6;

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
  float normalized[kOut], action[kOut], output[kWidth];
  for (std::uint32_t i = 0; i < 20; i++) {
    float observation[kIn];
    for (std::uint32_t k = 0; k < kIn; k++) {
      observation[k] = uniform<float>({7, Purpose::shuffle, i}, k, -2.0f, 2.0f);
    }
    if (i == 10) {
      runner.reset_state();
      for (float& each : state) each = 0.0f;
    }
    REQUIRE(runner.forward_in_time(Host{}, observation, history, sums, normalized, action));
    recurrent_forward_at_run_time(Generic{}, kLstmGates, kIn, kWidth,
                                  recurrent_parameters(kLstmGates, kIn, kWidth, view.parameters),
                                  observation, state, products, state, output);
    REQUIRE(std::memcmp(runner.last_state(), state, sizeof(state)) == 0);
    runner.keep_state();
    runner.take_state();
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
