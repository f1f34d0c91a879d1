// Runs a policy in time: at the contract's rate, on observations that are fresh and within their
// ranges, with actions that are finite and within theirs. On a fault the action is the contract's
// safe one, and the status names the fault. docs/executor.md has the table of statuses and draws
// the path of an action. No allocation, no recursion, no lock.
//
//   detail::SafeTick  a tick in time, the checks, the limits, the safe action
//   Executor          SafeTick, and what a policy sees of its past: actions, sums, a hidden state
#pragma once

#include <cstddef>
#include <cstdint>

#include "rltools/core/fields.h"
#include "rltools/core/finite.h"
#include "rltools/policy/action_history.h"
#include "rltools/policy/contract.h"
#include "rltools/policy/observation_sum.h"

namespace rlt {

// The outcome of a tick. All from `no_policy` on are faults: the action is the safe one.
enum class ExecutorStatus : std::uint8_t {
  acted,                     // the policy's action for this observation
  held,                      // called before the next tick: the action of the last one
  no_policy,                 // none has been accepted
  observation_missing,       // there has been none yet
  observation_stale,         // older than max_age_us
  observation_out_of_order,  // taken before the last one, or in the future
  observation_frozen,        // the same bits again, max_equal times, at new times
  observation_not_finite,    // an element is infinite or not a number
  observation_out_of_range,  // an element is beyond its range by more than range_margin
  output_not_finite,         // of the network
  recovering,                // all is well again, for less than recovery_ticks
  given_up,                  // faults for give_up_ticks in a row; reset() leads out
};
constexpr int kExecutorStatusCount = 12;

constexpr bool is_fault(ExecutorStatus status) { return status >= ExecutorStatus::no_policy; }

constexpr const char* executor_status_text(ExecutorStatus status) {
  switch (status) {
    case ExecutorStatus::acted: return "the policy acts";
    case ExecutorStatus::held: return "the last action is held";
    case ExecutorStatus::no_policy: return "there is no policy";
    case ExecutorStatus::observation_missing: return "there is no observation";
    case ExecutorStatus::observation_stale: return "the observation is too old";
    case ExecutorStatus::observation_out_of_order: return "the observation is out of order";
    case ExecutorStatus::observation_frozen: return "the observation does not change";
    case ExecutorStatus::observation_not_finite: return "the observation is not finite";
    case ExecutorStatus::observation_out_of_range: return "the observation is out of range";
    case ExecutorStatus::output_not_finite: return "the network's output is not finite";
    case ExecutorStatus::recovering: return "recovering from a fault";
    case ExecutorStatus::given_up: return "given up after too many faults";
  }
  return "unknown status";
}

// Limits of the executor, in microseconds, widths of a channel's range and ticks:
//   max_age_us      of an observation; 0: two step intervals
//   jitter_us       by which a tick may be early or late; 0: a quarter of a step
//   max_equal       observations in a row with the same bits; 0: any number
//   range_margin    beyond a channel's range
//   recovery_ticks  good ones in a row before the policy acts again
//   give_up_ticks   faults in a row; 0: never given up
#define RLT_EXECUTOR_LIMITS(X)        \
  X(std::uint32_t, max_age_us, 0)     \
  X(std::uint32_t, jitter_us, 0)      \
  X(std::uint32_t, max_equal, 0)      \
  X(float, range_margin, 0.0f)        \
  X(std::uint32_t, recovery_ticks, 1) \
  X(std::uint32_t, give_up_ticks, 0)
RLT_DEFINE_CONSTANTS(ExecutorLimits, RLT_EXECUTOR_LIMITS)

struct Observation {
  const float* values;     // (observation_dim) in the contract's units; null where there is none
  std::uint32_t taken_us;  // of the same clock as the ticks; wraps
};

struct ExecutorCounts {
  std::uint32_t ticks = 0;   // calls that were not early
  std::uint32_t early = 0;   // calls before the tick was due: nothing was computed
  std::uint32_t late = 0;    // ticks later than due by more than the jitter
  std::uint32_t missed = 0;  // ticks that fell out altogether
  std::uint32_t statuses[kExecutorStatusCount] = {};  // of all calls
};

namespace detail {

// A tick in time, its checks, limits and safe action, for an executor of any policy: 10 words and
// the last action. `MaxActions` is the largest action_dim.
template <int MaxActions>
class SafeTick {
 public:
  explicit SafeTick(const PolicyContract& contract, const ExecutorLimits& limits = {})
      : contract_(contract), limits_(limits) {
    // No image fits another interval; the safe action is given out all the same.
    if (!is_step_interval(contract.step_interval_us)) {
      contract_.step_interval_us = kMaxStepInterval_us;
    }
    if (limits_.max_age_us == 0) limits_.max_age_us = 2 * contract_.step_interval_us;
    if (limits_.jitter_us == 0) limits_.jitter_us = contract_.step_interval_us / 4;
    if (limits_.recovery_ticks == 0) limits_.recovery_ticks = 1;
    act_safely();
  }

