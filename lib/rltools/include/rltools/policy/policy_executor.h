// An executor for policies that may see their own last actions, and sums of what they observe, and
// may have a hidden state: it lets a runner's policy act in time, and keeps what was given out and
// summed up. The history is that of the executor's ticks; calls before their time are none. A safe
// action is an action like any other. The hidden state is the runner's; here stands when it moves
// on, and when it is zero.
#pragma once

#include "rltools/policy/action_history.h"
#include "rltools/policy/executor.h"
#include "rltools/policy/observation_sum.h"

namespace rlt {

// `HistoryTicks` are as many as the runners' images may ask for.
template <int MostActions, int HistoryTicks = kHistoryTicks>
class PolicyExecutor {
 public:
  explicit PolicyExecutor(const PolicyContract& contract, const ExecutorLimits& limits = {})
      : contract_(contract),
        executor_(contract, limits),
        history_(contract.action_dim < MostActions ? contract.action_dim : MostActions) {}

  // As Executor::step(); the policy is that of a PolicyRunner, which has none yet where it is null.
  template <class Device, class Runner>
  ExecutorStatus step(Device device, std::uint32_t now_us, const Observation& observation,
                      float* action, Runner* runner) {
    float output[MostActions];
    const ExecutorStatus status =
        executor_.step(now_us, observation, action, [&](const float* values, float* result) {
          if (runner == nullptr || runner->view() == nullptr) return ExecutorStatus::no_policy;
          if (HistoryTicks > 0) begin_step(now_us, *runner);
          return runner->forward_in_time(device, values, history_, sums_, output, result)
                     ? ExecutorStatus::acted
                     : ExecutorStatus::output_not_finite;
        });
    if (HistoryTicks > 0 && status != ExecutorStatus::held) {
      if (is_fault(status)) normalize_safe_action(output);
      history_.add(output);
    }
    if (HistoryTicks > 0 && status == ExecutorStatus::acted) {
      runner->sum_up(observation.values, sums_);
      end_step(now_us, *runner);
    }
    if (HistoryTicks > 0 && runner != nullptr && runner->view() != nullptr) {
      resets_state_ = resets_state_ || is_reset_by(status, runner->view()->recurrence);
    }
    return status;
  }

  // As after construction; the counts stay. The next call is a tick, and nothing was before it.
  void reset() {
    executor_.reset();
    history_.reset();
    sums_.reset();
    resets_state_ = true;
  }

  const Executor<MostActions>& executor() const { return executor_; }

 private:
  // -- the hidden state ---------------------------------------------------------------------------

  // `recurrence` says after which faults the state is zero; null: there is none. While the executor
  // recovers, the state is as the fault has left it.
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

  template <class Runner>
  void begin_step(std::uint32_t now_us, Runner& runner) {
    const PolicyImageRecurrence* recurrence = runner.view()->recurrence;
    if (recurrence == nullptr) return;
    // A clock that has jumped back is a pause, too.
    const bool is_pause = (recurrence->reset_at & kResetAtPause) != 0 &&
                          now_us - acted_us_ > recurrence->most_pause_us;
    if (resets_state_ || is_pause) {
      runner.reset_state();
      resets_state_ = false;
      is_first_step_ = true;
    } else if (!is_first_step_ && is_step_due(*recurrence)) {
      runner.take_state();
    }
  }

  // The policy has acted. Its state moves on once in the interval for which it was trained, counted
  // on the grid of ticks. Between, it acts by newer observations from the state before the step, as
  // though that were only now: from the state behind it, steps would follow on each other faster
  // than in training. What they lead to is not kept.
  template <class Runner>
  void end_step(std::uint32_t now_us, Runner& runner) {
    const PolicyImageRecurrence* recurrence = runner.view()->recurrence;
    if (recurrence == nullptr) return;
    acted_us_ = now_us;
    if (!is_first_step_ && !is_step_due(*recurrence)) return;
    runner.keep_state();
    is_first_step_ = false;
    kept_us_ = executor_.last_due_us();
  }
  bool is_step_due(const PolicyImageRecurrence& recurrence) const {
    return executor_.last_due_us() - kept_us_ >= recurrence.trained_interval_us;
  }

  void normalize_safe_action(float* normalized) const {
    for (int i = 0; i < contract_.action_dim && i < MostActions; i++) {
      const Channel& channel = contract_.actions[i];
      normalized[i] =
          normalized_action(safe_action(contract_, i), channel.minimum, channel.maximum);
    }
  }

  const PolicyContract contract_;
  Executor<MostActions> executor_;
  ActionHistory<HistoryTicks, MostActions> history_;
  ObservationSums sums_;
  std::uint32_t acted_us_ = 0;  // when the policy acted last
  std::uint32_t kept_us_ = 0;   // the tick, on the grid, whose state is kept
  bool resets_state_ = true;    // before the next step
  bool is_first_step_ = true;   // none has been kept since the state was zero
};

}  // namespace rlt
