// PPO: whole minibatch updates against PyTorch (tests/goldens/generate_ppo.py), and the same bits
// whatever the device, the tile or a pause. Its rules: test_ppo_rules.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "ppo_golden_run.h"
#include "pytorch_comparison.h"
#include "rltools/devices/host.h"
#include "rltools/devices/host_threads.h"
#include "rltools/rl/evaluation.h"

using namespace rlt;
using training_run::Run;

namespace {

// StepReport has its metrics in float. Of the tolerances `targets` is that of advantages.
constexpr golden::Tolerances kDouble{1e-12, 1e-7, 1e-13, 1e-12, 1e-13, true};
// Rounding is 6e-8 for each of some dozen operations, and Adam divides by small gradients, at eight
// updates in a row.
constexpr golden::Tolerances kFloat{1e-5, 2e-5, 1e-3, 1e-3, 1e-5, false};

template <class E>
void check_report(const golden::PyTorchComparison& comparison, int update,
                  const StepReport<E>& report) {
  const std::string prefix = std::to_string(update) + "/";
  for (int i = 0; i < PpoMetrics::kCount; i++) {
    const std::string name = PpoMetrics::info(i).name;
    if (name == "explained_variance") {
      CHECK(is_known(report.metrics.get(i)) == (update == 0));
      if (update == 0) comparison.check_loss(name, report.metrics.get(i));
    } else {
      comparison.check_loss(prefix + name, report.metrics.get(i));
    }
  }
}

// The updates of a case of ppo_golden_run.h, each one compared.
template <class T>
void compare_with_pytorch(const std::string& name, const golden::Tolerances& tolerances) {
  CAPTURE(name);
  using E = ppo_golden::Experiment<T>;
  golden::PyTorchComparison comparison("ppo.bin", name + "/", tolerances);
  Run<E> run;
  const auto& learner = *run.learner;
  ppo_golden::run(
      run, name,
      [&](const std::string& array, const golden::Array& values) {
        comparison.check_input(array, values);
      },
      [&](int update, const StepReport<E>& report) {
        CAPTURE(update);
        const std::string prefix = std::to_string(update) + "/";
        check_report(comparison, update, report);
        if (update % Ppo::kMinibatches<E> == 0) {
          const auto check_rows = [&](const char* array, const auto& values) {
            comparison.check_array(prefix + array,
                                   golden::Array(std::begin(values), std::end(values)),
                                   tolerances.targets);
          };
          check_rows("advantage", run.replay->advantage);
          check_rows("target", run.replay->target);
        }
        const auto check = [&](const char* network, const auto& parameters, const auto& optimizer) {
          comparison.check_step(prefix + network, network, parameters, golden::kStride,
                                tolerances.parameters);
          comparison.check_moments(prefix + network + "_optimizer", optimizer);
        };
        check("actor", learner.actor, learner.actor_optimizer);
        check("critic", learner.critic, learner.critic_optimizer);
        check("log_std", learner.log_std, learner.log_std_optimizer);
      });
  CHECK(learner.iteration == 1);
  CHECK(std::memcmp(learner.acting_log_std, learner.log_std.values,
                    sizeof learner.acting_log_std) == 0);
  const auto& normaliser = learner.normaliser;
  if (run.training.hyperparameters.normalise_obs == 0) {
    CHECK(normaliser.count == 0);
    return;
  }
  CHECK(normaliser.count == ppo_golden::kSeen + kRolloutRows<E>);
  golden::Array variance;
  for (const double squares : normaliser.sum_of_squares) {
    variance.push_back(squares / normaliser.count);
  }
  comparison.check_array("normaliser/mean", golden::to_array(normaliser.mean, 3),
                         tolerances.targets);
  comparison.check_array("normaliser/variance", variance, tolerances.targets);
}

}  // namespace

TEST_CASE("an iteration's updates in double are PyTorch's") {
  for (const char* name : ppo_golden::kCases) compare_with_pytorch<double>(name, kDouble);
}

TEST_CASE("an iteration's updates in float are PyTorch's in double, but for rounding") {
  for (const char* name : ppo_golden::kCases) compare_with_pytorch<float>(name, kFloat);
}
