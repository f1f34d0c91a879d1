// The executor: time, limits, faults and recovery, tick by tick, and under a storm of all faults at
// once.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "policy_networks.h"
#include "rltools/policy/executor.h"
#include "storm.h"

using namespace rlt;

namespace {

using policy_networks::Contract;
using policy_networks::kGood;
constexpr std::uint32_t kStep_us = Contract::kStepInterval_us;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kSafe[2] = {0.5f, 0.25f};  // the middle of the ranges

bool act_well(const float* observation, float* action) {
  action[0] = 0.25f + observation[0] * 0.001f;
  action[1] = 0.125f;
  return true;
}

// A runner whose policy is the function act(observation, action), which returns false where its
// output is not finite.
template <class Act>
struct ScriptedRunner {
  const Act& act;

  const ScriptedRunner* view() const { return this; }
  template <class History>
  bool forward_in_time(Generic, const float* observation, const History&, const ObservationSums&,
                       float*, float* action) {
    return act(observation, action);
  }
};

// An executor with a clock and an observation of its own.
struct Bench {
  explicit Bench(const ExecutorLimits& limits = {}, std::uint32_t now = 1000)
      : executor(policy_contract<Contract>(), limits), now_us(now) {
    for (int i = 0; i < 5; i++) values[i] = kGood[i];
  }

  template <class Act>
  ExecutorStatus step_on(const Observation& observation, const Act& act) {
    ScriptedRunner<Act> runner{act};
    return executor.step(Generic{}, now_us, observation, action, &runner);
  }
  ExecutorStatus step_on(const Observation& observation) { return step_on(observation, act_well); }
  template <class Act>
  ExecutorStatus step(const Act& act) {
    return step_on({values, taken_us(now_us)}, act);
  }
  ExecutorStatus step() { return step(act_well); }
  ExecutorStatus step_without_policy() {
    ScriptedRunner<bool (*)(const float*, float*)>* const none = nullptr;
    return executor.step(Generic{}, now_us, {values, taken_us(now_us)}, action, none);
  }
  ExecutorStatus next() {
    now_us += kStep_us;
    return step();
  }
  std::uint32_t taken_us(std::uint32_t now) const { return now - age_us; }
  bool is_safe() const { return action[0] == kSafe[0] && action[1] == kSafe[1]; }
  const ExecutorCounts& counts() const { return executor.counts(); }
  std::uint32_t count(ExecutorStatus status) const {
    return counts().statuses[static_cast<int>(status)];
  }

  Executor<2, 0> executor;
  std::uint32_t now_us;
  std::uint32_t age_us = 0;
  float values[5];
  float action[2] = {kNan, kNan};
};

}  // namespace

TEST_CASE("the policy acts at the contract's rate, and its action is held between") {
  Bench bench;
  CHECK(bench.step() == ExecutorStatus::acted);
  const float first = bench.action[0];
  CHECK(first == 0.25f + 1.0f * 0.001f);
  bench.values[0] = 2.0f;
  bench.now_us += kStep_us / 2;
  CHECK(bench.step() == ExecutorStatus::held);
  CHECK(bench.action[0] == first);
  bench.now_us += kStep_us / 2;
  CHECK(bench.step() == ExecutorStatus::acted);
  CHECK(bench.action[0] == 0.25f + 2.0f * 0.001f);
  CHECK(bench.counts().ticks == 2);
  CHECK(bench.counts().early == 1);
  CHECK(bench.counts().late == 0);
  CHECK(bench.counts().missed == 0);
}

