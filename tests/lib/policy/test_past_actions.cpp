// Policies that see their own last actions: which channels ask for them, what a place keeps, and
// that a network is given at each tick what was given out, to the last bit.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "flash_model.h"
#include "past_networks.h"
#include "rltools/devices/host.h"
#include "rltools/policy/deployment.h"

using namespace rlt;
using namespace past_networks;

namespace {

constexpr std::uint32_t kStep_us = Contract::kStepInterval_us;
constexpr int kTicks = 6;
using Flash = flash_model::Flash<256, 4>;
template <int HistoryTicks, std::size_t ScratchFloats = 64>
using DeploymentOf = PolicyDeployment<Host, Flash, 2, ScratchFloats, 2, HistoryTicks>;
using Deployment = DeploymentOf<kTicks>;
constexpr std::uint32_t kBlocks = 2 + 2 * 12;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class D>
StageVerdict send(D& deployment, const Bytes& image) {
  const auto bytes = static_cast<std::uint32_t>(image.size());
  REQUIRE(deployment.stage() == SlotError::none);
  REQUIRE(deployment.write(0, image.data(), bytes) == SlotError::none);
  return deployment.finish();
}

// The verdict on an image that asks for these.
template <int HistoryTicks, std::size_t ScratchFloats = 64>
PolicyVerdict verdict_on(const std::vector<Channel>& asked) {
  Flash flash(kBlocks);
  DeploymentOf<HistoryTicks, ScratchFloats> deployment(Host{}, flash, policy_contract<Contract>());
  deployment.begin();
  return send(deployment, image_that_asks_for(asked, 1)).verdict;
}

void check(const PolicyVerdict& verdict, PolicyReason reason, std::uint32_t where) {
  CHECK(verdict.reason == reason);
  CHECK(verdict.where == where);
}

PastAction meaning_of(const char* name, const char* unit = "1", float minimum = -1.0f,
                      float maximum = 1.0f) {
  return past_action(detail::record_of({name, unit, minimum, maximum}),
                     policy_contract<Contract>());
}

// What an executor has given out, the slow way: the oldest first.
struct Given {
  std::vector<std::vector<float>> actions;

  float at(std::uint32_t action, std::uint32_t ticks) const {
    return ticks > actions.size() ? 0.0f : actions[actions.size() - ticks][action];
  }
};

bool same_bits(const float* a, const float* b, int count) {
  return std::memcmp(a, b, sizeof(float) * static_cast<std::size_t>(count)) == 0;
}

// A board, and beside it what the network must be given.
class Board {
 public:
  Board(Flash& flash, const Bytes& image, const std::vector<Channel>& asked,
        const ExecutorLimits& limits = {})
      : deployment(Host{}, flash, policy_contract<Contract>(), limits),
        reference_(contract_that_asks_for(asked)) {
    for (const Channel& channel : asked) {
      asked_.push_back(past_action(detail::record_of(channel), policy_contract<Contract>()));
    }
    deployment.begin();
    REQUIRE(send(deployment, image).accepted());
    REQUIRE(deployment.start_trial(now_us, 1u << 30) == SlotError::none);
    REQUIRE(deployment.confirm(now_us) == SlotError::none);
    REQUIRE(reference_.accept(Host{}, image.data(), image.size()).accepted());
    safe_ = {normalized_action(0.5f, 0.0f, 1.0f), normalized_action(0.25f, -0.25f, 0.75f)};
  }

  // One call after this time; false where an action is another one than it must be.
  bool step(std::uint32_t after_us, const float* observation, ExecutorStatus expected_status) {
    now_us += after_us;
    float action[2] = {kNan, kNan};
    const ExecutorStatus status = deployment.step(now_us, {observation, now_us}, action);
    CHECK(status == expected_status);
    if (status == ExecutorStatus::held) return same_bits(action, last_, 2);
    last_[0] = 0.5f;
    last_[1] = 0.25f;
    if (is_fault(status)) {
      given.actions.push_back(safe_);
    } else {
      std::vector<float> input(observation, observation + Contract::kObservationDim);
      for (const PastAction& past : asked_) input.push_back(given.at(past.action, past.ticks));
      std::vector<float> output(2), scratch(64);
      const float* values = input.data();
      policy_forward(Host{}, *reference_.view(), values, nullptr, output.data(), scratch.data());
      scale_action(*reference_.view(), values, output.data(), last_);
      for (float& value : output) value = math::clamp(value, -1.0f, 1.0f);
      given.actions.push_back(output);
    }
    return same_bits(action, last_, 2);
  }

