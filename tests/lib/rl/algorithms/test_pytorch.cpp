// Test: -Og
// Whole updates of TD3, SAC, XQC, PPO and DQN in double against PyTorch's
// (tests/goldens/generate*.py). The rules of the algorithms: test_off_policy.cpp, test_ppo.cpp,
// test_categorical.cpp and test_dqn.cpp.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "pytorch_comparison.h"

using namespace rlt;
using golden::Array;
using golden::compare;
using golden::Comparison;
using golden::kStride;
using golden::to_array;

namespace {

constexpr std::size_t kSacStride = 21;  // as in generate_sac.py
constexpr std::size_t kXqcStride = 11;  // as in generate_xqc.py
constexpr golden::Tolerances kTd3{1e-11, 1e-7, 1e-11, 1e-10, 1e-9};
constexpr golden::Tolerances kDqn{1e-12, 1e-7, 1e-13, 1e-13, 1e-13};
constexpr golden::Tolerances kSac{1e-11, 1e-7, 1e-13, 1e-12, 1e-10};
constexpr golden::Tolerances kXqc{1e-11, 1e-7, 1e-11, 1e-11, 5e-11};

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

TEST_CASE("updates of XQC are PyTorch's") {
  const auto check = [](const Comparison& comparison, auto& run, const std::string&, int update,
                        const std::string& prefix, const auto& report) {
    const auto& learner = *run.learner;
    const auto& h = run.training.hyperparameters;
    const int count = update + 1;
    comparison.check_loss(prefix + "critic_1_loss", report.metrics.critic_1_loss);
    comparison.check_loss(prefix + "critic_2_loss", report.metrics.critic_2_loss);
    comparison.check_loss(prefix + "reward_factor", report.metrics.reward_factor);
    const bool is_of_actor = count % static_cast<int>(h.policy_delay) == 0;
    CHECK(is_known(report.metrics.actor_loss) == is_of_actor);
    if (!is_of_actor) return;
    comparison.check_loss(prefix + "actor_loss", report.metrics.actor_loss);
    const auto check_step = [&](const std::string& network, const auto& parameters,
                                const char* suffix, double tolerance) {
      comparison.check_step(prefix + network + suffix, network, parameters, kXqcStride, tolerance);
    };
    const auto check_statistics = [&](const std::string& network, const auto& statistics) {
      constexpr int kCount = sizeof(statistics.mean) / sizeof(statistics.mean[0]);
      comparison.check_array(prefix + network + "_mean", to_array(statistics.mean, kCount),
                             kXqc.targets);
      comparison.check_array(prefix + network + "_variance", to_array(statistics.variance, kCount),
                             kXqc.targets);
    };
    const auto check_moments = [&](const std::string& network, const auto& state) {
      comparison.check_moments(prefix + network + "_optimizer", state, kXqcStride);
    };
    check_step("actor", learner.actor, "", kXqc.parameters);
    check_statistics("actor", learner.actor_statistics);
    check_moments("actor", learner.actor_optimizer);
    for (const int index : {0, 1}) {
      const auto& critic = learner.critic[index];
      const std::string name = index == 0 ? "critic_1" : "critic_2";
      check_step(name, critic.network, "", kXqc.parameters);
      check_step(name, critic.target, "_target", kXqc.targets);
      check_statistics(name, critic.statistics);
      check_moments(name, critic.optimizer);
    }
    check_moments("temperature", learner.temperature_optimizer);
    comparison.check_array(prefix + "log_temperature", to_array(learner.log_temperature.values, 1),
                           kXqc.parameters);
  };
  compare(golden::XqcUpdates{}, kXqc, check, [](const Comparison&, auto&, const std::string&) {});
}

TEST_CASE("an iteration's updates of PPO are PyTorch's") {
  const auto check = [](const Comparison& comparison, auto& run, const std::string&, int update,
                        const std::string& prefix, const auto& report) {
    golden::check_ppo_update(comparison, run, update, prefix, report);
  };
  compare(golden::PpoUpdates{}, golden::kPpo, check,
          [](const Comparison& comparison, auto& run, const std::string&) {
            const auto& learner = *run.learner;
            CHECK(learner.iteration == 1);
            CHECK(std::memcmp(learner.acting_log_std, learner.log_std.values,
                              sizeof learner.acting_log_std) == 0);
            const auto& normalizer = learner.normalizer;
            if (run.training.hyperparameters.norm_obs == 0) {
              CHECK(normalizer.count == 0);
              return;
            }
            constexpr int kRows = kRolloutRows<golden::PpoUpdates::Experiment>;
            CHECK(normalizer.count == golden::PpoUpdates::kSeen + kRows);
            Array variance;
            for (const double squares : normalizer.sum_of_squares) {
              variance.push_back(squares / normalizer.count);
            }
            comparison.check_array("normalizer/mean", to_array(normalizer.mean, 3),
                                   golden::kPpo.targets);
            comparison.check_array("normalizer/variance", variance, golden::kPpo.targets);
          });
}

TEST_CASE("an iteration's updates of PPO of two choices are PyTorch's") {
  const auto check = [](const Comparison& comparison, auto& run, const std::string&, int update,
                        const std::string& prefix, const auto& report) {
    golden::check_ppo_update(comparison, run, update, prefix, report);
  };
  const auto check_logits = [](const Comparison& comparison, auto& run, const std::string&) {
    // Of what was forbidden the core keeps that, in place of the logit.
    Array allowed, logits = comparison.expected("logits");
    const auto& kept = run.replay->mean;
    REQUIRE(logits.size() == std::size(kept));
    for (std::size_t i = 0; i < logits.size(); i++) {
      allowed.push_back(kept[i] > kMaskedLogit ? 1 : 0);
      if (allowed[i] == 0) logits[i] = kMaskedLogit;
    }
    CHECK(allowed == comparison.expected("allowed"));
    for (std::size_t i = 0; i < logits.size(); i++) {
      CHECK(kept[i] == doctest::Approx(logits[i]).epsilon(golden::kPpo.targets));
    }
  };
  compare(golden::ChoicesPpoUpdates{}, golden::kPpo, check, check_logits);
}

TEST_CASE("updates of DQN are PyTorch's") {
  const auto check = [](const Comparison& comparison, auto& run, const std::string&, int,
                        const std::string& prefix, const auto& report) {
    const auto& learner = *run.learner;
    comparison.check_loss(prefix + "loss", report.metrics.loss);
    comparison.check_loss(prefix + "q_value", report.metrics.q_value);
    comparison.check_step(prefix + "critic", "critic", learner.critic, golden::kStride,
                          kDqn.parameters);
    comparison.check_step(prefix + "critic_target", "critic_target", learner.critic_target,
                          golden::kStride, kDqn.targets);
    comparison.check_moments(prefix + "critic_optimizer", learner.critic_optimizer);
  };
  compare(golden::DqnUpdates{}, kDqn, check, [](const Comparison&, auto&, const std::string&) {});
}