  // Do Executor::step() with `act(observation, action)` for the policy: it returns acted, no_policy
  // or output_not_finite, and sets the action in the contract's units.
  template <class Act>
  ExecutorStatus step(std::uint32_t now_us, const Observation& observation, float* action,
                      Act&& act) {
    ExecutorStatus status = ExecutorStatus::held;
    if (is_due(now_us)) {
      status = tick(now_us, observation, act);
    } else {
      counts_.early++;
    }
    for (int i = 0; i < dimension(); i++) action[i] = last_[i];
    counts_.statuses[static_cast<int>(status)]++;
    return status;
  }

  // Return to the state after construction, except for the counts. The next call is a tick.
  void reset() {
    started_ = has_observation_ = false;
    equal_ = faults_ = 0;
    good_ = 0;
    has_failed_ = given_up_ = false;
    act_safely();
  }

  const ExecutorCounts& counts() const { return counts_; }
  const ExecutorLimits& limits() const { return limits_; }
  // Return the time at which the last tick was due, on the grid.
  std::uint32_t last_due_us() const { return due_us_ - contract_.step_interval_us; }
  // Return the number of faults in a row up to now.
  std::uint32_t faults_in_a_row() const { return faults_; }

 private:
  int dimension() const {
    return contract_.action_dim < MaxActions ? contract_.action_dim : MaxActions;
  }

  static std::int32_t difference(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(a - b);
  }

  // Return whether this call is a tick. Ticks are due on a grid, so that their rate does not drift;
  // it restarts where the clock has jumped, or a tick was missed.
  bool is_due(std::uint32_t now_us) {
    const auto interval = static_cast<std::int32_t>(contract_.step_interval_us);
    const auto jitter = static_cast<std::int32_t>(limits_.jitter_us);
    if (started_) {
      const std::int32_t after = difference(now_us, due_us_);
      if (after < -jitter && after >= -interval - jitter) return false;
      if (after > jitter || after < -jitter) counts_.late++;
      if (after >= interval) counts_.missed += static_cast<std::uint32_t>(after / interval);
      if (after >= interval || after < -jitter) due_us_ = now_us;
    } else {
      due_us_ = now_us;
    }
    started_ = true;
    due_us_ += contract_.step_interval_us;
    counts_.ticks++;
    return true;
  }

  template <class Act>
  ExecutorStatus tick(std::uint32_t now_us, const Observation& observation, Act&& act) {
    ExecutorStatus status = given_up_ ? ExecutorStatus::given_up : check(now_us, observation);
    if (status == ExecutorStatus::acted) status = act(observation.values, last_);
    if (status == ExecutorStatus::acted) status = clamp_action();
    if (status == ExecutorStatus::acted) return recover();
    fail();
    return status;
  }

  ExecutorStatus check(std::uint32_t now_us, const Observation& observation) {
    if (observation.values == nullptr) return ExecutorStatus::observation_missing;
    const std::int32_t age = difference(now_us, observation.taken_us);
    if (age < -static_cast<std::int32_t>(limits_.jitter_us)) {
      return ExecutorStatus::observation_out_of_order;
    }
    if (age > 0 && static_cast<std::uint32_t>(age) > limits_.max_age_us) {
      return ExecutorStatus::observation_stale;
    }
    if (has_observation_ && difference(observation.taken_us, taken_us_) < 0) {
      return ExecutorStatus::observation_out_of_order;
    }
    const bool is_new = !has_observation_ || observation.taken_us != taken_us_;
    if (is_new) count_equal(observation.values);
    has_observation_ = true;
    taken_us_ = observation.taken_us;
    if (!all_finite(observation.values, static_cast<std::uint64_t>(contract_.observation_dim))) {
      return ExecutorStatus::observation_not_finite;
    }
    if (!is_in_range(observation.values)) return ExecutorStatus::observation_out_of_range;
    if (limits_.max_equal != 0 && equal_ >= limits_.max_equal) {
      return ExecutorStatus::observation_frozen;
    }
    return ExecutorStatus::acted;
  }

