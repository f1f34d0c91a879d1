// A policy at its place: from a push to the action, with real images; what is wrong with an image,
// a reset at every byte, and a push while the policy acts.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "flash_model.h"
#include "policy_networks.h"
#include "rltools/devices/host.h"
#include "rltools/policy/deployment.h"

using namespace rlt;
using namespace policy_networks;

namespace {

constexpr std::uint32_t kStep_us = Contract::kStepInterval_us;
constexpr std::uint32_t kTrial_us = 1000000;
using Flash = flash_model::Flash<256, 4>;
using Deployment = PolicyDeployment<Host, Flash, 2, 64>;
constexpr std::uint32_t kBlocks = 2 + 2 * 8;

Bytes image_of(std::uint32_t seed) { return small_image(Host{}, seed); }

// Whose output is infinite where the first observation is near its upper limit.
Bytes overflowing_image() {
  using N = Mlp<float, Dimensions<Contract::kObservationDim, 6, Contract::kActionDim>,
                Activation::relu, Activation::identity>;
  static N network;
  for (float& value : network.values) value = 0.0f;
  network.weights(0)[0] = 1e38f;
  network.weights(1)[0] = 1.0f;
  return image_of_network(Host{}, network);
}

constexpr Action kSafe{{0.5f, 0.25f}};

// That a runner of its own computes.
Action action_of(const Bytes& image) {
  static PolicyRunner<64, 0, 4096> policy(policy_contract<Contract>());
  REQUIRE(policy.accept(Host{}, image.data(), image.size()).accepted());
  Action action;
  REQUIRE(policy.act(Host{}, kGood, action.values) == ActionSource::from_policy);
  return action;
}

StageVerdict send(Deployment& deployment, const Bytes& image) {
  const auto bytes = static_cast<std::uint32_t>(image.size());
  SlotError error = deployment.stage();
  for (std::uint32_t i = 0; i < bytes && error == SlotError::none; i += 239) {
    error = deployment.write(i, image.data() + i, bytes - i < 239 ? bytes - i : 239);
  }
  if (error != SlotError::none) return {error, {PolicyReason::accepted, 0}};
  return deployment.finish();
}

// A board with a clock.
struct Board {
  explicit Board(Flash& flash) : deployment(Host{}, flash, policy_contract<Contract>()) {
    deployment.begin();
  }
  ExecutorStatus step(const float* observation = kGood) {
    now_us += kStep_us;
    action = {{std::numeric_limits<float>::quiet_NaN(), 0.0f}};
    return deployment.step(now_us, {observation, now_us}, action.values);
  }
  bool acts_as(const Bytes& image) {
    return step() == ExecutorStatus::acted && action == action_of(image);
  }
  bool acts_safely() { return step() == ExecutorStatus::no_policy && action == kSafe; }

  bool pushes(const Bytes& image) {
    return send(deployment, image).accepted() &&
           deployment.start_trial(now_us, kTrial_us) == SlotError::none &&
           deployment.confirm(now_us) == SlotError::none;
  }

  Deployment deployment;
  std::uint32_t now_us = 0;
  Action action;
};

}  // namespace