  Deployment deployment;
  std::uint32_t now_us = 0;
  Given given;

 private:
  PolicyRunner<64, 0, 8192> reference_;
  std::vector<PastAction> asked_;
  std::vector<float> safe_;
  float last_[2] = {};
};

constexpr float kOutside[Contract::kObservationDim] = {1.0f, -5.0f, 0.5f, 3.0f, 1e5f};
constexpr auto kActed = ExecutorStatus::acted;

}  // namespace

TEST_CASE("a channel that is named after an action and an age asks for it") {
  CHECK(meaning_of("valve_t-1").action == 0);
  CHECK(meaning_of("valve_t-1").ticks == 1);
  CHECK(meaning_of("torque_t-64").action == 1);
  CHECK(meaning_of("torque_t-64").ticks == 64);
  CHECK(meaning_of("torque_t-105").ticks == 105);
  for (const char* name :
       {"valve", "valve_t-", "valve_t-0", "valve_t-01", "valve_t-1x", "valve_t--1", "valve_t-+1",
        "valve_t- 1", "valve_t-1 ", "valv_t-1", "valves_t-1", "Valve_t-1", "height_t-1", "_t-1",
        "valve_T-1", "valve_t1", "valve_t-:", "valve_t-/", "valve_t-1_t-1"}) {
    INFO(name);
    CHECK(meaning_of(name).ticks == 0);
  }
  // However long the number is, it does not become a small one.
  CHECK(meaning_of("valve_t-4294967297").ticks > 65536);
  CHECK(meaning_of("valve_t-999999999999999").ticks > 65536);
  CHECK(meaning_of("valve_t-1", "s").ticks == 0);
  CHECK(meaning_of("valve_t-1", "10").ticks == 0);
  CHECK(meaning_of("valve_t-1", "1", -2.0f, 1.0f).ticks == 0);
  CHECK(meaning_of("valve_t-1", "1", 0.0f, 1.0f).ticks == 0);
  CHECK(meaning_of("valve_t-1", "1", -1.0f, 1.5f).ticks == 0);
  CHECK(meaning_of("valve_t-1", "1", -1.0f, 0.5f).ticks == 0);
}

TEST_CASE("names of actions that look like ages are no trouble") {
  static constexpr Channel kActions[] = {{"a", "1", -1.0f, 1.0f}, {"a_t-1", "1", -1.0f, 1.0f}};
  const PolicyContract contract{1000, 1, 2, Contract::kObservations, kActions};
  const auto meaning = [&](const char* name) {
    return past_action(detail::record_of({name, "1", -1.0f, 1.0f}), contract);
  };
  CHECK(meaning("a_t-1").action == 0);
  CHECK(meaning("a_t-1").ticks == 1);
  CHECK(meaning("a_t-1_t-2").action == 1);
  CHECK(meaning("a_t-1_t-2").ticks == 2);
}

TEST_CASE("the history has what was added last, and zeros before") {
  ActionHistory<5, 3> history(2);
  Given given;
  for (int number = 0; number < 23; number++) {
    if (number == 12) {
      history.reset();
      given.actions.clear();
    }
    for (std::uint32_t ticks = 1; ticks <= 5; ticks++) {
      for (std::uint32_t action = 0; action < 2; action++) {
        CHECK(history.at((ticks - 1) * 2 + action) == given.at(action, ticks));
      }
    }
    const float n = static_cast<float>(number);
    given.actions.push_back({n + 0.25f, -n - 0.5f});
    history.add(given.actions.back().data());
  }
}

TEST_CASE("an image is accepted whose further channels ask for what is kept here") {
  CHECK(verdict_on<kTicks>({}).accepted());
  CHECK(verdict_on<0>({}).accepted());
  CHECK(verdict_on<kTicks>({past("valve_t-1"), past("torque_t-6"), past("valve_t-6")}).accepted());
  CHECK(verdict_on<kTicks>({past("torque_t-2"), past("torque_t-2")}).accepted());
  const auto too_long = PolicyReason::history_too_long;
  check(verdict_on<kTicks>({past("valve_t-1"), past("torque_t-7")}), too_long, 6);
  check(verdict_on<kTicks>({past("valve_t-4294967297")}), too_long, 5);
  check(verdict_on<0>({past("valve_t-1")}), too_long, 5);
  check(verdict_on<kTicks>({past("valve_t-1"), past("speed_t-1")}), PolicyReason::other_contract,
        6);
  check(verdict_on<kTicks>({{"valve_t-1", "1", -1.0f, 2.0f}}), PolicyReason::other_contract, 5);
}