  // Count equal observations in a row, by a hash of their bits; the first one equals none.
  void count_equal(const float* values) {
    const std::uint32_t hash = math::hash_bits(values, contract_.observation_dim);
    equal_ = has_observation_ && hash == hash_ ? equal_ + (equal_ < 0xffffffffu ? 1 : 0) : 0;
    hash_ = hash;
  }

  bool is_in_range(const float* values) const {
    for (int i = 0; i < contract_.observation_dim; i++) {
      const Channel& channel = contract_.observations[i];
      const float margin = limits_.range_margin * (channel.maximum - channel.minimum);
      if (!(values[i] >= channel.minimum - margin && values[i] <= channel.maximum + margin)) {
        return false;
      }
    }
    return true;
  }

  // Clamp the policy's action to the channels' ranges; refuse one that is not finite.
  ExecutorStatus clamp_action() {
    for (int i = 0; i < dimension(); i++) {
      if (!is_finite(last_[i])) return ExecutorStatus::output_not_finite;
      const Channel& channel = contract_.actions[i];
      last_[i] = last_[i] < channel.minimum   ? channel.minimum
                 : last_[i] > channel.maximum ? channel.maximum
                                              : last_[i];
    }
    return ExecutorStatus::acted;
  }

  void fail() {
    has_failed_ = true;
    good_ = 0;
    if (faults_ < 0xffffffffu) faults_++;
    given_up_ = limits_.give_up_ticks != 0 && faults_ >= limits_.give_up_ticks;
    act_safely();
  }

  ExecutorStatus recover() {
    faults_ = 0;
    if (!has_failed_) return ExecutorStatus::acted;
    good_++;
    has_failed_ = good_ < limits_.recovery_ticks;
    if (!has_failed_) return ExecutorStatus::acted;
    act_safely();
    return ExecutorStatus::recovering;
  }

  void act_safely() {
    for (int i = 0; i < dimension(); i++) last_[i] = safe_action(contract_, i);
  }

  PolicyContract contract_;
  ExecutorLimits limits_;
  ExecutorCounts counts_;
  std::uint32_t due_us_ = 0;
  std::uint32_t taken_us_ = 0;  // of the last observation
  std::uint32_t hash_ = 0;      // of its bits
  std::uint32_t equal_ = 0;     // new ones with that hash in a row, the first not counted
  std::uint32_t faults_ = 0;    // in a row
  std::uint32_t good_ = 0;      // ticks in a row after a fault
  bool started_ = false;
  bool has_observation_ = false;
  bool has_failed_ = false;
  bool given_up_ = false;
  float last_[MaxActions] = {};
};

}  // namespace detail

// An executor of a PolicyRunner. `MaxActions` is the largest action_dim.
//
// Policies may see their own last actions, and sums of what they observe, and may have a hidden
// state. The executor keeps `HistoryTicks` of its own ticks: calls before their time are none, and
// a safe action is an action like any other. The memory of the hidden state is the runner's; the
// executor decides when it moves on, and when it is zero. With 0 ticks it keeps nothing of this,
// and images that ask for it are refused.
template <int MaxActions, int HistoryTicks = kHistoryTicks>
class Executor {
 public:
  explicit Executor(const PolicyContract& contract, const ExecutorLimits& limits = {})
      : contract_(contract),
        tick_(contract, limits),
        history_(contract.action_dim < MaxActions ? contract.action_dim : MaxActions) {}