TEST_CASE("without a policy the action is the safe one; a pushed one acts from its trial on") {
  Flash flash(kBlocks);
  Board board(flash);
  const Bytes first = image_of(1), second = image_of(2);
  REQUIRE_FALSE(action_of(first) == action_of(second));
  CHECK(board.acts_safely());
  REQUIRE(send(board.deployment, first).accepted());
  CHECK(board.acts_safely());
  REQUIRE(board.deployment.start_trial(board.now_us, kTrial_us) == SlotError::none);
  CHECK(board.acts_as(first));
  REQUIRE(board.deployment.confirm(board.now_us) == SlotError::none);
  CHECK(board.acts_as(first));

  REQUIRE(send(board.deployment, second).accepted());
  CHECK(board.acts_as(first));
  REQUIRE(board.deployment.start_trial(board.now_us, kTrial_us) == SlotError::none);
  board.now_us -= kStep_us;  // at once, although no tick is due
  CHECK(board.acts_as(second));
  SUBCASE("confirmed, and rolled back after a reset") {
    REQUIRE(board.deployment.confirm(board.now_us) == SlotError::none);
    Board restarted(flash);
    CHECK(restarted.acts_as(second));
    REQUIRE(restarted.deployment.roll_back() == SlotError::none);
    CHECK(restarted.acts_as(first));
  }
  SUBCASE("confirmed, and rolled back") {
    REQUIRE(board.deployment.confirm(board.now_us) == SlotError::none);
    CHECK(board.acts_as(second));
    REQUIRE(board.deployment.roll_back() == SlotError::none);
    CHECK(board.acts_as(first));
    CHECK(board.deployment.roll_back() == SlotError::no_previous);
  }
  SUBCASE("not wanted before its trial") {
    CHECK(board.deployment.drop_staged() == SlotError::not_staged);
    REQUIRE(board.deployment.confirm(board.now_us) == SlotError::none);
    REQUIRE(send(board.deployment, first).accepted());
    REQUIRE(board.deployment.drop_staged() == SlotError::none);
    CHECK(board.deployment.start_trial(board.now_us, kTrial_us) == SlotError::not_staged);
    CHECK(board.acts_as(second));
    CHECK(board.deployment.slots().last_drop() == DropReason::rolled_back);
  }
  SUBCASE("rolled back in trial") {
    REQUIRE(board.deployment.roll_back() == SlotError::none);
    CHECK(board.acts_as(first));
  }
  SUBCASE("the trial's time is over: the very next tick is the last good policy's") {
    board.now_us += kTrial_us - kStep_us;
    CHECK(board.acts_as(first));
    CHECK(board.deployment.slots().last_drop() == DropReason::deadline);
  }
  SUBCASE("the trial's time is over between two ticks: the last good policy acts at once") {
    const std::uint32_t tick_us = board.now_us;
    CHECK(board.deployment.poll(tick_us + kTrial_us));
    board.now_us = tick_us - kStep_us;
    CHECK(board.acts_as(first));
  }
  SUBCASE("staged over: what was there is no policy any more") {
    REQUIRE(board.deployment.confirm(board.now_us) == SlotError::none);
    const std::uint8_t other = board.deployment.slots().other_slot();
    REQUIRE(board.deployment.view(other) != nullptr);
    REQUIRE(board.deployment.stage() == SlotError::none);
    CHECK(board.deployment.view(other) == nullptr);
  }
  SUBCASE("reset in trial") {
    Board restarted(flash);
    CHECK(restarted.acts_as(first));
    CHECK(restarted.deployment.slots().last_drop() == DropReason::reset);
  }
}

TEST_CASE("a built-in policy acts where there is no other") {
  const Bytes built_in = image_of(9), pushed = image_of(1);
  const auto bytes = static_cast<std::uint32_t>(built_in.size());
  Flash flash(2 + 8);
  PolicyDeployment<Host, Flash, 2, 64, 1> one(Host{}, flash, policy_contract<Contract>());
  one.begin(built_in.data(), bytes);
  CHECK(one.has_built_in());
  std::uint32_t now_us = 0;
  const auto acts_as = [&](const Bytes& image) {
    now_us += kStep_us;
    Action action;
    return one.step(now_us, {kGood, now_us}, action.values) == ExecutorStatus::acted &&
           action == action_of(image);
  };
  CHECK(acts_as(built_in));
  CHECK(one.roll_back() == SlotError::no_previous);
  const auto push = [&](const Bytes& image) {
    REQUIRE(one.stage() == SlotError::none);
    CHECK(acts_as(built_in));
    REQUIRE(one.write(0, image.data(), bytes) == SlotError::none);
    REQUIRE(one.finish().accepted());
    CHECK(acts_as(built_in));
    REQUIRE(one.start_trial(now_us, kTrial_us) == SlotError::none);
    CHECK(acts_as(image));
    REQUIRE(one.confirm(now_us) == SlotError::none);
    CHECK(acts_as(image));
  };
  push(pushed);
  push(image_of(2));
  PolicyDeployment<Host, Flash, 2, 64, 1> restarted(Host{}, flash, policy_contract<Contract>());
  restarted.begin();
  CHECK_FALSE(restarted.has_built_in());
  CHECK(restarted.acting() != nullptr);
  REQUIRE(one.roll_back() == SlotError::none);
  CHECK(acts_as(built_in));
  CHECK(one.roll_back() == SlotError::no_previous);
  // A damaged one is no policy.
  Bytes damaged = built_in;
  damaged[200] ^= 1;
  PolicyDeployment<Host, Flash, 2, 64, 1> other(Host{}, flash, policy_contract<Contract>());
  other.begin(damaged.data(), bytes);
  CHECK_FALSE(other.has_built_in());
  CHECK(other.acting() == nullptr);
}