TEST_CASE("what an image asks for does not excuse other channels") {
  const std::vector<Channel> asked = {past("valve_t-1"), past("torque_t-3")};
  const auto verdict_after = [&](auto&& change) {
    Flash flash(kBlocks);
    Deployment deployment(Host{}, flash, policy_contract<Contract>());
    deployment.begin();
    Bytes image = image_that_asks_for(asked, 1);
    auto& header = *reinterpret_cast<PolicyImageHeader*>(image.data());
    const std::size_t first =
        sizeof(PolicyImageHeader) + header.layer_count * sizeof(PolicyImageLayer);
    change(header, reinterpret_cast<PolicyImageChannel*>(image.data() + first));
    header.crc32 = policy_image_crc32(image.data(), image.size());
    return send(deployment, image).verdict;
  };
  const auto other = PolicyReason::other_contract;
  CHECK(verdict_after([](auto&, auto*) {}).accepted());
  for (std::uint32_t i = 0; i < 9; i++) {
    INFO(i);
    check(verdict_after([&](auto&, auto* channels) { channels[i].name[0] = 'X'; }), other, i);
  }
  check(verdict_after([](auto&, auto* channels) { channels[2].name[4] = '\0'; }), other, 2);
  check(verdict_after([](auto&, auto* channels) {
          channels[4].maximum = std::nextafter(channels[4].maximum, 0.0f);
        }),
        other, 4);
  check(verdict_after([](auto&, auto* channels) { channels[7].maximum += 1.0f; }), other, 7);
  check(verdict_after([](auto&, auto* channels) { channels[8].unit[0] = 'x'; }), other, 8);
  check(verdict_after([](auto& header, auto*) { header.step_interval_us++; }), other, 0);
  // A place with an observation more, where the image has its first action.
  PolicyContract wider = policy_contract<Contract>();
  const Bytes image = image_that_asks_for({}, 1);
  static Channel channels[Contract::kObservationDim + 1];
  for (int i = 0; i < Contract::kObservationDim; i++) channels[i] = Contract::kObservations[i];
  channels[Contract::kObservationDim] = Contract::kActions[0];
  wider.observations = channels;
  wider.observation_dim++;
  PolicyRunner<64, kTicks> runner(wider);
  check(runner.accept(Host{}, image.data(), image.size()), other, 0);
  // They stand behind the contract's, not among them.
  check(verdict_after([](auto&, auto* channels) { std::swap(channels[4], channels[5]); }), other,
        4);
}

TEST_CASE("what is asked for needs scratch memory only where there is none left") {
  // 5 observations and 12 past actions, 17 wide: 34 floats to run, 4 more for the examples, 6 for
  // the places.
  std::vector<Channel> asked;
  for (int i = 0; i < 12; i++) asked.push_back(past(i % 2 == 0 ? "valve_t-3" : "torque_t-5"));
  CHECK(verdict_on<kTicks, 40>(asked).accepted());
  check(verdict_on<kTicks, 39>(asked), PolicyReason::too_large, 0);
}

TEST_CASE("a place without a clock takes no policy that sees its last actions") {
  static PolicyRunner<64, 0, 8192> policy(policy_contract<Contract>());
  const Bytes image = image_that_asks_for({past("valve_t-1")}, 1);
  check(policy.accept(Host{}, image.data(), image.size()), PolicyReason::history_too_long, 5);
  float action[2];
  CHECK(policy.act(Host{}, kGood, action) == ActionSource::no_policy);
}

