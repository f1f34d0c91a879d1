// The SAC updates that tests/goldens/sac.bin holds: a run of Pendulum-v1 whose first updates are
// computed by PyTorch too. Weights, batches and noise are those that the core draws; every third
// transition counts as terminal.
#pragma once

#include <string>

#include "golden_run.h"
#include "pendulum_sac.h"
#include "training_run.h"

namespace sac_golden {

using namespace rlt;

// PendulumSac in numbers of another type; the random numbers are the same.
template <class T>
struct Experiment : PendulumSac {
  using Scalar = T;
  using Environment = Pendulum<T>;
  using Actor = Mlp<T, PendulumSac::Actor::Shape, Activation::relu, Activation::identity>;
  using Critic = Mlp<T, PendulumSac::Critic::Shape, Activation::relu, Activation::identity>;
};

constexpr int kUpdates = 2;

// Names of the two runs: one with the defaults, one where log_std often exceeds its bounds and
// terms weigh differently.
constexpr const char* kCases[] = {"default", "bounded"};

template <class E>
void configure(const std::string& name, Training<E>& training) {
  auto& h = training.hyperparameters;
  h.seed = 12;
  initialize(Generic{}, training);
  if (name == "bounded") {
    h.target_entropy = -0.25f;
    h.alpha = 0.2f;
    h.gamma = 0.9f;
    h.tau = 0.1f;
    h.learning_rate = 0.003f;
    h.adam_beta1 = 0.8f;
    h.adam_beta2 = 0.95f;
    initialize(Generic{}, training);
    auto& actor = training.learner.actor;
    for (int in = 0; in < 64; in++) actor.weights(2)[2 * in + 1] *= 128;
    actor.bias(2)[1] = -30;
  }
}

// Warms up, then makes kUpdates steps with an update each. Calls put(name, array) for every input
// of the updates, and after_update(update, report) after each.
template <class E, class Put, class AfterUpdate>
void run(training_run::Run<E>& run, const std::string& name, Put&& put,
         AfterUpdate&& after_update) {
  auto& training = run.training;
  configure(name, training);
  run.train(Generic{}, training.hyperparameters.learning_starts);
  golden::terminate_every_third(training.replay);
  const auto& h = training.hyperparameters;
  put("hyperparameters", golden::Array{h.learning_rate, h.adam_beta1, h.adam_beta2, h.adam_epsilon,
                                       h.gamma, h.tau, h.alpha, h.target_entropy});
  golden::put_networks(training.learner, put);
  for (int update = 0; update < kUpdates; update++) {
    const auto report = run.step(Generic{});
    golden::put_batch(update, training.scratch, put);
    put(std::to_string(update) + "/policy_noise", golden::to_array(training.scratch.policy_noise));
    after_update(update, report);
  }
}

}  // namespace sac_golden
