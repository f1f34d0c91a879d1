// Test: -Og
// Whole updates of TD3, SAC and PPO in double against PyTorch's (tests/goldens/generate*.py). The
// rules of the algorithms: test_off_policy.cpp and test_ppo.cpp.
#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <string>

#include "golden_runs.h"
#include "numeric_differentiation.h"

using namespace rlt;
using golden::Array;
using golden::to_array;

namespace {

// As in generate.py: of what is computed element by element a part is stored, and in
// generate_sac.py a smaller one.
constexpr std::size_t kStride = 7, kInputStride = 35, kSacStride = 21;

Array every(std::size_t stride, const Array& values) {
  Array result;
  for (std::size_t i = 0; i < values.size(); i += stride) result.push_back(values[i]);
  return result;
}

// How far results may be from PyTorch's, relative to the largest element: sums of up to 6,400
// products in another order. StepReport has its losses in float.
struct Tolerances {
  double inputs, losses, moments, parameters, targets;
};
constexpr Tolerances kTd3{1e-11, 1e-7, 1e-11, 1e-10, 1e-9};
constexpr Tolerances kSac{1e-11, 1e-7, 1e-13, 1e-12, 1e-10};
constexpr Tolerances kPpo{1e-12, 1e-7, 1e-13, 1e-13, 1e-14};  // targets and advantages

class Comparison {
 public:
  // `prefix` is that of all the names in the file.
  Comparison(const std::string& file, const std::string& prefix, const Tolerances& tolerances)
      : tolerances_(tolerances), file_(file), prefix_(prefix) {}

  // The updates' inputs are those that PyTorch had.
  void check_input(const std::string& name, const Array& values) {
    INFO("inputs have changed, run tests/goldens/generate*.py: ", name);
    inputs_[name] = values;
    CHECK(numeric::relative_difference(every(kInputStride, values), expected("inputs/" + name)) <=
          tolerances_.inputs);
  }
  void check_loss(const std::string& name, float value) const {
    CAPTURE(name);
    CHECK(value == doctest::Approx(expected(name)[0]).epsilon(tolerances_.losses));
  }
  void check_array(const std::string& name, const Array& actual, double tolerance) const {
    CAPTURE(name);
    CHECK(numeric::relative_difference(actual, expected(name)) <= tolerance);
  }
  // What the updates have added to the network's parameters since the input `initial`.
  template <class Network>
  void check_step(const std::string& name, const std::string& initial, const Network& network,
                  std::size_t stride, double tolerance) const {
    CAPTURE(name);
    const Array before = every(stride, inputs_.at(initial));
    Array actual = every(stride, golden::parameters_of(network)), result = expected(name);
    REQUIRE(result.size() == before.size());
    for (std::size_t i = 0; i < before.size(); i++) actual[i] -= before[i], result[i] -= before[i];
    CHECK(numeric::relative_difference(actual, result) <= tolerance);
  }
  template <class Optimizer>
  void check_moments(const std::string& name, const Optimizer& state,
                     std::size_t stride = kStride) const {
    check_array(name + "/first_moment", every(stride, golden::parameters_of(state.first_moment)),
                tolerances_.moments);
    check_array(name + "/second_moment", every(stride, golden::parameters_of(state.second_moment)),
                tolerances_.moments);
  }

 private:
  const Array& expected(const std::string& name) const { return file_[prefix_ + name]; }

  const Tolerances tolerances_;
  const golden::File file_;
  const std::string prefix_;
  std::map<std::string, Array> inputs_;
};

// check(comparison, run, prefix, report) after each update of every case, and at_end(...).
template <class Updates, class Check, class AtEnd>
void compare(Updates updates, const Tolerances& tolerances, Check&& check, AtEnd&& at_end) {
  for (const std::string name : Updates::kCases) {
    CAPTURE(name);
    Comparison comparison(std::string(Updates::kName) + ".bin", name + "/", tolerances);
    training_run::Run<typename Updates::Experiment> run;
    golden::run(
        updates, run, name,
        [&](const std::string& array, const Array& values) {
          comparison.check_input(array, values);
        },
        [&](int update, const auto& report) {
          CAPTURE(update);
          check(comparison, run, name, update, std::to_string(update) + "/", report);
        });
    at_end(comparison, run, name);
  }
}

}  // namespace

TEST_CASE("updates of TD3 are PyTorch's") {
  const auto check = [](const Comparison& comparison, auto&, const std::string& name, int update,
                        const std::string& prefix, const auto& report) {
    comparison.check_loss(prefix + "critic_1_loss", report.metrics.critic_1_loss);
    comparison.check_loss(prefix + "critic_2_loss", report.metrics.critic_2_loss);
    CHECK(is_known(report.metrics.actor_loss) == (name == "clipped" || update % 2 == 1));
    if (is_known(report.metrics.actor_loss))
      comparison.check_loss(prefix + "actor_loss", report.metrics.actor_loss);
  };
  compare(golden::Td3Updates{}, kTd3, check,
          [](const Comparison& comparison, auto& run, const std::string& name) {
            const auto& learner = *run.learner;
            const std::size_t stride = name == "paper" ? 1 : kStride;
            const auto check_step = [&](const char* network, const auto& parameters) {
              comparison.check_step(network, network, parameters, stride, kTd3.parameters);
            };
            check_step("actor", learner.actor);
            check_step("critic_1", learner.critic_1);
            check_step("critic_2", learner.critic_2);
            const auto check_target = [&](const std::string& network, const auto& parameters) {
              comparison.check_step(network + "_target", network, parameters, kStride,
                                    kTd3.targets);
            };
            check_target("actor", learner.actor_target);
            check_target("critic_1", learner.critic_1_target);
            check_target("critic_2", learner.critic_2_target);
            comparison.check_moments("actor_optimizer", learner.actor_optimizer);
            comparison.check_moments("critic_1_optimizer", learner.critic_1_optimizer);
            comparison.check_moments("critic_2_optimizer", learner.critic_2_optimizer);
          });
}

