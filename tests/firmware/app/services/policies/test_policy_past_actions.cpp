// The infer application with a policy that sees its own last actions: the host gives a network
// alone all that it takes, and the executor the contract's observation.
#include "infer_board.h"

#include <limits>

using namespace infer_board;

namespace {

constexpr int kAsked = 3, kInput = Contract::kObservationDim + kAsked;
using Remembering =
    Mlp<float, Dimensions<kInput, 5, Contract::kActionDim>, Activation::relu, Activation::tanh>;

const Remembering& network() {
  static Remembering network;
  initialize_kaiming(Generic{}, network, 4, 0);
  return network;
}

Bytes image_with_past_actions() {
  static Channel channels[kInput];
  for (int i = 0; i < Contract::kObservationDim; i++) channels[i] = Contract::kObservations[i];
  const char* const names[kAsked] = {"left_t-1", "right_t-1", "left_t-3"};
  for (int i = 0; i < kAsked; i++) {
    channels[Contract::kObservationDim + i] = {names[i], "1", -1.0f, 1.0f};
  }
  PolicyContract contract = policy_contract<Contract>();
  contract.observation_dim = kInput;
  contract.observations = channels;
  Bytes image(policy_image_bytes<Remembering>());
  write_policy_image(Generic{}, network(), contract, {nullptr, nullptr}, kOrigin, image.data());
  return image;
}

struct Outputs {
  float values[Contract::kActionDim];
};

// What the network gives for these observations and past actions.
Outputs output_of(const std::vector<float>& observation, const std::vector<float>& past) {
  Matrix<float, 1, kInput> input;
  Matrix<float, 1, Contract::kActionDim> output;
  MlpBuffer<Remembering, 1> buffer;
  int i = 0;
  for (const float value : observation) input.values[i++] = value;
  for (const float value : past) input.values[i++] = value;
  forward(Generic{}, network(), input, output, buffer);
  return {{output.values[0], output.values[1]}};
}

void check(const mavlink_rlt_action_t& action, const Outputs& expected) {
  CHECK(action.status == static_cast<int>(ExecutorStatus::acted));
  CHECK(action.action[0] == physical_action(expected.values[0], -1.0f, 1.0f));
  CHECK(action.action[1] == physical_action(expected.values[1], 0.0f, 1.0f));
}

std::vector<float> observation_of(float value) {
  std::vector<float> values(Contract::kObservationDim, value);
  values[7] = -0.5f;
  return values;
}

}  // namespace

TEST_CASE_FIXTURE(Fresh, "a network alone is given all that it takes") {
  board.activate(image_with_past_actions());
  std::vector<float> values = observation_of(0.25f);
  const std::vector<float> past = {0.5f, -1.0f, 0.125f};
  const Outputs expected = output_of(values, past);
  values.insert(values.end(), past.begin(), past.end());
  check(board.observe(values), expected);
  values.back() = std::numeric_limits<float>::infinity();
  CHECK(board.observe(values).status == static_cast<int>(ExecutorStatus::observation_not_finite));
  // An observation of the contract is too short for it.
  for (const int first : {0, 48, 96}) {
    board.observe_part(observation_of(0.25f), first, 90, RLT_OBSERVE_FORWARD, 0);
    CHECK(board.actions().empty());
  }
}

TEST_CASE_FIXTURE(Fresh, "the executor gives it its last actions") {
  board.activate(image_with_past_actions());
  for (int turn = 0; turn < 2; turn++) {  // BEGIN forgets
    const Outputs first = output_of(observation_of(0.25f), {0.0f, 0.0f, 0.0f});
    check(board.observe(observation_of(0.25f), RLT_OBSERVE_BEGIN, 1000), first);
    const Outputs second =
        output_of(observation_of(0.5f), {first.values[0], first.values[1], 0.0f});
    check(board.observe(observation_of(0.5f), RLT_OBSERVE_STEP, 3000), second);
    // A safe action: 0.5 of [-1, 1], and 0.25 of [0, 1].
    CHECK(board.observe(observation_of(2.0f), RLT_OBSERVE_STEP, 5000).status ==
          static_cast<int>(ExecutorStatus::observation_out_of_range));
    const Outputs fourth = output_of(observation_of(0.5f), {0.5f, -0.5f, first.values[0]});
    check(board.observe(observation_of(0.5f), RLT_OBSERVE_STEP, 7000), fourth);
    // Between them a network alone changes nothing.
    std::vector<float> whole(kInput, 0.125f);
    board.observe(whole);
    const Outputs fifth =
        output_of(observation_of(0.25f), {fourth.values[0], fourth.values[1], second.values[0]});
    check(board.observe(observation_of(0.25f), RLT_OBSERVE_STEP, 9000), fifth);
  }
  for (const int first : {0, 48, 96}) {  // its own last actions are no observation
    board.observe_part(std::vector<float>(kInput, 0.0f), first, 91, RLT_OBSERVE_STEP, 11000);
    CHECK(board.actions().empty());
  }
}

TEST_CASE_FIXTURE(Fresh, "a policy that is dropped while it is measured ends the measurement") {
  const Bytes image = image_with_past_actions();
  board.begin_trial(image);
  REQUIRE(board.accepts(MAV_CMD_RLT_MEASURE, RLT_MEASURED_TICK, 1000.0f));
  board.turns(1);
  REQUIRE(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, number_of(image)));
  board.turns(1);
  CHECK(board.accepts(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_RLT_MEASUREMENT));
  const Bytes samples = board.download("/samples.u32");
  CHECK(samples.size() > 0);
  CHECK(samples.size() < 1000);
}

TEST_CASE_FIXTURE(Fresh, "it is measured beside what acts") {
  board.activate(image_with_past_actions());
  const Outputs first = output_of(observation_of(0.25f), {0.0f, 0.0f, 0.0f});
  check(board.observe(observation_of(0.25f), RLT_OBSERVE_BEGIN, 1000), first);
  for (const int what : {RLT_MEASURED_FORWARD, RLT_MEASURED_TICK}) {
    REQUIRE(board.accepts(MAV_CMD_RLT_MEASURE, static_cast<float>(what), 20.0f));
    board.turns(10);
    CHECK(board.download("/samples.u32").size() == 80);
  }
  const Outputs second = output_of(observation_of(0.5f), {first.values[0], first.values[1], 0.0f});
  check(board.observe(observation_of(0.5f), RLT_OBSERVE_STEP, 3000), second);
}