  // Act at `now_us`; to be called at the contract's rate or faster. `action` (action_dim) is always
  // set: finite and within the channels' ranges. A runner that is null, or has accepted no image,
  // is no policy.
  template <class Device, class Runner>
  ExecutorStatus step(Device device, std::uint32_t now_us, const Observation& observation,
                      float* action, Runner* runner) {
    float output[MaxActions];
    const ExecutorStatus status =
        tick_.step(now_us, observation, action, [&](const float* values, float* result) {
          if (runner == nullptr || runner->view() == nullptr) return ExecutorStatus::no_policy;
          if constexpr (HistoryTicks > 0) begin_step(now_us, *runner);
          return runner->forward_in_time(device, values, history_, sums_, output, result)
                     ? ExecutorStatus::acted
                     : ExecutorStatus::output_not_finite;
        });
    if constexpr (HistoryTicks > 0) {
      if (status != ExecutorStatus::held) {
        if (is_fault(status)) normalize_safe_action(output);
        history_.add(output);
      }
      if (status == ExecutorStatus::acted) {
        runner->sum_up(observation.values, sums_);
        end_step(now_us, *runner);
      }
      if (runner != nullptr && runner->view() != nullptr) {
        resets_state_ = resets_state_ || is_reset_by(status, runner->view()->recurrence);
      }
    }
    return status;
  }

  // Return to the state after construction, except for the counts. The next call is a tick, and
  // nothing was before it.
  void reset() {
    tick_.reset();
    history_.reset();
    sums_.reset();
    resets_state_ = true;
  }

  const ExecutorCounts& counts() const { return tick_.counts(); }
  const ExecutorLimits& limits() const { return tick_.limits(); }
  // Return the number of faults in a row up to now.
  std::uint32_t faults_in_a_row() const { return tick_.faults_in_a_row(); }

 private:
  // -- the hidden state ---------------------------------------------------------------------------

  // Return whether the state is zero after this status, by the image's `recurrence`; null: there is
  // no state. While the executor recovers, the state is as the fault has left it.
  static bool is_reset_by(ExecutorStatus status, const PolicyImageRecurrence* recurrence) {
    if (recurrence == nullptr || !is_fault(status)) return false;
    switch (status) {
      case ExecutorStatus::recovering: return false;
      case ExecutorStatus::observation_missing:
      case ExecutorStatus::observation_stale:
      case ExecutorStatus::observation_out_of_order:
      case ExecutorStatus::observation_frozen:
        return (recurrence->reset_at & kResetAtStaleInput) != 0;
      default: return (recurrence->reset_at & kResetAtFault) != 0;
    }
  }

  // Prepare the state for a step: zero it after a fault or a pause, or take the one that was kept.
  template <class Runner>
  void begin_step(std::uint32_t now_us, Runner& runner) {
    const PolicyImageRecurrence* recurrence = runner.view()->recurrence;
    if (recurrence == nullptr) return;
    // A clock that has jumped back is a pause, too.
    const bool is_pause = (recurrence->reset_at & kResetAtPause) != 0 &&
                          now_us - acted_us_ > recurrence->max_pause_us;
    if (resets_state_ || is_pause) {
      runner.reset_state();
      resets_state_ = false;
      is_first_step_ = true;
    } else if (!is_first_step_ && is_step_due(*recurrence)) {
      runner.take_state();
    }
  }

  // Move the state on after the policy has acted, once in the interval for which it was trained,
  // counted on the grid of ticks. Between, the policy acts on newer observations from the state
  // before the step, as if that step were taken now: from the state after it, steps would follow
  // each other faster than in training. The states that they lead to are not kept.
  template <class Runner>
  void end_step(std::uint32_t now_us, Runner& runner) {
    const PolicyImageRecurrence* recurrence = runner.view()->recurrence;
    if (recurrence == nullptr) return;
    acted_us_ = now_us;
    if (!is_first_step_ && !is_step_due(*recurrence)) return;
    runner.keep_state();
    is_first_step_ = false;
    kept_us_ = tick_.last_due_us();
  }
  bool is_step_due(const PolicyImageRecurrence& recurrence) const {
    return tick_.last_due_us() - kept_us_ >= recurrence.trained_interval_us;
  }

  void normalize_safe_action(float* normalized) const {
    for (int i = 0; i < contract_.action_dim && i < MaxActions; i++) {
      const Channel& channel = contract_.actions[i];
      normalized[i] =
          normalized_action(safe_action(contract_, i), channel.minimum, channel.maximum);
    }
  }

  const PolicyContract contract_;
  detail::SafeTick<MaxActions> tick_;
  ActionHistory<HistoryTicks, MaxActions> history_;
  ObservationSums sums_;
  std::uint32_t acted_us_ = 0;  // when the policy acted last
  std::uint32_t kept_us_ = 0;   // the tick, on the grid, whose state is kept
  bool resets_state_ = true;    // before the next step
  bool is_first_step_ = true;   // none has been kept since the state was zero
};

}  // namespace rlt
