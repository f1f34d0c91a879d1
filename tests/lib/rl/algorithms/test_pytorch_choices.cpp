// Test: -Og
// Whole updates of PPO that learns two choices, and of DQN that learns one, in double against
// PyTorch's (tests/goldens/generate_choices.py). The rules: test_categorical.cpp and test_dqn.cpp.
#include <doctest/doctest.h>

#include <string>

#include "pytorch_comparison.h"

using namespace rlt;
using golden::Array;
using golden::compare;
using golden::Comparison;

namespace {

constexpr golden::Tolerances kDqn{1e-12, 1e-7, 1e-13, 1e-13, 1e-13};

}  // namespace

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
