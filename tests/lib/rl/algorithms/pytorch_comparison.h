// Compares runs of golden_runs.h with what PyTorch computed (tests/goldens/generate*.py).
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "golden_runs.h"
#include "numeric_differentiation.h"

namespace golden {

// As in generate.py: of what is computed element by element a part is stored.
constexpr std::size_t kStride = 7, kInputStride = 35;

inline Array every(std::size_t stride, const Array& values) {
  Array result;
  for (std::size_t i = 0; i < values.size(); i += stride) result.push_back(values[i]);
  return result;
}

// How far results may be from PyTorch's, relative to the largest element: sums of up to 6,400
// products in another order. StepReport has its losses in float.
struct Tolerances {
  double inputs, losses, moments, parameters, targets;
};

class Comparison {
 public:
  // `prefix` is that of all the names in the file.
  Comparison(const std::string& file, const std::string& prefix, const Tolerances& tolerances)
      : tolerances_(tolerances), file_(file), prefix_(prefix) {}

  const Array& expected(const std::string& name) const { return file_[prefix_ + name]; }

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
    Array actual = every(stride, parameters_of(network)), result = expected(name);
    REQUIRE(result.size() == before.size());
    for (std::size_t i = 0; i < before.size(); i++) actual[i] -= before[i], result[i] -= before[i];
    CHECK(numeric::relative_difference(actual, result) <= tolerance);
  }
  template <class Optimizer>
  void check_moments(const std::string& name, const Optimizer& state,
                     std::size_t stride = kStride) const {
    check_array(name + "/first_moment", every(stride, parameters_of(state.first_moment)),
                tolerances_.moments);
    check_array(name + "/second_moment", every(stride, parameters_of(state.second_moment)),
                tolerances_.moments);
  }

 private:
  const Tolerances tolerances_;
  const File file_;
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

constexpr Tolerances kPpo{1e-12, 1e-7, 1e-13, 1e-13, 1e-14};  // targets and advantages

// After a minibatch of PPO: what it reports, advantages, parameters and moments.
template <class E>
void check_ppo_update(const Comparison& comparison, const training_run::Run<E>& run, int update,
                      const std::string& prefix, const StepReport<E>& report) {
  const auto& learner = *run.learner;
  for (int i = 0; i < PpoMetrics::kCount; i++) {
    const std::string metric = PpoMetrics::info(i).name;
    const bool is_of_iteration = metric == "explained_variance";
    const bool is_absent =
        (is_of_iteration && update > 0) || (metric == "action_std" && ppo::kDeviations<E> == 0);
    CHECK(is_known(report.metrics.get(i)) == !is_absent);
    if (is_absent) continue;
    comparison.check_loss((is_of_iteration ? "" : prefix) + metric, report.metrics.get(i));
  }
  if (update % kMinibatches<E> == 0) {
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
  if constexpr (ppo::kDeviations<E> > 0) {
    check_network("log_std", learner.log_std, learner.log_std_optimizer);
  }
}

}  // namespace golden
