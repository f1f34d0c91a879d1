// An executor for policies that may see their own last actions, and sums of what they observe: it
// lets a runner's policy act in time, and keeps what was given out and summed up. The history is
// that of the executor's ticks; calls before their time are none. A safe action is an action like
// any other.
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
          return runner->forward_in_time(device, values, history_, sums_, output, result)
                     ? ExecutorStatus::acted
                     : ExecutorStatus::output_not_finite;
        });
    if (HistoryTicks > 0 && status != ExecutorStatus::held) {
      if (is_fault(status)) normalise_safe_action(output);
      history_.add(output);
    }
    if (HistoryTicks > 0 && status == ExecutorStatus::acted) {
      runner->sum_up(observation.values, sums_);
    }
    return status;
  }

  // As after construction; the counts stay. The next call is a tick, and nothing was before it.
  void reset() {
    executor_.reset();
    history_.reset();
    sums_.reset();
  }

  const Executor<MostActions>& executor() const { return executor_; }

 private:
  void normalise_safe_action(float* normalised) const {
    for (int i = 0; i < contract_.action_dim && i < MostActions; i++) {
      const Channel& channel = contract_.actions[i];
      normalised[i] =
          normalised_action(safe_action(contract_, i), channel.minimum, channel.maximum);
    }
  }

  const PolicyContract contract_;
  Executor<MostActions> executor_;
  ActionHistory<HistoryTicks, MostActions> history_;
  ObservationSums sums_;
};

}  // namespace rlt
