// The rules for a policy's hidden state, enforced by the executor: it moves on with the step of
// training, is held between, and is zero from activation, fault, stale input or pause on; and under
// a storm of all inputs that test_executor.cpp has.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "flash_model.h"
#include "recurrent_networks.h"
#include "rltools/devices/host.h"
#include "rltools/policy/deployment.h"
#include "storm.h"

using namespace rlt;
using namespace recurrent_networks;

namespace {

constexpr std::uint32_t kStep_us = Contract::kStepInterval_us;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Flash = flash_model::Flash<256, 4>;
using Deployment = PolicyDeployment<Host, Flash, 2, 128, 2, 4>;
constexpr std::uint32_t kBlocks = 2 + 2 * 24;
constexpr auto kActed = ExecutorStatus::acted;

template <class Network = Small>
Bytes image_with(std::uint32_t ticks_per_step, std::uint16_t reset_at = kResetAtAll,
                 std::uint32_t max_pause_us = 0, std::uint32_t seed = 1) {
  Bytes image = image_of<Network>(seed, ticks_per_step);
  auto& header = *reinterpret_cast<PolicyImageHeader*>(image.data());
  auto& recurrence =
      *reinterpret_cast<PolicyImageRecurrence*>(image.data() + sizeof(PolicyImageHeader));
  recurrence.reset_at = reset_at;
  if (max_pause_us != 0) recurrence.max_pause_us = max_pause_us;
  header.crc32 = policy_image_crc32(image.data(), image.size());
  return image;
}

// A board, and beside it the network, whose state a test moves on and resets.
template <class Network>
struct BoardOf {
  explicit BoardOf(const Bytes& built_in, const ExecutorLimits& limits = {}, std::uint32_t seed = 1)
      : image(built_in),
        deployment(Host{}, flash, policy_contract<Contract>(), limits),
        stepper(network_of<Network>(seed)) {
    deployment.begin(image.data(), static_cast<std::uint32_t>(image.size()));
    REQUIRE(deployment.acting() != nullptr);
  }

  ExecutorStatus call(const float* values, std::uint32_t age_us = 0) {
    action[0] = action[1] = kNan;
    return deployment.step(now_us, {values, now_us - age_us}, action);
  }
  ExecutorStatus next(std::uint32_t after_us = kStep_us) {
    now_us += after_us;
    draw();
    return call(observation);
  }
  // What a step from the stepper's state gives is finite, and the action is that.
  bool is_finite() {
    stepper.step(observation, expected);
    return std::isfinite(expected[0]) && std::isfinite(expected[1]);
  }
  bool is_right() {
    if (!is_finite()) return false;
    for (int i = 0; i < 2; i++) {
      const Channel& channel = Contract::kActions[i];
      expected[i] = physical_action(expected[i], channel.minimum, channel.maximum);
    }
    return std::memcmp(action, expected, sizeof(action)) == 0;
  }
  // A tick that acts, whose state is kept or not.
  void acts(bool keeps, std::uint32_t after_us = kStep_us) {
    CHECK(next(after_us) == kActed);
    if (keeps) stepper.take();
    CHECK(is_right());
    if (keeps) stepper.keep();
  }
  void acts_from_zeros(std::uint32_t after_us = kStep_us) {
    stepper.reset();
    acts(true, after_us);
  }
  void draw() {
    for (int i = 0; i < Contract::kObservationDim; i++) {
      const Channel& channel = Contract::kObservations[i];
      observation[i] = uniform<float>({8, Purpose::shuffle, drawn}, static_cast<std::uint32_t>(i),
                                      channel.minimum, channel.maximum);
    }
    drawn++;
  }

  const Bytes image;
  Flash flash{kBlocks};
  Deployment deployment;
  Stepper<Network> stepper;
  std::uint32_t now_us = 1000, drawn = 0;
  float observation[Contract::kObservationDim];
  float action[2], expected[2];
};
using Board = BoardOf<Small>;

// After three steps a fault, and then the first tick that acts.
template <class Network = Small, class Fault>
void check_after_fault(std::uint16_t reset_at, bool resets, Fault&& fault) {
  CAPTURE(reset_at);
  BoardOf<Network> board(image_with<Network>(1, reset_at, 1000000));
  board.acts_from_zeros();
  for (int i = 0; i < 3; i++) board.acts(true);
  CHECK(is_fault(fault(board)));
  CHECK(board.action[0] == 0.5f);
  if (resets) board.stepper.reset();
  for (int i = 0; i < 3; i++) board.acts(true);
}

}  // namespace