TEST_CASE("a contract whose step has no length gives the safe action, whatever the clock says") {
  for (const std::uint32_t interval_us : {0u, 600000001u, 0x80000000u, 0xffffffffu}) {
    CAPTURE(interval_us);
    PolicyContract contract = policy_contract<Contract>();
    contract.step_interval_us = interval_us;
    Executor<2, 0> executor(contract);
    ScriptedRunner<bool (*)(const float*, float*)>* const none = nullptr;
    for (const std::uint32_t now_us : {0u, 1u, 1000u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
      float action[2] = {kNan, kNan};
      executor.step(Generic{}, now_us, {kGood, now_us}, action, none);
      CHECK(action[0] == kSafe[0]);
      CHECK(action[1] == kSafe[1]);
    }
    CHECK(executor.counts().statuses[static_cast<int>(ExecutorStatus::acted)] == 0);
  }
}

TEST_CASE("a loop with jitter loses no tick and does not drift") {
  Bench bench;
  const std::uint32_t begin = bench.now_us;
  for (std::uint32_t i = 0; i < 1000; i++) {
    bench.now_us =
        begin + i * kStep_us + (i % 2 == 0 ? 0 : kStep_us / 5) - (i % 3 == 0 ? 0 : kStep_us / 5);
    REQUIRE(bench.step() == ExecutorStatus::acted);
  }
  CHECK(bench.counts().ticks == 1000);
  CHECK(bench.counts().late == 0);
  CHECK(bench.counts().missed == 0);
  CHECK(bench.counts().early == 0);
}

TEST_CASE("a faster loop is slowed to the contract's rate") {
  Bench bench;
  for (int i = 0; i < 5000; i++) {
    bench.step();
    bench.now_us += kStep_us / 5;
  }
  CHECK(bench.counts().ticks ==
        1001);  // each a fifth of a step before it is due: within the jitter
  CHECK(bench.counts().early == 3999);
  CHECK(bench.counts().late == 0);
}

TEST_CASE("late and missed ticks are counted") {
  Bench bench;
  bench.step();
  bench.now_us += kStep_us + kStep_us / 4;  // as late as the jitter allows
  CHECK(bench.step() == ExecutorStatus::acted);
  CHECK(bench.counts().late == 0);
  bench.now_us += kStep_us + 1;  // one more than that, from the grid
  CHECK(bench.step() == ExecutorStatus::acted);
  CHECK(bench.counts().late == 1);
  CHECK(bench.counts().missed == 0);
  bench.now_us += 4 * kStep_us;
  CHECK(bench.step() == ExecutorStatus::acted);
  CHECK(bench.counts().late == 2);
  CHECK(bench.counts().missed == 3);
  // The grid restarts.
  bench.now_us += kStep_us;
  CHECK(bench.step() == ExecutorStatus::acted);
  CHECK(bench.counts().late == 2);
  bench.now_us += kStep_us - kStep_us / 4;  // as early as the jitter allows
  CHECK(bench.step() == ExecutorStatus::acted);
  CHECK(bench.counts().late == 2);
  bench.now_us += kStep_us + kStep_us / 2;  // and as late, as the grid stays
  CHECK(bench.step() == ExecutorStatus::acted);
  CHECK(bench.counts().late == 2);
  bench.now_us += 2 * kStep_us - kStep_us / 4;  // late by a step, so that one is missed
  CHECK(bench.step() == ExecutorStatus::acted);
  CHECK(bench.counts().late == 3);
  CHECK(bench.counts().missed == 4);
  bench.now_us += kStep_us / 2;  // the grid restarts, also then
  CHECK(bench.step() == ExecutorStatus::held);
}

TEST_CASE("the clock may wrap and may jump") {
  Bench bench({}, 0u - 3 * kStep_us);
  for (int i = 0; i < 6; i++) CHECK(bench.next() == ExecutorStatus::acted);
  CHECK(bench.counts().late == 0);
  bench.now_us -= 1000 * kStep_us;  // back: the observation is older than the last one
  CHECK(bench.step() == ExecutorStatus::observation_out_of_order);
  CHECK(bench.is_safe());
  CHECK(bench.counts().late == 1);
  bench.executor.reset();
  CHECK(bench.next() == ExecutorStatus::acted);
  CHECK(bench.next() == ExecutorStatus::acted);
}

TEST_CASE("an observation that is missing, stale or out of order is a fault") {
  Bench bench;
  CHECK(bench.step_on({nullptr, bench.now_us}) == ExecutorStatus::observation_missing);
  CHECK(bench.is_safe());
  bench.age_us = 2 * kStep_us;
  CHECK(bench.next() == ExecutorStatus::acted);
  bench.age_us = 2 * kStep_us + 1;
  CHECK(bench.next() == ExecutorStatus::observation_stale);
  CHECK(bench.is_safe());
  bench.age_us = 0;
  CHECK(bench.next() == ExecutorStatus::acted);
  bench.age_us = kStep_us + 1;  // before the last one
  CHECK(bench.next() == ExecutorStatus::observation_out_of_order);
  CHECK(bench.is_safe());
  bench.age_us = kStep_us / 2;
  CHECK(bench.next() == ExecutorStatus::acted);
  bench.age_us = 0u - kStep_us / 4;  // by another clock, within the jitter
  CHECK(bench.next() == ExecutorStatus::acted);
  bench.age_us = 0u - kStep_us / 4 - 1;
  CHECK(bench.next() == ExecutorStatus::observation_out_of_order);
}

TEST_CASE("what is not finite never passes") {
  for (const float value : {kNan, kInf, -kInf}) {
    for (int i = 0; i < Contract::kObservationDim; i++) {
      Bench bench;
      bench.values[i] = value;
      CHECK(bench.step() == ExecutorStatus::observation_not_finite);
      CHECK(bench.is_safe());
    }
    for (int i = 0; i < Contract::kActionDim; i++) {
      Bench bench;
      CHECK(bench.step([&](const float*, float* action) {
        action[0] = action[1] = 0.0f;
        action[i] = value;
        return true;
      }) == ExecutorStatus::output_not_finite);
      CHECK(bench.is_safe());
    }
  }
}

TEST_CASE("the range of each observation is the contract's, with a margin") {
  for (int i = 0; i < Contract::kObservationDim; i++) {
    CAPTURE(i);
    const Channel& channel = Contract::kObservations[i];
    const float width = channel.maximum - channel.minimum;
    const float least = width / 1000.0f;
    for (const float margin : {0.0f, 0.25f}) {
      ExecutorLimits limits;
      limits.range_margin = margin;
      const auto status_at = [&](float value) {
        Bench bench(limits);
        bench.values[i] = value;
        return bench.step();
      };
      const float low = channel.minimum - margin * width, high = channel.maximum + margin * width;
      CHECK(status_at(low) == ExecutorStatus::acted);
      CHECK(status_at(high) == ExecutorStatus::acted);
      CHECK(status_at(low - least) == ExecutorStatus::observation_out_of_range);
      CHECK(status_at(high + least) == ExecutorStatus::observation_out_of_range);
    }
  }
}

TEST_CASE("actions are within the contract's range") {
  Bench bench;
  CHECK(bench.step([](const float*, float* action) {
    action[0] = 1.5f, action[1] = -7.0f;
    return true;
  }) == ExecutorStatus::acted);
  CHECK(bench.action[0] == 1.0f);
  CHECK(bench.action[1] == -0.25f);
}

TEST_CASE("an observation that does not change is frozen, where its time does") {
  ExecutorLimits limits;
  limits.max_equal = 3;
  Bench bench(limits);
  CHECK(bench.step() == ExecutorStatus::acted);
  CHECK(bench.next() == ExecutorStatus::acted);
  CHECK(bench.next() == ExecutorStatus::acted);
  CHECK(bench.next() == ExecutorStatus::observation_frozen);
  CHECK(bench.next() == ExecutorStatus::observation_frozen);
  bench.values[3] = std::nextafter(bench.values[3], 9.0f);
  CHECK(bench.next() == ExecutorStatus::acted);
  // The same observation again is no new one: it becomes stale.
  limits.max_equal = 2;
  Bench slow(limits);
  const std::uint32_t taken = slow.now_us;
  CHECK(slow.step() == ExecutorStatus::acted);
  for (int i = 0; i < 2; i++) {
    slow.now_us += kStep_us;
    CHECK(slow.step_on({slow.values, taken}) == ExecutorStatus::acted);
  }
  slow.now_us += kStep_us;
  CHECK(slow.step_on({slow.values, taken}) == ExecutorStatus::observation_stale);
}

TEST_CASE("after a reset nothing was before: the first observation equals none") {
  ExecutorLimits limits;
  limits.max_equal = 2;
  limits.recovery_ticks = 2;
  Bench bench(limits);
  const auto check_restarts = [&] {
    CHECK(bench.next() == ExecutorStatus::acted);
    CHECK(bench.next() == ExecutorStatus::acted);
    CHECK(bench.next() == ExecutorStatus::observation_frozen);
  };
  check_restarts();
  bench.executor.reset();
  bench.step_without_policy();
  CHECK(bench.is_safe());
  bench.executor.reset();  // no fault was before, either
  check_restarts();
  // The action that is held is the safe one.
  bench.executor.reset();
  CHECK(bench.next() == ExecutorStatus::acted);
  bench.executor.reset();
  CHECK(bench.step_on({nullptr, 0}) == ExecutorStatus::observation_missing);
  CHECK(bench.is_safe());
}

TEST_CASE("a call is early up to a step and the jitter before it is due") {
  Bench bench;
  CHECK(bench.step() == ExecutorStatus::acted);  // due again one step later
  const std::uint32_t due_us = bench.now_us + kStep_us;
  bench.now_us = due_us - kStep_us - kStep_us / 4;
  CHECK(bench.step() == ExecutorStatus::held);
  bench.now_us--;  // the clock has jumped: the grid restarts
  CHECK(bench.step() != ExecutorStatus::held);
}

TEST_CASE("after a fault the policy acts again when enough ticks were good") {
  ExecutorLimits limits;
  limits.recovery_ticks = 3;
  Bench bench(limits);
  CHECK(bench.step() == ExecutorStatus::acted);  // there was no fault before
  bench.values[0] = kNan;
  CHECK(bench.next() == ExecutorStatus::observation_not_finite);
  bench.values[0] = 1.0f;
  CHECK(bench.next() == ExecutorStatus::recovering);
  CHECK(bench.is_safe());
  bench.values[0] = kInf;
  CHECK(bench.next() == ExecutorStatus::observation_not_finite);
  bench.values[0] = 1.0f;
  CHECK(bench.next() == ExecutorStatus::recovering);
  CHECK(bench.next() == ExecutorStatus::recovering);
  CHECK(bench.is_safe());
  CHECK(bench.next() == ExecutorStatus::acted);
  CHECK_FALSE(bench.is_safe());
  CHECK(bench.next() == ExecutorStatus::acted);
}

TEST_CASE("after too many faults in a row it gives up, until it is reset") {
  ExecutorLimits limits;
  limits.give_up_ticks = 3;
  Bench bench(limits);
  bench.values[0] = kNan;
  for (int i = 0; i < 2; i++) CHECK(bench.next() == ExecutorStatus::observation_not_finite);
  bench.values[0] = 1.0f;
  CHECK(bench.next() == ExecutorStatus::acted);  // the row is broken
  CHECK(bench.executor.faults_in_a_row() == 0);
  bench.values[0] = kNan;
  for (int i = 0; i < 3; i++) CHECK(bench.next() == ExecutorStatus::observation_not_finite);
  CHECK(bench.executor.faults_in_a_row() == 3);
  bench.values[0] = 1.0f;
  for (int i = 0; i < 5; i++) CHECK(bench.next() == ExecutorStatus::given_up);
  CHECK(bench.is_safe());
  bench.executor.reset();
  CHECK(bench.next() == ExecutorStatus::acted);
  CHECK(bench.count(ExecutorStatus::given_up) == 5);
}

TEST_CASE("what the policy itself reports is a fault") {
  Bench bench;
  CHECK(bench.step([](const float*, float* action) {
    action[0] = action[1] = 0.9f;
    return false;
  }) == ExecutorStatus::output_not_finite);
  CHECK(bench.is_safe());
  Bench without;
  CHECK(without.step_without_policy() == ExecutorStatus::no_policy);
  CHECK(without.is_safe());
}

TEST_CASE("a storm of 200,000 ticks: no output that is not finite or out of range") {
  using namespace storm;
  // Faults come in bursts. A model that knows what was put in says which statuses are right.
  ExecutorLimits limits;
  limits.max_equal = 4;
  limits.recovery_ticks = 2;
  limits.range_margin = 0.125f;
  Bench bench(limits, 0xfff00000u);
  std::uint32_t draw = 0;
  const auto random = [&draw](std::uint32_t below) {
    const float x = uniform<float>({5, Purpose::shuffle, draw++}, 0, 0.0f, 1.0f);
    return static_cast<std::uint32_t>(x * static_cast<float>(below)) % below;
  };
  Bursts bursts;
  std::uint32_t seen[kExecutorStatusCount] = {};
  std::uint32_t late_jumps = 0;
  constexpr int kTicks = 200000;
  for (int tick = 0; tick < kTicks; tick++) {
    const Input input = bursts.next(random);
    std::uint32_t ahead = kStep_us;
    if (random(50) == 0) ahead += random(20) * kStep_us, late_jumps++;
    if (random(10) == 0) ahead = kStep_us / 3;
    bench.now_us += ahead;
    float changing[5];
    for (int i = 0; i < 5; i++) {
      const Channel& channel = Contract::kObservations[i];
      changing[i] = channel.minimum + (channel.maximum - channel.minimum) *
                                          (static_cast<float>(random(4096)) / 4096.0f);
    }
    if (input != frozen) {
      for (int i = 0; i < 5; i++) bench.values[i] = changing[i];
    }
    const std::uint32_t which = random(5);
    if (input == not_a_number) bench.values[which] = kNan;
    if (input == infinite) bench.values[which] = random(2) == 0 ? kInf : -kInf;
    if (input == out_of_range) bench.values[which] = random(2) == 0 ? 3e38f : -1e6f;
    if (input == frozen && !std::isfinite(bench.values[0] + bench.values[1] + bench.values[2] +
                                          bench.values[3] + bench.values[4])) {
      for (int i = 0; i < 5; i++) bench.values[i] = changing[i];
    }
    bench.age_us = age_us(input, kStep_us, 1000000, random);
    bench.action[0] = bench.action[1] = kNan;
    const Observation observation{input == missing ? nullptr : bench.values,
                                  bench.taken_us(bench.now_us)};
    const ExecutorStatus status =
        bench.step_on(observation, [&](const float* values, float* action) {
          if (input == bad_output)
            action[random(2)] = random(2) == 0 ? kNan : kInf;
          else
            action[0] = values[0] * 3.0f - 1.0f, action[1] = values[1];
          return true;
        });
    seen[static_cast<int>(status)]++;
    for (int i = 0; i < 2; i++) {
      REQUIRE(bench.action[i] >= Contract::kActions[i].minimum);
      REQUIRE(bench.action[i] <= Contract::kActions[i].maximum);
    }
    const bool is_bad = input != good && input != frozen;
    // At once where it is a tick, and held where it is not.
    if (is_bad && status != ExecutorStatus::held) REQUIRE(is_fault(status));
    if (is_fault(status)) REQUIRE(bench.is_safe());
    if (input == missing && status != ExecutorStatus::held) {
      REQUIRE(status == ExecutorStatus::observation_missing);
    }
    if (input == stale && status != ExecutorStatus::held) {
      REQUIRE(status == ExecutorStatus::observation_stale);
    }
  }
  for (int i = 0; i < kExecutorStatusCount; i++) {
    const auto status = static_cast<ExecutorStatus>(i);
    CAPTURE(executor_status_text(status));
    const bool can_be = status != ExecutorStatus::no_policy && status != ExecutorStatus::given_up;
    CHECK((seen[i] > 0) == can_be);
  }
  CHECK(late_jumps > 0);
  CHECK(bench.counts().missed > 0);
  CHECK(bench.counts().ticks + bench.counts().early == kTicks);
}
