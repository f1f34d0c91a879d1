// The TD3 updates that tests/goldens/td3.bin holds: a run of Pendulum-v1 whose first updates are
// computed by PyTorch too. Weights, batches and noise are those that the core draws; every third
// transition counts as terminal.
#pragma once

#include <string>

#include "golden_run.h"
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

// Names of the two runs: one with the paper's settings, one where noise and actions are clipped
// often, terms weigh differently and every update is one of the actor too.
constexpr const char* kCases[] = {"paper", "clipped"};

template <class E>
void configure(const std::string& name, typename E::Hyperparameters& hyperparameters) {
  hyperparameters.seed = 11;
  if (name == "clipped") {
    hyperparameters.policy_noise = 1.0f;
    hyperparameters.noise_clip = 0.97f;
    hyperparameters.policy_delay = 1;
    hyperparameters.gamma = 0.9f;
    hyperparameters.tau = 0.1f;
    hyperparameters.learning_rate = 0.003f;
    hyperparameters.adam_beta1 = 0.8f;
    hyperparameters.adam_beta2 = 0.95f;
  }
}

// Warms up, then makes kUpdates steps with an update each. Calls put(name, array) for every input
// of the updates, and after_update(update, report) after each.
template <class E, class Put, class AfterUpdate>
void run(training_run::Run<E>& run, const std::string& name, Put&& put,
         AfterUpdate&& after_update) {
  auto& training = run.training;
  configure<E>(name, training.hyperparameters);
  initialize(Generic{}, training);
  run.train(Generic{}, training.hyperparameters.learning_starts);
  golden::terminate_every_third(training.replay);
  const auto& h = training.hyperparameters;
  put("hyperparameters",
      golden::Array{h.learning_rate, h.adam_beta1, h.adam_beta2, h.adam_epsilon, h.gamma, h.tau,
                    h.policy_noise, h.noise_clip, static_cast<double>(h.policy_delay)});
  golden::put_networks(training.learner, put);
  for (int update = 0; update < kUpdates; update++) {
    const auto report = run.step(Generic{});
    golden::put_batch(update, training.scratch, put);
    after_update(update, report);
  }
}

}  // namespace td3_golden