TEST_CASE("updates of SAC are PyTorch's") {
  const auto check = [](const Comparison& comparison, auto& run, const std::string&, int,
                        const std::string& prefix, const auto& report) {
    const auto& learner = *run.learner;
    comparison.check_loss(prefix + "critic_1_loss", report.metrics.critic_1_loss);
    comparison.check_loss(prefix + "critic_2_loss", report.metrics.critic_2_loss);
    comparison.check_loss(prefix + "actor_loss", report.metrics.actor_loss);
    const auto check_step = [&](const std::string& network, const auto& parameters,
                                const char* suffix, double tolerance) {
      comparison.check_step(prefix + network + suffix, network, parameters, kSacStride, tolerance);
    };
    check_step("actor", learner.actor, "", kSac.parameters);
    check_step("critic_1", learner.critic_1, "", kSac.parameters);
    check_step("critic_2", learner.critic_2, "", kSac.parameters);
    check_step("critic_1", learner.critic_1_target, "_target", kSac.targets);
    check_step("critic_2", learner.critic_2_target, "_target", kSac.targets);
    const auto check_moments = [&](const char* optimizer, const auto& state) {
      comparison.check_moments(prefix + optimizer, state, kSacStride);
    };
    check_moments("actor_optimizer", learner.actor_optimizer);
    check_moments("critic_1_optimizer", learner.critic_1_optimizer);
    check_moments("critic_2_optimizer", learner.critic_2_optimizer);
    check_moments("temperature_optimizer", learner.temperature_optimizer);
    comparison.check_array(prefix + "log_temperature", to_array(learner.log_temperature.values, 1),
                           kSac.parameters);
  };
  compare(golden::SacUpdates{}, kSac, check, [](const Comparison&, auto&, const std::string&) {});
}

TEST_CASE("an iteration's updates of PPO are PyTorch's") {
  const auto check = [](const Comparison& comparison, auto& run, const std::string&, int update,
                        const std::string& prefix, const auto& report) {
    const auto& learner = *run.learner;
    for (int i = 0; i < PpoMetrics::kCount; i++) {
      const std::string metric = PpoMetrics::info(i).name;
      const bool is_of_iteration = metric == "explained_variance";
      CHECK(is_known(report.metrics.get(i)) == (!is_of_iteration || update == 0));
      if (is_of_iteration && update > 0) continue;
      comparison.check_loss((is_of_iteration ? "" : prefix) + metric, report.metrics.get(i));
    }
    if (update % Ppo::kMinibatches<golden::PpoUpdates::Experiment> == 0) {
      const auto check_rows = [&](const char* array, const auto& values) {
        comparison.check_array(prefix + array, Array(std::begin(values), std::end(values)),
                               kPpo.targets);
      };
      check_rows("advantage", run.replay->advantage);
      check_rows("target", run.replay->target);
    }
    const auto check_network = [&](const char* network, const auto& parameters,
                                   const auto& optimizer) {
      comparison.check_step(prefix + network, network, parameters, kStride, kPpo.parameters);
      comparison.check_moments(prefix + network + "_optimizer", optimizer);
    };
    check_network("actor", learner.actor, learner.actor_optimizer);
    check_network("critic", learner.critic, learner.critic_optimizer);
    check_network("log_std", learner.log_std, learner.log_std_optimizer);
  };
  compare(golden::PpoUpdates{}, kPpo, check,
          [](const Comparison& comparison, auto& run, const std::string&) {
            const auto& learner = *run.learner;
            CHECK(learner.iteration == 1);
            CHECK(std::memcmp(learner.acting_log_std, learner.log_std.values,
                              sizeof learner.acting_log_std) == 0);
            const auto& normaliser = learner.normaliser;
            if (run.training.hyperparameters.normalise_obs == 0) {
              CHECK(normaliser.count == 0);
              return;
            }
            constexpr int kRows = kRolloutRows<golden::PpoUpdates::Experiment>;
            CHECK(normaliser.count == golden::PpoUpdates::kSeen + kRows);
            Array variance;
            for (const double squares : normaliser.sum_of_squares) {
              variance.push_back(squares / normaliser.count);
            }
            comparison.check_array("normaliser/mean", to_array(normaliser.mean, 3), kPpo.targets);
            comparison.check_array("normaliser/variance", variance, kPpo.targets);
          });
}