TEST_CASE(
    "the state moves on with every tick where the policy was trained at the contract's rate") {
  Board board(image_with(1));
  board.acts_from_zeros();
  for (int i = 0; i < 200; i++) board.acts(true);
  CHECK(board.call(board.observation) == ExecutorStatus::held);
  board.acts(true);
}

TEST_CASE(
    "trained at 10 ms and called each 2.5: the newest input, from the state before the last step") {
  Board board(image_with(4));
  board.acts_from_zeros();
  for (int i = 1; i < 200; i++) board.acts(i % 4 == 0);
}

TEST_CASE("a tick that is missed does not delay the step of training") {
  Board board(image_with(4, kResetAtAll, 1000000));
  board.acts_from_zeros();
  board.acts(false);
  board.acts(true, 3 * kStep_us);  // the fourth interval after the first tick
  board.acts(false);
  board.acts(false);
  board.acts(true, 9 * kStep_us);
  board.acts(false);
}

TEST_CASE("a clock that wraps changes nothing") {
  Board board(image_with(4));
  board.now_us = 0u - 30 * kStep_us;
  board.acts_from_zeros();
  for (int i = 1; i < 100; i++) board.acts(i % 4 == 0);
}

TEST_CASE("after a fault the state is zero, where the image says so") {
  const auto nan = [](Board& board) {
    board.now_us += kStep_us;
    board.draw();
    board.observation[2] = kNan;
    return board.call(board.observation);
  };
  const auto out_of_range = [](Board& board) {
    board.now_us += kStep_us;
    board.draw();
    board.observation[1] = 1e6f;
    return board.call(board.observation);
  };
  check_after_fault(kResetAtAll, true, nan);
  check_after_fault(kResetAtActivation | kResetAtFault, true, out_of_range);
  check_after_fault(kResetAtAll & ~kResetAtFault, false, nan);
  check_after_fault(kResetAtActivation, false, out_of_range);
  const auto overflow = [](BoardOf<Overflowing>& board) {
    board.now_us += kStep_us;
    board.draw();
    board.observation[0] = kOverflowingHeight;
    const ExecutorStatus status = board.call(board.observation);
    CHECK(status == ExecutorStatus::output_not_finite);
    return status;
  };
  check_after_fault<Overflowing>(kResetAtAll, true, overflow);
  check_after_fault<Overflowing>(kResetAtActivation | kResetAtFault, true, overflow);
  check_after_fault<Overflowing>(kResetAtAll & ~kResetAtFault, false, overflow);
}

TEST_CASE("after a stale input the state is zero, where the image says so") {
  const auto missing = [](Board& board) {
    board.now_us += kStep_us;
    return board.call(nullptr);
  };
  const auto stale = [](Board& board) {
    board.now_us += kStep_us;
    return board.call(board.observation, 2 * kStep_us + 1);
  };
  const auto older = [](Board& board) {
    board.now_us += kStep_us;
    return board.call(board.observation, kStep_us + 1);
  };
  for (const std::uint16_t reset_at : {kResetAtAll & ~kResetAtFault, int{kResetAtAll}}) {
    check_after_fault(reset_at, true, missing);
    check_after_fault(reset_at, true, stale);
    check_after_fault(reset_at, true, older);
  }
  check_after_fault(kResetAtAll & ~kResetAtStaleInput, false, missing);
  check_after_fault(kResetAtActivation, false, older);
}

TEST_CASE("observations that freeze are a stale input") {
  for (const std::uint16_t reset_at : {kResetAtAll, PolicyStateReset{kResetAtActivation}}) {
    ExecutorLimits limits;
    limits.max_equal = 2;
    Board board(image_with(1, reset_at, 1000000), limits);
    board.acts_from_zeros();
    board.acts(true);
    for (const auto status : {kActed, ExecutorStatus::observation_frozen}) {
      board.now_us += kStep_us;
      CHECK(board.call(board.observation) == status);
      if (status != kActed) continue;
      board.stepper.take();
      CHECK(board.is_right());
      board.stepper.keep();
    }
    if (reset_at == kResetAtAll) board.stepper.reset();
    board.acts(true);
  }
}

