// The PPO updates that tests/goldens/ppo.bin holds: an iteration of the point's whose minibatches
// are computed by PyTorch too. Weights, rollout and the order of its rows are those that the core
// draws; some rows are terminal and some truncated.
#pragma once

#include <string>
#include <vector>

#include "golden_run.h"
#include "point_ppo.h"
#include "training_run.h"

namespace ppo_golden {

using namespace rlt;

template <class T>
using Experiment = PointPpoOf<T>;

constexpr int kEpochs = 2;
constexpr int kUpdates = kEpochs * Ppo::kMinibatches<Experiment<double>>;
constexpr int kSeen = 32;  // observations that the normaliser holds before

// Names of the runs: one with the defaults; one with nothing like them, where most rows are clipped
// and the gradient is bounded; one whose steps are so large that the step size is taken back.
constexpr const char* kCases[] = {"default", "other", "steep"};

template <class E>
void configure(const std::string& name, typename E::Hyperparameters& h) {
  h.seed = 13;
  h.epochs = kEpochs;
  if (name == "steep") {
    h.learning_rate = 0.01f;
    h.kl_target = 0.001f;
    h.max_grad_norm = 0;
    h.recompute_adv = 1;
  }
  if (name == "other") {
    h.learning_rate = 0.002f;
    h.gamma = 0.9f;
    h.gae_lambda = 0.8f;
    h.clip_range = 0.01f;
    h.value_weight = 0.9f;
    h.entropy_weight = 0.02f;
    h.max_grad_norm = 0.1f;
    h.initial_log_std = -0.7f;
    h.reward_scale = 0.3f;
    h.normalise_obs = 0;
    h.normalise_adv = 0;
    h.recompute_adv = 1;
    h.adapt_rate = 0;
    h.adam_beta1 = 0.8f;
    h.adam_beta2 = 0.95f;
    h.adam_epsilon = 1e-5f;
  }
}

// Observations of another run for the normaliser, where it is to have any.
template <class E>
void see_observations(Training<E>& training, std::vector<typename E::Scalar>& seen) {
  using T = typename E::Scalar;
  seen.assign(kSeen * 3, T(0));
  fill_uniform<T>(Generic{}, {3, Purpose::shuffle, 1}, seen.data(), kSeen * 3, T(-1), T(1));
  for (int row = 0; row < kSeen; row++) seen[row * 3 + 1] = T(48) + T(6) * seen[row * 3 + 1];
  if (training.hyperparameters.normalise_obs != 0) {
    take_in(training.learner.normaliser, seen.data(), kSeen);
  }
}

template <class E, class Put>
void put_rollout(const Training<E>& training, Put&& put) {
  const auto& rollout = training.replay;
  const auto put_all = [&](const char* name, const auto& values) {
    put(name, golden::Array(std::begin(values), std::end(values)));
  };
  put_all("observation", rollout.observation);
  put_all("action", rollout.action);
  put_all("mean", rollout.mean);
  put_all("reward", rollout.reward);
  put_all("ending", rollout.ending);
  put_all("present_observation", rollout.present_observation);
  put_all("final_observation", rollout.final_observation);
}

// A rollout, then kUpdates minibatches. Calls put(name, array) for every input of the updates, and
// after_update(update, report) after each.
template <class E, class Put, class AfterUpdate>
void run(training_run::Run<E>& run, const std::string& name, Put&& put,
         AfterUpdate&& after_update) {
  auto& training = run.training;
  auto& learner = training.learner;
  configure<E>(name, training.hyperparameters);
  initialize(Generic{}, training);
  std::vector<typename E::Scalar> seen;
  see_observations(training, seen);
  run.train(Generic{}, E::kRolloutSteps);
  const auto& h = training.hyperparameters;
  const auto number = [](std::uint32_t value) { return static_cast<double>(value); };
  put("hyperparameters",
      golden::Array{h.learning_rate, h.adam_beta1, h.adam_beta2, h.adam_epsilon, h.gamma,
                    h.gae_lambda, h.clip_range, h.value_weight, h.entropy_weight, h.max_grad_norm,
                    h.reward_scale, h.kl_target, number(h.normalise_obs), number(h.normalise_adv),
                    number(h.recompute_adv), number(h.adapt_rate)});
  put("actor", golden::to_array(learner.actor.values, E::Actor::kParameterCount));
  put("critic", golden::to_array(learner.critic.values, E::Critic::kParameterCount));
  put("log_std", golden::to_array(learner.log_std.values, 2));
  put("seen", golden::Array(seen.begin(), seen.end()));
  put_rollout(training, put);
  for (int update = 0; update < kUpdates; update++) {
    const auto report = run.step(Generic{});
    put(std::to_string(update) + "/row",
        golden::Array(std::begin(training.scratch.row), std::end(training.scratch.row)));
    after_update(update, report);
  }
}

}  // namespace ppo_golden
