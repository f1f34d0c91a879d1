// Test: -Og
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
#include "rltools/rl/evaluation.h"

using namespace rlt;
using training_run::Run;

namespace {

// StepReport has its metrics in float. Of the tolerances `targets` is that of advantages.
constexpr golden::Tolerances kDouble{1e-12, 1e-7, 1e-13, 1e-13, 1e-14, true};
// Rounding is 6e-8 for each of some dozen operations, and Adam divides by small gradients, at eight
// updates in a row.
constexpr golden::Tolerances kFloat{1e-5, 2e-5, 1e-4, 1e-4, 2e-6, false};

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

namespace {

// Short iterations with everything that may be asked for.
void recompute(PpoHyperparameters& h) {
  h.epochs = 2;
  h.recompute_adv = 1;
  h.entropy_weight = 0.01f;
}

template <class E, class Device>
std::string hash_after(Device device, std::uint32_t steps, std::uint32_t seed = 1) {
  Run<E> run(seed);
  recompute(run.training.hyperparameters);
  initialize(device, run.training);
  run.train(device, steps);
  return run.state_sha256();
}

// Calls of train_step() in an iteration of two epochs.
template <class E>
constexpr std::uint32_t kIteration = E::kRolloutSteps + 2 * Ppo::kMinibatches<E>;

// Whatever stood in the other run's memory counts for nothing.
template <class E>
void fill_with_garbage(Run<E>& run, int byte) {
  std::memset(static_cast<void*>(run.learner.get()), byte, sizeof(*run.learner));
  std::memset(static_cast<void*>(run.replay.get()), byte, sizeof(*run.replay));
  std::memset(static_cast<void*>(run.scratch.get()), byte, sizeof(*run.scratch));
}

}  // namespace

TEST_CASE("the reference and the host's kernels end two iterations and a half with the same bits") {
  const std::uint32_t steps = 2 * kIteration<PendulumPpo> + PendulumPpo::kRolloutSteps + 2;
  const std::string reference = hash_after<PendulumPpo>(Generic{}, steps);
  CHECK(hash_after<PendulumPpo>(Host{}, steps) == reference);
  // The same on every machine and with every compiler. A change to the core's numerics changes it,
  // and the message of that commit says so.
  CHECK(reference == "5a0c448bea487d57b86292bdfcefa3c594fa0a14362560b903b8a55ebe00fcde");
  const std::string random_point = hash_after<RandomPointPpo>(Generic{}, 100);
  CHECK(hash_after<RandomPointPpo>(Host{}, 100) == random_point);
}

TEST_CASE("the tile size changes no bit") {
  const std::uint32_t steps = kIteration<PendulumPpo> + PendulumPpo::kRolloutSteps + 10;
  const std::string expected = hash_after<PendulumPpo>(Host{}, steps);
  CHECK(hash_after<WithTileRows<PendulumPpo, 128>>(Host{}, steps) == expected);
  CHECK(hash_after<WithTileRows<PendulumPpo, 4>>(Host{}, steps) == expected);
  const std::string point = hash_after<PointPpo>(Host{}, 100);
  CHECK(hash_after<WithTileRows<PointPpo, 16>>(Host{}, 100) == point);
  CHECK(hash_after<WithTileRows<PointPpo, 2>>(Host{}, 100) == point);
}

TEST_CASE("a run that continues from a copy of its state ends with the same bits") {
  using E = RandomPointPpo;
  static_assert(kIteration<E> == 24);
  const std::string expected = hash_after<E>(Host{}, 80, 3);
  // In the middle of each: rollouts, epochs; before a rollout, before its first minibatch, and
  // before the epoch that computes the advantages anew.
  for (std::uint32_t pause = 1; pause < 80; pause++) {
    CAPTURE(pause);
    Run<E> first(3), second(3);
    recompute(first.training.hyperparameters);
    recompute(second.training.hyperparameters);
    initialize(Host{}, first.training);
    first.train(Host{}, pause);
    evaluate(Host{}, first.training);
    policy(first.training);
    fill_with_garbage(second, pause % 2 ? 0xa5 : 0xff);
    second.set_state(first.state());
    CHECK(state_is_consistent(second.training));
    CHECK(state_is_finite(second.training));
    second.train(Host{}, 80 - pause);
    CHECK(second.state_sha256() == expected);
  }
}

TEST_CASE("pendulum-ppo continues from the middle of an iteration with the same bits") {
  const std::uint32_t steps = kIteration<PendulumPpo> + PendulumPpo::kRolloutSteps + 5;
  static_assert(kIteration<PendulumPpo> == 272);
  const std::string expected = hash_after<PendulumPpo>(Host{}, steps, 3);
  for (const std::uint32_t pause : {50u, 256u, 259u, 264u, 272u, 300u, 529u}) {
    CAPTURE(pause);
    Run<PendulumPpo> first(3), second(3);
    recompute(first.training.hyperparameters);
    recompute(second.training.hyperparameters);
    initialize(Host{}, first.training);
    first.train(Host{}, pause);
    fill_with_garbage(second, 0xff);
    second.set_state(first.state());
    second.train(Host{}, steps - pause);
    CHECK(second.state_sha256() == expected);
  }
}

TEST_CASE("initialize sets the whole state, whatever the memory held") {
  Run<RandomPointPpo> clean(4), used(4);
  fill_with_garbage(clean, 0x5a);
  initialize(Host{}, clean.training);
  used.training.hyperparameters.seed = 5;
  used.training.hyperparameters.initial_log_std = 0.5f;
  used.training.hyperparameters.learning_rate = 0.01f;
  initialize(Host{}, used.training);
  used.train(Host{}, 120);
  used.training.hyperparameters = clean.training.hyperparameters;
  initialize(Host{}, used.training);
  CHECK(used.state() == clean.state());
}

TEST_CASE("seeds differ") {
  std::set<std::string> hashes;
  for (std::uint32_t seed = 0; seed < 5; seed++)
    hashes.insert(hash_after<PointPpo>(Host{}, 30, seed));
  CHECK(hashes.size() == 5);
}

TEST_CASE("the state's tensors have unlike names and as many bytes as state_bytes says") {
  Run<RandomPointPpo> run;
  const std::vector<std::string> names = run.tensor_names();
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  CHECK(state_bytes(run.training) == run.state().size());
}