TEST_CASE("at each tick the network sees what was given out, faults and held calls included") {
  const std::vector<Channel> asked = {past("torque_t-1"), past("valve_t-1"),  past("valve_t-4"),
                                      past("torque_t-6"), past("torque_t-6"), past("valve_t-2")};
  Flash flash(kBlocks);
  ExecutorLimits limits;
  limits.recovery_ticks = 2;
  Board board(flash, image_that_asks_for(asked, 3), asked, limits);
  const auto outside = ExecutorStatus::observation_out_of_range;
  for (int i = 0; i < 9; i++) REQUIRE(board.step(kStep_us, kGood, kActed));
  REQUIRE(board.given.actions[7] != board.given.actions[8]);  // it does see something
  REQUIRE(board.step(kStep_us / 2, kGood, ExecutorStatus::held));
  REQUIRE(board.step(kStep_us / 2, kGood, kActed));
  REQUIRE(board.step(kStep_us, kOutside, outside));
  REQUIRE(board.step(kStep_us, kOutside, outside));
  REQUIRE(board.step(kStep_us / 4, kGood, ExecutorStatus::held));
  REQUIRE(board.step(3 * kStep_us / 4, kGood, ExecutorStatus::recovering));
  REQUIRE(board.step(kStep_us, kGood, kActed));
  REQUIRE(board.step(5 * kStep_us, kGood, kActed));  // ticks that fell out are none
  for (int i = 0; i < 20; i++) REQUIRE(board.step(kStep_us, kGood, kActed));
  SUBCASE("a reset of the executor is the beginning of an episode") {
    board.deployment.reset_executor();
    board.given.actions.clear();
  }
  SUBCASE("so is a trial, and the way back") {
    REQUIRE(send(board.deployment, image_that_asks_for({}, 5)).accepted());
    for (int i = 0; i < 3; i++) REQUIRE(board.step(kStep_us, kGood, kActed));
    REQUIRE(board.deployment.start_trial(board.now_us, 1000000) == SlotError::none);
    float action[2];
    board.now_us += kStep_us;
    board.deployment.step(board.now_us, {kGood, board.now_us}, action);
    REQUIRE(board.deployment.roll_back() == SlotError::none);
    board.given.actions.clear();
  }
  for (int i = 0; i < 9; i++) REQUIRE(board.step(kStep_us, kGood, kActed));
}

TEST_CASE("an output beyond -1 and 1 is kept as it was clamped") {
  // The first output is 3 at first, then 3 - 2.5 times what the history has of it.
  static LinearNetwork network;
  for (float& value : network.values) value = 0.0f;
  network.bias(0)[0] = 3.0f;
  network.weights(0)[5 * 2] = -2.5f;
  const std::vector<Channel> asked = {past("valve_t-1")};
  Flash flash(kBlocks);
  Board board(flash, image_with(network, asked), asked);
  for (int i = 0; i < 4; i++) REQUIRE(board.step(kStep_us, kGood, kActed));
  CHECK(board.given.actions[0][0] == 1.0f);
  CHECK(board.given.actions[1][0] == 0.5f);
  CHECK(board.given.actions[2][0] == 1.0f);
}

TEST_CASE("a network is given the bits of training, whose rounding physical units would change") {
  // Through the range [0, 1] an output of 1e-9 becomes 0.5, which is 0 again.
  static LinearNetwork network;
  for (float& value : network.values) value = 0.0f;
  network.bias(0)[0] = 1e-9f;
  network.weights(0)[5 * 2 + 1] = 5e8f;
  const std::vector<Channel> asked = {past("valve_t-1")};
  Flash flash(kBlocks);
  Board board(flash, image_with(network, asked), asked);
  for (int i = 0; i < 3; i++) REQUIRE(board.step(kStep_us, kGood, kActed));
  CHECK(board.given.actions[2][1] == doctest::Approx(0.5));
}

TEST_CASE("what is not finite is dropped in trial, and the history of the next one is its own") {
  static LinearNetwork network;
  for (float& value : network.values) value = 0.0f;
  network.weights(0)[0] = 1e38f;  // times the first observation, up to 3.5
  network.weights(0)[5 * 2] = 1.0f;
  const std::vector<Channel> asked = {past("valve_t-1")};
  const Bytes good = image_that_asks_for(asked, 4);
  Flash flash(kBlocks);
  Board board(flash, good, asked);
  for (int i = 0; i < 3; i++) REQUIRE(board.step(kStep_us, kGood, kActed));
  REQUIRE(send(board.deployment, image_with(network, asked)).accepted());
  REQUIRE(board.deployment.start_trial(board.now_us, 1000000) == SlotError::none);
  const float high[] = {3.5f, -2.0f, 0.5f, 3.0f, 1e5f};
  float action[2];
  board.now_us += kStep_us;
  CHECK(board.deployment.step(board.now_us, {high, board.now_us}, action) ==
        ExecutorStatus::output_not_finite);
  CHECK(board.deployment.slots().last_drop() == DropReason::fault);
  board.given.actions.clear();
  for (int i = 0; i < 3; i++) REQUIRE(board.step(kStep_us, kGood, kActed));
}