TEST_CASE("what is refused leaves the policy that acts, its executor and the candidate alone") {
  Flash flash(kBlocks);
  ExecutorLimits limits;
  limits.give_up_ticks = 2;
  Deployment deployment(Host{}, flash, policy_contract<Contract>(), limits);
  deployment.begin();
  std::uint32_t now_us = 0;
  Action action;
  const auto step = [&](const float* observation) {
    now_us += kStep_us;
    return deployment.step(now_us, {observation, now_us}, action.values);
  };
  // Faults in a row are what a reset of the executor would forget.
  const auto check_unchanged_by = [&](auto&& refused) {
    CHECK(step(kGood) == ExecutorStatus::acted);
    const Action before = action;
    CHECK(step(nullptr) == ExecutorStatus::observation_missing);
    refused();
    CHECK(deployment.executor().faults_in_a_row() == 1);
    CHECK(step(kGood) == ExecutorStatus::acted);
    CHECK(action == before);
  };
  const Bytes first = image_of(1), second = image_of(2);
  REQUIRE(send(deployment, first).accepted());
  REQUIRE(deployment.start_trial(now_us, kTrial_us) == SlotError::none);
  const auto check_trial = [&] {
    CHECK(deployment.start_trial(now_us, kTrial_us) == SlotError::in_trial);
    CHECK(deployment.stage() == SlotError::in_trial);
    CHECK(deployment.finish().error == SlotError::incomplete);
    CHECK(deployment.drop_staged() == SlotError::not_staged);
  };
  check_unchanged_by(check_trial);
  REQUIRE(deployment.confirm(now_us) == SlotError::none);
  const auto check_active = [&] {
    CHECK(deployment.start_trial(now_us, kTrial_us) == SlotError::not_staged);
    CHECK(deployment.confirm(now_us) == SlotError::no_trial);
    CHECK(deployment.roll_back() == SlotError::no_previous);
    CHECK(deployment.finish().error == SlotError::incomplete);
  };
  check_unchanged_by(check_active);

  // A staged image stays one, whatever is refused, and so does the one before.
  REQUIRE(send(deployment, second).accepted());
  CHECK(deployment.finish().error == SlotError::incomplete);
  flash.fail(true);
  check_unchanged_by([&] {
    CHECK(deployment.start_trial(now_us, kTrial_us) == SlotError::storage_failed);
    CHECK(deployment.stage() == SlotError::storage_failed);
  });
  flash.fail(false);
  REQUIRE(deployment.start_trial(now_us, kTrial_us) == SlotError::none);
  REQUIRE(deployment.confirm(now_us) == SlotError::none);
  CHECK(deployment.finish().error == SlotError::incomplete);
  CHECK(deployment.roll_back() == SlotError::none);
  CHECK(step(kGood) == ExecutorStatus::acted);
  CHECK(action == action_of(first));
}

TEST_CASE("with one slot, what is refused leaves the active policy alone") {
  Flash flash(2 + 8);
  PolicyDeployment<Host, Flash, 2, 64, 1> one(Host{}, flash, policy_contract<Contract>());
  one.begin();
  const Bytes image = image_of(1);
  REQUIRE(one.stage() == SlotError::none);
  REQUIRE(one.write(0, image.data(), static_cast<std::uint32_t>(image.size())) == SlotError::none);
  REQUIRE(one.finish().accepted());
  REQUIRE(one.start_trial(0, kTrial_us) == SlotError::none);
  REQUIRE(one.confirm(0) == SlotError::none);
  CHECK(one.finish().error == SlotError::incomplete);
  CHECK(one.acting() != nullptr);
}