TEST_CASE("a pause longer than the image states is the end of the state; faults are such a pause") {
  constexpr std::uint32_t kPause_us = 4 * kStep_us;
  Board board(image_with(1, kResetAtActivation | kResetAtPause, kPause_us));
  board.acts_from_zeros();
  board.acts(true);
  board.acts(true, kPause_us);
  board.acts_from_zeros(kPause_us + 1);
  board.acts(true);
  for (int i = 0; i < 3; i++) {
    board.now_us += kStep_us;
    CHECK(is_fault(board.call(nullptr)));
  }
  board.acts(true);
  for (int i = 0; i < 4; i++) {
    board.now_us += kStep_us;
    CHECK(is_fault(board.call(nullptr)));
  }
  board.acts_from_zeros();
  board.acts(true);
  board.now_us -= 100 * kStep_us;  // a clock that jumps back
  CHECK(board.call(nullptr) == ExecutorStatus::observation_missing);
  board.deployment.reset_executor();
  board.acts_from_zeros();
  Board without(image_with(1, kResetAtActivation, kPause_us));
  without.acts_from_zeros();
  without.acts(true, 1000 * kStep_us);
}

TEST_CASE("while the executor recovers the state is not moved on") {
  ExecutorLimits limits;
  limits.recovery_ticks = 3;
  for (const bool resets : {true, false}) {
    const std::uint16_t reset_at = resets ? kResetAtAll : kResetAtActivation;
    Board board(image_with(1, reset_at, 1000000), limits);
    board.acts_from_zeros();
    board.acts(true);
    board.now_us += kStep_us;
    CHECK(is_fault(board.call(nullptr)));
    if (resets) board.stepper.reset();
    CHECK(board.next() == ExecutorStatus::recovering);
    CHECK(board.next() == ExecutorStatus::recovering);
    board.acts(true);
    board.acts(true);
  }
}

TEST_CASE("a policy begins with zeros at its activation, in trial and when it is rolled back") {
  const Bytes first = image_with(1), second = image_with(1, kResetAtAll, 0, 2);
  Board board(first);
  const auto send = [&](const Bytes& image) {
    const auto bytes = static_cast<std::uint32_t>(image.size());
    REQUIRE(board.deployment.stage() == SlotError::none);
    REQUIRE(board.deployment.write(0, image.data(), bytes) == SlotError::none);
    REQUIRE(board.deployment.finish().accepted());
  };
  board.acts_from_zeros();
  board.acts(true);
  send(second);
  board.acts(true);  // what is staged does not disturb what acts
  REQUIRE(board.deployment.start_trial(board.now_us, 1u << 30) == SlotError::none);
  {
    Board other(second, {}, 2);
    other.drawn = board.drawn;
    for (int i = 0; i < 3; i++) {
      CHECK(board.next() == kActed);
      CHECK(other.next() == kActed);
      CHECK(std::memcmp(board.action, other.action, sizeof(board.action)) == 0);
    }
  }
  REQUIRE(board.deployment.roll_back() == SlotError::none);
  board.acts_from_zeros();
  board.acts(true);
  board.deployment.reset_executor();
  board.acts_from_zeros();
}

