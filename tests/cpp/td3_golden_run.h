// The TD3 updates that tests/goldens/td3.bin holds: a run of Pendulum-v1 whose first updates are computed by PyTorch
// too. Weights, batches and noise are those that the core draws; every third transition counts as terminal.
#pragma once

#include <functional>
#include <string>

#include "golden_file.h"
#include "pendulum_td3.h"
#include "training_run.h"

namespace td3_golden {

using namespace rlt;

// PendulumTd3 in numbers of another type; the random numbers are the same.
template <class T>
struct Experiment : PendulumTd3 {
  using Scalar = T;
  using Environment = Pendulum<T>;
  using Actor = Mlp<T, PendulumTd3::Actor::Shape, Activation::relu, Activation::tanh>;
  using Critic = Mlp<T, PendulumTd3::Critic::Shape, Activation::relu, Activation::identity>;
};

constexpr int kUpdates = 4;

// Names of the two runs: one with the paper's settings, one where noise and actions are clipped often, terms weigh
// differently and every update is one of the actor too.
constexpr const char* kCases[] = {"paper", "clipped"};

template <class E>
void configure(const std::string& name, typename E::Hyperparameters& hyperparameters) {
  hyperparameters.seed = 11;
  if (name == "clipped") {
    hyperparameters.target_std = 1.0f;
    hyperparameters.target_clip = 0.97f;
    hyperparameters.policy_delay = 1;
    hyperparameters.discount = 0.9f;
    hyperparameters.polyak = 0.1f;
    hyperparameters.learning_rate = 0.003f;
    hyperparameters.adam_beta1 = 0.8f;
    hyperparameters.adam_beta2 = 0.95f;
  }
}

template <class T>
golden::Array to_array(const T* values, int count) {
  return golden::Array(values, values + count);
}

// Warms up, then makes kUpdates steps with an update each. Calls put(name, array) for every input of the updates, and
// after_update(update, report) after each.
template <class E, class Put>
void run(training_run::Run<E>& run, const std::string& name, Put&& put,
         const std::function<void(int, const StepReport&)>& after_update) {
  auto& training = run.training;
  configure<E>(name, training.hyperparameters);
  initialize(Generic{}, training);
  run.train(Generic{}, training.hyperparameters.warmup_steps);
  auto& replay = training.replay;
  for (std::uint32_t slot = 0; slot < replay.used(); slot += 3) {
    if (replay.flags[slot] & Replay<E>::kTransition) replay.flags[slot] |= Replay<E>::kTerminated;
  }
  const auto& h = training.hyperparameters;
  put("hyperparameters",
      golden::Array{h.learning_rate, h.adam_beta1, h.adam_beta2, h.adam_epsilon, h.discount,
                    h.polyak, h.target_std, h.target_clip, static_cast<double>(h.policy_delay)});
  const auto& learner = training.learner;
  put("actor", to_array(learner.actor.values, E::Actor::kParameterCount));
  put("critic_1", to_array(learner.critic_1.values, E::Critic::kParameterCount));
  put("critic_2", to_array(learner.critic_2.values, E::Critic::kParameterCount));
  for (int update = 0; update < kUpdates; update++) {
    const StepReport report = run.step(Generic{});
    const auto& scratch = training.scratch;
    const std::string prefix = std::to_string(update) + "/";
    put(prefix + "observation_action",
        to_array(scratch.observation_action.values, E::kBatchSize * 4));
    put(prefix + "next_observation", to_array(scratch.next_observation.values, E::kBatchSize * 3));
    put(prefix + "target_noise", to_array(scratch.target_noise.values, E::kBatchSize));
    put(prefix + "reward", to_array(scratch.reward.values, E::kBatchSize));
    put(prefix + "not_terminated", to_array(scratch.not_terminated.values, E::kBatchSize));
    after_update(update, report);
  }
}

}  // namespace td3_golden