TEST_CASE(
    "after a roll-back that cannot be written down the policy before acts from its beginning") {
  Flash flash(kBlocks);
  Board board(flash);
  const Bytes first = image_of(1), second = image_of(2);
  REQUIRE(board.pushes(first));
  REQUIRE(board.pushes(second));
  CHECK(board.step(nullptr) == ExecutorStatus::observation_missing);
  REQUIRE(board.deployment.executor().faults_in_a_row() == 1);
  flash.fail(true);
  CHECK(board.deployment.roll_back() == SlotError::storage_failed);
  CHECK(board.deployment.executor().faults_in_a_row() == 0);
  CHECK(board.deployment.view(board.deployment.slots().other_slot()) == nullptr);
  CHECK(board.acts_as(first));
}

TEST_CASE("an image that passed the check and cannot be staged is no policy") {
  Flash flash(kBlocks);
  Board board(flash);
  const Bytes image = image_of(1);
  REQUIRE(board.deployment.stage() == SlotError::none);
  REQUIRE(board.deployment.write(0, image.data(), static_cast<std::uint32_t>(image.size())) ==
          SlotError::none);
  const StageVerdict verdict = board.deployment.finish([&] { flash.fail(true); });
  CHECK(verdict.error == SlotError::storage_failed);
  CHECK(board.deployment.view(0) == nullptr);
}

TEST_CASE("a confirmation that comes too late ends the trial, and the policy before begins anew") {
  Flash flash(kBlocks);
  Board board(flash);
  REQUIRE(board.pushes(image_of(1)));
  REQUIRE(send(board.deployment, image_of(2)).accepted());
  REQUIRE(board.deployment.start_trial(board.now_us, kTrial_us) == SlotError::none);
  CHECK(board.step(nullptr) == ExecutorStatus::observation_missing);
  CHECK(board.deployment.confirm(board.now_us - kStep_us + kTrial_us) == SlotError::no_trial);
  CHECK(board.deployment.executor().faults_in_a_row() == 0);
  CHECK(board.deployment.view(board.deployment.slots().other_slot()) == nullptr);
}

TEST_CASE("a roll-back in a trial keeps the active policy, also where one is built in") {
  const Bytes built_in = image_of(9), first = image_of(1);
  Flash flash(kBlocks);
  Deployment deployment(Host{}, flash, policy_contract<Contract>());
  deployment.begin(built_in.data(), static_cast<std::uint32_t>(built_in.size()));
  REQUIRE(send(deployment, first).accepted());
  REQUIRE(deployment.start_trial(0, kTrial_us) == SlotError::none);
  REQUIRE(deployment.confirm(0) == SlotError::none);
  REQUIRE(send(deployment, image_of(2)).accepted());
  REQUIRE(deployment.start_trial(0, kTrial_us) == SlotError::none);
  REQUIRE(deployment.roll_back() == SlotError::none);
  Action action;
  REQUIRE(deployment.step(0, {kGood, 0}, action.values) == ExecutorStatus::acted);
  CHECK(action == action_of(first));
}

TEST_CASE("what is staged is not wanted, and the storage fails") {
  Flash flash(kBlocks);
  Board board(flash);
  REQUIRE(send(board.deployment, image_of(1)).accepted());
  flash.fail(true);
  CHECK(board.deployment.drop_staged() == SlotError::storage_failed);
  CHECK(board.deployment.start_trial(board.now_us, kTrial_us) == SlotError::not_staged);
  flash.fail(false);
  CHECK(board.deployment.write_down());
  Board restarted(flash);
  CHECK(restarted.deployment.slots().candidate_state() == Candidate::none);
}

