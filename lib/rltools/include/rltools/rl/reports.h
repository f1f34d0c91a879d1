// What a run reports on its way, and when it is due.
#pragma once

#include "rltools/rl/metrics.h"
#include "rltools/rl/training.h"

namespace rlt {

// What has happened since the last report: means of the metrics, and the training episodes that
// have ended.
template <class E>
struct SinceReport {
  MetricMeans<typename E::Algorithm::Metrics> metrics;
  std::uint32_t episodes = 0;
  float returns = 0.0f;     // their sum
  std::uint32_t steps = 0;  // in all of them

  void add(const StepReport<E>& report) {
    metrics.add(report.metrics);
    episodes += report.episodes_ended;
    returns += report.episode_returns;
    steps += report.episode_steps;
  }
  void clear() { *this = {}; }

  // Return the mean return and number of steps; of no episodes, 0.
  float mean_return() const {
    return episodes == 0 ? 0.0f : returns / static_cast<float>(episodes);
  }
  float mean_steps() const {
    return episodes == 0 ? 0.0f : static_cast<float>(steps) / static_cast<float>(episodes);
  }
};

template <class E>
bool has_all_steps(const Training<E>& training) {
  return steps_done(training) >= training.hyperparameters.steps;
}

// Return whether a report is due after a training step, before which `before` steps were done.
template <class E>
bool is_report_due(const Training<E>& training, std::uint32_t before) {
  const std::uint32_t interval = training.hyperparameters.report_every;
  return finished(training) || steps_done(training) / interval != before / interval;
}

// Return whether the policy may be evaluated. When all steps are taken, updates from the last ones
// may still be due (PPO's). The policy is then evaluated only after these, when the run has
// finished.
template <class E>
bool may_evaluate(const Training<E>& training) {
  return finished(training) || !has_all_steps(training);
}

// Return whether the policy is to be evaluated after that step.
template <class E>
bool is_evaluation_due(const Training<E>& training, std::uint32_t before) {
  const std::uint32_t interval = training.hyperparameters.eval_freq;
  return may_evaluate(training) &&
         (finished(training) || steps_done(training) / interval != before / interval);
}

}  // namespace rlt