TEST_CASE("a storm of 200,000 ticks: every action has the bits of the rules") {
  using namespace storm;
  constexpr std::uint32_t kRounds = 40;
  constexpr int kTicks = 5000;  // of a round
  ExecutorLimits limits;
  limits.max_equal = 4;
  limits.recovery_ticks = 2;
  std::uint32_t draw = 0;
  const auto random = [&draw](std::uint32_t below) {
    return random_word({5, Purpose::shuffle, draw++}, 0) % below;
  };
  std::uint32_t resets = 0, kept = 0, not_kept = 0, faults = 0, seen[kExecutorStatusCount] = {};
  for (std::uint32_t round = 0; round < kRounds; round++) {
    const std::uint32_t ticks_per_step = 1 + random(5);
    const std::uint32_t pause_us = (1 + random(12)) * kStep_us;
    const auto reset_at = static_cast<std::uint16_t>(1 | random(16));
    BoardOf<Overflowing> board(image_with<Overflowing>(ticks_per_step, reset_at, pause_us), limits);
    board.now_us = 0u - random(3000) * kStep_us;
    // The rules, the slow way.
    bool is_zero = true, is_begun = false;
    std::uint32_t acted_us = 0, grid_us = 0, kept_us = 0;
    bool has_grid = false;
    Bursts bursts;
    for (int tick = 0; tick < kTicks; tick++) {
      const Input input = bursts.next(random);
      std::uint32_t ahead = kStep_us;
      if (random(40) == 0) ahead += random(16) * kStep_us;
      if (random(10) == 0) ahead = kStep_us / 3;
      board.now_us += ahead;
      if (input != frozen) board.draw();
      if (input == not_a_number) board.observation[random(5)] = kNan;
      if (input == infinite) {
        board.observation[random(5)] = random(2) == 0 ? kInfinity : -kInfinity;
      }
      if (input == out_of_range) board.observation[random(5)] = random(2) == 0 ? 3e38f : -1e6f;
      if (input == bad_output) board.observation[0] = kOverflowingHeight;
      const std::uint32_t its_age_us = age_us(input, kStep_us, 100000, random);
      const bool is_due = !has_grid || static_cast<std::int32_t>(board.now_us - grid_us) >=
                                           static_cast<std::int32_t>(kStep_us - kStep_us / 4);
      const ExecutorStatus status =
          board.call(input == missing ? nullptr : board.observation, its_age_us);
      seen[static_cast<int>(status)]++;
      REQUIRE(is_due == (status != ExecutorStatus::held));
      if (!is_due) continue;
      const std::uint32_t due_us = grid_us + kStep_us;
      const bool is_new_grid =
          !has_grid || static_cast<std::int32_t>(board.now_us - due_us) >= int{kStep_us};
      grid_us = is_new_grid ? board.now_us : due_us;
      has_grid = true;
      const bool is_asked = status == kActed || status == ExecutorStatus::output_not_finite;
      if (status != kActed) {
        REQUIRE(is_fault(status));
        REQUIRE(board.action[0] == 0.5f);
        faults++;
      }
      if (!is_asked) {
        const bool is_stale = status == ExecutorStatus::observation_stale ||
                              status == ExecutorStatus::observation_missing ||
                              status == ExecutorStatus::observation_out_of_order ||
                              status == ExecutorStatus::observation_frozen;
        const bool is_broken = status == ExecutorStatus::observation_not_finite ||
                               status == ExecutorStatus::observation_out_of_range;
        if ((is_stale && (reset_at & kResetAtStaleInput)) ||
            (is_broken && (reset_at & kResetAtFault))) {
          is_zero = true;
        }
        continue;
      }
      if (is_begun && (reset_at & kResetAtPause) && board.now_us - acted_us > pause_us) {
        is_zero = true;
      }
      const bool begins = is_zero;
      if (begins) board.stepper.reset(), resets++;
      const bool is_step = begins || grid_us - kept_us >= ticks_per_step * kStep_us;
      if (is_step) board.stepper.take();
      if (status != kActed) {
        REQUIRE_FALSE(board.is_finite());
        if (reset_at & kResetAtFault) is_zero = true;
        continue;
      }
      REQUIRE(board.is_right());
      if (is_step) {
        board.stepper.keep();
        kept_us = grid_us;
        kept++;
      } else {
        not_kept++;
      }
      is_zero = false;
      is_begun = true;
      acted_us = board.now_us;
    }
  }
  CHECK(resets > 100 * kRounds);
  CHECK(kept > 1000 * kRounds);
  CHECK(not_kept > 500 * kRounds);
  CHECK(faults > 1000 * kRounds);
  for (int i = 0; i < kExecutorStatusCount; i++) {
    const auto status = static_cast<ExecutorStatus>(i);
    CAPTURE(executor_status_text(status));
    const bool can_be = status != ExecutorStatus::no_policy && status != ExecutorStatus::given_up;
    CHECK((seen[i] > 0) == can_be);
  }
}