TEST_CASE("at a start an active image that is refused gives way to the good one before it") {
  Flash flash(kBlocks);
  {
    Board board(flash);
    REQUIRE(board.pushes(image_of(1)));
    REQUIRE(board.pushes(image_of(2)));
  }
  // Another firmware: an image whose examples this one does not reproduce, with a right checksum.
  PolicySlots<Flash> slots(flash);
  REQUIRE(slots.begin());
  Bytes wrong = image_of(3);
  PolicyView view;
  REQUIRE(parse_policy(wrong.data(), wrong.size(), view).reason == PolicyReason::accepted);
  const std::size_t last_bias =
      wrong.size() - 4 * (example_floats(view) * view.header->example_count + 1);
  wrong[last_bias] ^= 1;
  auto& header = *reinterpret_cast<PolicyImageHeader*>(wrong.data());
  header.crc32 = policy_image_crc32(wrong.data(), wrong.size());
  const auto accept = [](const std::uint8_t*, std::uint32_t) { return true; };
  REQUIRE(slots.stage() == SlotError::none);
  REQUIRE(slots.write(0, wrong.data(), static_cast<std::uint32_t>(wrong.size())) ==
          SlotError::none);
  REQUIRE(slots.finish(accept) == SlotError::none);
  SUBCASE("staged: it cannot be tried") {
    Board board(flash);
    CHECK(board.deployment.start_trial(0, kTrial_us) == SlotError::not_staged);
    CHECK(board.acts_as(image_of(2)));
  }
  REQUIRE(slots.start_trial(0, kTrial_us) == SlotError::none);
  REQUIRE(slots.confirm(0) == SlotError::none);
  SUBCASE("active") {
    Board board(flash);
    CHECK(board.acts_as(image_of(2)));
    CHECK(board.deployment.slots().last_drop() == DropReason::refused);
  }
  SUBCASE("previous: there is no way back to it, and what acts goes on") {
    const Bytes good = image_of(4);
    REQUIRE(slots.stage() == SlotError::none);
    REQUIRE(slots.write(0, good.data(), static_cast<std::uint32_t>(good.size())) ==
            SlotError::none);
    REQUIRE(slots.finish(accept) == SlotError::none);
    REQUIRE(slots.start_trial(0, kTrial_us) == SlotError::none);
    REQUIRE(slots.confirm(0) == SlotError::none);
    Board board(flash);
    CHECK(board.deployment.roll_back() == SlotError::no_previous);
    CHECK(board.acts_as(good));
  }
}

TEST_CASE("a policy in trial whose output is not finite is dropped at once") {
  Flash flash(kBlocks);
  Board board(flash);
  const Bytes first = image_of(1);
  REQUIRE(board.pushes(first));
  REQUIRE(send(board.deployment, overflowing_image()).accepted());
  REQUIRE(board.deployment.start_trial(board.now_us, kTrial_us) == SlotError::none);
  CHECK(board.step() == ExecutorStatus::acted);
  const float high[] = {3.5f, -2.0f, 0.5f, 3.0f, 1e5f};
  CHECK(board.step(high) == ExecutorStatus::output_not_finite);
  CHECK(board.action == kSafe);
  CHECK(board.deployment.slots().last_drop() == DropReason::fault);
  CHECK(board.acts_as(first));
  // In the active policy it is a fault, and a staged image stays.
  REQUIRE(board.pushes(overflowing_image()));
  REQUIRE(send(board.deployment, image_of(2)).accepted());
  CHECK(board.step(high) == ExecutorStatus::output_not_finite);
  CHECK(board.deployment.slots().candidate_state() == Candidate::staged);
  REQUIRE(board.deployment.drop_staged() == SlotError::none);
  // A wrong observation is not the policy's fault.
  REQUIRE(send(board.deployment, image_of(2)).accepted());
  REQUIRE(board.deployment.start_trial(board.now_us, kTrial_us) == SlotError::none);
  const float wrong[] = {std::numeric_limits<float>::quiet_NaN(), -2.0f, 0.5f, 3.0f, 1e5f};
  CHECK(board.step(wrong) == ExecutorStatus::observation_not_finite);
  CHECK(board.deployment.is_in_trial());
}

TEST_CASE("an image with any bit flipped is refused, and the active policy goes on") {
  Flash flash(kBlocks);
  Board board(flash);
  const Bytes first = image_of(1), second = image_of(2);
  REQUIRE(board.pushes(first));
  for (std::size_t bit = 0; bit < second.size() * 8; bit++) {
    Bytes flipped = second;
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    const StageVerdict verdict = send(board.deployment, flipped);
    REQUIRE(verdict.error == SlotError::none);
    REQUIRE_FALSE(verdict.verdict.accepted());
    REQUIRE(board.deployment.slots().candidate_state() == Candidate::none);
    REQUIRE(board.deployment.start_trial(board.now_us, kTrial_us) == SlotError::not_staged);
  }
  CHECK(board.acts_as(first));
}

TEST_CASE("what does not fit this place is refused by name") {
  Flash flash(kBlocks);
  Board board(flash);
  Bytes image = image_of(1);
  const auto reason_of = [&](const auto& change) {
    Bytes changed = image;
    auto& header = *reinterpret_cast<PolicyImageHeader*>(changed.data());
    change(header, changed);
    header.crc32 = policy_image_crc32(changed.data(), changed.size());
    return send(board.deployment, changed).verdict.reason;
  };
  CHECK(reason_of([](auto& header, auto&) { header.step_interval_us++; }) ==
        PolicyReason::other_contract);
  CHECK(reason_of([](auto& header, auto&) { header.version += 2; }) ==
        PolicyReason::unknown_version);
  CHECK(reason_of([](auto& header, auto&) { header.observation_dim++; }) ==
        PolicyReason::malformed);
  const std::size_t channels = sizeof(PolicyImageHeader) + 2 * sizeof(PolicyImageLayer);
  CHECK(reason_of([&](auto&, auto& bytes) { bytes[channels] = 'H'; }) ==
        PolicyReason::other_contract);
  const std::size_t weights =
      channels + 7 * sizeof(PolicyImageChannel) + 2 * Contract::kObservationDim * sizeof(float);
  const std::size_t last_bias = weights + (SmallNetwork::kParameterCount - 1) * sizeof(float);
  CHECK(reason_of([&](auto&, auto& bytes) {
          const float nan = std::numeric_limits<float>::quiet_NaN();
          std::memcpy(bytes.data() + weights, &nan, 4);
        }) == PolicyReason::not_finite);
  CHECK(reason_of([&](auto&, auto& bytes) { bytes[last_bias] ^= 1; }) ==
        PolicyReason::example_not_reproduced);
  CHECK(board.acts_safely());
  // More scratch memory than there is.
  PolicyDeployment<Host, Flash, 2, 15> narrow(Host{}, flash, policy_contract<Contract>());
  narrow.begin();
  narrow.stage();
  narrow.write(0, image.data(), static_cast<std::uint32_t>(image.size()));
  CHECK(narrow.finish().verdict.reason == PolicyReason::too_large);
}

TEST_CASE("the policy acts in every tick of a push, at every byte of which the board may reset") {
  const Bytes first = image_of(1), second = image_of(2);
  Flash start(kBlocks);
  REQUIRE(Board(start).pushes(first));
  for (std::uint64_t cut = 0;; cut++) {
    Flash flash = start;
    bool was_cut = false;
    {
      Board board(flash);
      flash.cut_after(cut, flash_model::Left::garbage);
      try {
        const auto bytes = static_cast<std::uint32_t>(second.size());
        board.deployment.stage();
        for (std::uint32_t i = 0; i < bytes; i += 100) {
          board.deployment.write(i, second.data() + i, bytes - i < 100 ? bytes - i : 100);
          if (cut % 64 == 0) REQUIRE(board.acts_as(first));
        }
        const bool accepted = board.deployment.finish().accepted();
        const SlotError trial = board.deployment.start_trial(board.now_us, kTrial_us);
        const bool acts = board.acts_as(second);
        const SlotError confirmed = board.deployment.confirm(board.now_us);
        REQUIRE(accepted);
        REQUIRE(trial == SlotError::none);
        REQUIRE(acts);
        REQUIRE(confirmed == SlotError::none);
      } catch (const flash_model::PowerCut&) {
        was_cut = true;
      }
    }
    flash.cut_after(Flash::kNever, flash_model::Left::prefix);
    Board board(flash);
    REQUIRE(board.step() == ExecutorStatus::acted);
    const bool is_old = board.action == action_of(first);
    const bool is_new = board.action == action_of(second);
    REQUIRE((is_old || is_new));
    REQUIRE((was_cut || is_new));
    if (!was_cut) break;
  }
}
