// The updates that tests/goldens/{td3,sac,xqc,ppo,ppo_choices,dqn}.bin hold: runs whose updates
// PyTorch computes too, for the tests that compare and for the program that hands PyTorch the
// inputs. Weights, batches, noise and the order of a rollout's rows are those that the core draws.
#pragma once

#include <string>
#include <vector>

#include "choosing_point.h"
#include "golden_file.h"
#include "pendulum_sac.h"
#include "pendulum_td3.h"
#include "pendulum_xqc.h"
#include "point_experiments.h"
#include "training_run.h"

namespace golden {

using namespace rlt;

// What the updates of an algorithm are computed from: an experiment in double, and the names of its
// runs with their hyperparameters.

struct Td3Updates {
  static constexpr const char* kName = "td3";
  struct Experiment : PendulumTd3 {
    using Scalar = double;
    using Environment = Pendulum<double>;
    using Actor = Mlp<double, PendulumTd3::Actor::Shape, Activation::relu, Activation::tanh>;
    using Critic = Mlp<double, PendulumTd3::Critic::Shape, Activation::relu, Activation::identity>;
  };
  static constexpr int kUpdates = 4;
  // The paper's settings; and noise and actions that are clipped often, terms that weigh otherwise,
  // every update one of the actor too.
  static constexpr const char* kCases[] = {"paper", "clipped"};

  static void begin(const std::string& name, Training<Experiment>& training) {
    auto& h = training.hyperparameters;
    h.seed = 11;
    if (name == "clipped") {
      h.target_policy_noise = 1.0f;
      h.target_noise_clip = 0.97f;
      h.policy_delay = 1;
      h.gamma = 0.9f;
      h.tau = 0.1f;
      h.learning_rate = 0.003f;
      h.adam_beta1 = 0.8f;
      h.adam_beta2 = 0.95f;
    }
    initialize(Generic{}, training);
  }
  static Array hyperparameters(const Td3Hyperparameters& h) {
    return {h.learning_rate,
            h.adam_beta1,
            h.adam_beta2,
            h.adam_epsilon,
            h.gamma,
            h.tau,
            h.target_policy_noise,
            h.target_noise_clip,
            static_cast<double>(h.policy_delay)};
  }
};

struct SacUpdates {
  static constexpr const char* kName = "sac";
  struct Experiment : PendulumSac {
    using Scalar = double;
    using Environment = Pendulum<double>;
    using Actor = Mlp<double, PendulumSac::Actor::Shape, Activation::relu, Activation::identity>;
    using Critic = Mlp<double, PendulumSac::Critic::Shape, Activation::relu, Activation::identity>;
  };
  static constexpr int kUpdates = 2;
  // The defaults; and a log_std that often exceeds its bounds, terms that weigh otherwise.
  static constexpr const char* kCases[] = {"default", "bounded"};

  static void begin(const std::string& name, Training<Experiment>& training) {
    auto& h = training.hyperparameters;
    h.seed = 12;
    if (name == "bounded") {
      h.target_entropy = -0.25f;
      h.alpha = 0.2f;
      h.gamma = 0.9f;
      h.tau = 0.1f;
      h.learning_rate = 0.003f;
      h.adam_beta1 = 0.8f;
      h.adam_beta2 = 0.95f;
    }
    initialize(Generic{}, training);
    if (name == "bounded") {
      auto& actor = training.learner.actor;
      for (int in = 0; in < 64; in++) actor.weights(2)[2 * in + 1] *= 128;
      actor.bias(2)[1] = -30;
    }
  }
  static Array hyperparameters(const SacHyperparameters& h) {
    return {h.learning_rate, h.adam_beta1, h.adam_beta2, h.adam_epsilon,
            h.gamma,         h.tau,        h.alpha,      h.target_entropy};
  }
};

struct XqcUpdates {
  static constexpr const char* kName = "xqc";
  struct Experiment : PendulumXqc {
    using Scalar = double;
    using Environment = Pendulum<double>;
    using Actor = Xqc::TaskActor<Environment, 20, 13>;
    using Critic = Xqc::TaskCritic<Environment, 20, 13>;
    static constexpr int kEpisodeSteps = 30, kBatchSize = 32, kReplayCapacity = 200;
  };
  static constexpr int kUpdates = 6;
  // The defaults; and terms that weigh otherwise, targets beyond the bins, two updates of
  // everything after each step, averages over the last updates alone.
  static constexpr const char* kCases[] = {"default", "other"};

  static void begin(const std::string& name, Training<Experiment>& training) {
    auto& h = training.hyperparameters;
    h.seed = 15;
    h.steps = 200;
    h.learning_starts = 100;
    h.policy_delay = 3;
    h.gradient_steps = 1;
    h.learning_rate = 3e-4f;
    h.tau = 0.005f;
    if (name == "other") {
      h.policy_delay = 1;
      h.gradient_steps = 2;
      h.lr_end_factor = 0.5f;
      h.target_entropy = -0.25f;
      h.alpha = 2;
      h.gamma = 0.9f;
      h.tau = 0.1f;
      h.learning_rate = 0.003f;
      h.adam_beta1 = 0.8f;
      h.adam_beta2 = 0.95f;
      h.adam_epsilon = 1e-5f;
    }
    initialize(Generic{}, training);
    if (name == "other") training.learner.progress.updates = 120;
  }
  static Array hyperparameters(const XqcHyperparameters& h, std::uint32_t updates) {
    const auto number = [](std::uint32_t value) { return static_cast<double>(value); };
    return {h.learning_rate,
            h.adam_beta1,
            h.adam_beta2,
            h.adam_epsilon,
            h.gamma,
            h.tau,
            h.alpha,
            h.target_entropy,
            h.lr_end_factor,
            number(h.policy_delay),
            number(h.gradient_steps),
            number(h.steps),
            number(h.learning_starts),
            number(updates)};
  }
};

// An iteration of a point's whose minibatches PyTorch computes; some rows are terminal and some
// truncated.
template <class PointExperiment>
struct PpoUpdatesOf {
  using Experiment = PointExperiment;
  static constexpr const char* kName =
      kIsDiscrete<typename Experiment::Environment> ? "ppo_choices" : "ppo";
  static constexpr int kEpochs = 2, kUpdates = kEpochs * kMinibatches<Experiment>;
  static constexpr int kSeen = 32;  // observations that the normalizer holds before
  // The defaults; nothing like them, where most rows are clipped and the gradient is bounded; steps
  // so large that the step size is taken back.
  static constexpr const char* kCases[] = {"default", "other", "steep"};

  static void configure(const std::string& name, PpoHyperparameters& h) {
    h.seed = 13;
    h.n_epochs = kEpochs;
    if (name == "steep") {
      h.learning_rate = 0.01f;
      h.target_kl = 0.001f;
      h.max_grad_norm = 0;
      h.recompute_advantage = 1;
    }
    if (name == "other") {
      h.learning_rate = 0.002f;
      h.gamma = 0.9f;
      h.gae_lambda = 0.8f;
      h.clip_range = 0.01f;
      h.vf_coef = 0.9f;
      h.ent_coef = 0.02f;
      h.max_grad_norm = 0.1f;
      h.log_std_init = -0.7f;
      h.reward_scale = 0.3f;
      h.norm_obs = 0;
      h.normalize_advantage = 0;
      h.recompute_advantage = 1;
      h.adaptive_lr = 0;
      h.adam_beta1 = 0.8f;
      h.adam_beta2 = 0.95f;
      h.adam_epsilon = 1e-5f;
    }
  }
  static Array hyperparameters(const PpoHyperparameters& h) {
    const auto number = [](std::uint32_t value) { return static_cast<double>(value); };
    return {h.learning_rate,
            h.adam_beta1,
            h.adam_beta2,
            h.adam_epsilon,
            h.gamma,
            h.gae_lambda,
            h.clip_range,
            h.vf_coef,
            h.ent_coef,
            h.max_grad_norm,
            h.reward_scale,
            h.target_kl,
            number(h.norm_obs),
            number(h.normalize_advantage),
            number(h.recompute_advantage),
            number(h.adaptive_lr)};
  }
};

// Of actions that are numbers, and of two choices, of which some are forbidden at times.
using PpoUpdates = PpoUpdatesOf<PointPpoOf<double>>;
using ChoicesPpoUpdates = PpoUpdatesOf<TwoChoicesPpoOf<double>>;

struct DqnUpdates {
  static constexpr const char* kName = "dqn";
  using Experiment = OneChoiceDqnOf<double>;
  static constexpr int kUpdates = 6;
  // The trained network chooses in the next state; the target network does, and terms weigh
  // otherwise.
  static constexpr const char* kCases[] = {"double", "plain"};

  static void begin(const std::string& name, Training<Experiment>& training) {
    auto& h = training.hyperparameters;
    h.seed = 14;
    h.steps = 200;
    h.learning_starts = 100;
    h.train_freq = 1;
    h.target_update_interval = 2;
    h.tau = 0.5f;
    if (name == "plain") {
      h.double_dqn = 0;
      h.gamma = 0.9f;
      h.reward_scale = 1.75f;
      h.tau = 0.1f;
      h.target_update_interval = 1;
      h.learning_rate = 0.03f;
      h.lr_end_factor = 0.25f;
      h.adam_beta1 = 0.8f;
      h.adam_beta2 = 0.95f;
      h.adam_epsilon = 1e-5f;
    }
    initialize(Generic{}, training);
    // As far apart as they ever are.
    initialize_kaiming(Generic{}, training.learner.critic_target, h.seed, 1);
  }
  static Array hyperparameters(const DqnHyperparameters& h) {
    const auto number = [](std::uint32_t value) { return static_cast<double>(value); };
    return {h.learning_rate,
            h.adam_beta1,
            h.adam_beta2,
            h.adam_epsilon,
            h.gamma,
            h.tau,
            number(h.target_update_interval),
            number(h.double_dqn),
            h.lr_end_factor,
            number(h.steps),
            number(h.learning_starts),
            h.reward_scale};
  }
};

template <class T>
Array to_array(const T* values, int count) {
  return Array(values, values + count);
}
template <class Matrix>
Array to_array(const Matrix& matrix) {
  return to_array(matrix.data(), Matrix::kRows * Matrix::kColumns);
}
template <class Network>
Array parameters_of(const Network& network) {
  return to_array(network.values, Network::kParameterCount);
}

// Runs of an algorithm: put(name, array) for every input of its updates, and
// after_update(update, report) after each.

// The pendulum never terminates: here every third transition counts as terminal.
template <class Buffer>
void terminate_some(Buffer& replay) {
  for (std::uint32_t slot = 0; slot < replay.size; slot += 3) {
    if (replay.flags[slot] & replay.kTransition) replay.flags[slot] |= replay.kTerminated;
  }
}

// Warms up, then makes kUpdates steps with an update each.
template <class Updates, class Put, class AfterUpdate>
void run(Updates, training_run::Run<typename Updates::Experiment>& run, const std::string& name,
         Put&& put, AfterUpdate&& after_update) {
  auto& training = run.training;
  const auto& scratch = training.scratch;
  Updates::begin(name, training);
  run.train(Generic{}, training.hyperparameters.learning_starts);
  terminate_some(training.replay);
  put("hyperparameters", Updates::hyperparameters(training.hyperparameters));
  put("actor", parameters_of(training.learner.actor));
  put("critic_1", parameters_of(training.learner.critic_1));
  put("critic_2", parameters_of(training.learner.critic_2));
  for (int update = 0; update < Updates::kUpdates; update++) {
    const auto report = run.step(Generic{});
    const std::string prefix = std::to_string(update) + "/";
    put(prefix + "observation_action", to_array(scratch.observation_action));
    put(prefix + "next_observation", to_array(scratch.next_observation));
    put(prefix + "target_noise", to_array(scratch.target_noise));
    put(prefix + "reward", to_array(scratch.reward));
    put(prefix + "not_terminated", to_array(scratch.not_terminated));
    if constexpr (std::is_same_v<Updates, SacUpdates>) {
      put(prefix + "policy_noise", to_array(scratch.policy_noise));
    }
    after_update(update, report);
  }
}

// All transitions' rewards so far, and where an episode has ended.
template <class Buffer, class Put>
void put_rewards(const Buffer& replay, Put&& put) {
  Array reward, ended;
  for (std::uint32_t slot = 0; slot < replay.position; slot++) {
    if (!(replay.flags[slot] & replay.kTransition)) {
      ended.back() = 1;
      continue;
    }
    reward.push_back(replay.reward[slot]);
    ended.push_back(0);
  }
  put("reward", reward);
  put("ended", ended);
}

// Warms up, then makes kUpdates updates, several after a step. A step leaves the batch and the
// noise of its last update: they are drawn again.
template <class Put, class AfterUpdate>
void run(XqcUpdates, training_run::Run<XqcUpdates::Experiment>& run, const std::string& name,
         Put&& put, AfterUpdate&& after_update) {
  auto& training = run.training;
  auto& scratch = training.scratch;
  const auto& h = training.hyperparameters;
  auto& updates = training.learner.progress.updates;
  XqcUpdates::begin(name, training);
  run.train(Generic{}, h.learning_starts);
  terminate_some(training.replay);
  put("hyperparameters", XqcUpdates::hyperparameters(h, updates));
  put("actor", parameters_of(training.learner.actor));
  put("critic_1", parameters_of(training.learner.critic[0].network));
  put("critic_2", parameters_of(training.learner.critic[1].network));
  const auto put_noise = [&](const std::string& array, Purpose purpose, std::uint32_t update) {
    fill_standard_normal(Generic{}, {h.seed, purpose, update}, scratch.noise.data(),
                         scratch.kBatch * scratch.kAction);
    put(array, to_array(scratch.noise));
  };
  int update = 0;
  while (update < XqcUpdates::kUpdates) {
    const std::uint32_t before = updates;
    const auto report = run.step(Generic{});
    const std::uint32_t after = updates;
    for (updates = before; updates < after; updates++) {
      const std::string prefix = std::to_string(update++) + "/";
      gather_batch(Generic{}, training);
      put(prefix + "observation_action",
          to_array(scratch.observation_action.data(),
                   scratch.kBatch * (scratch.kObservation + scratch.kAction)));
      put(prefix + "next_observation", to_array(scratch.next_observation));
      put(prefix + "reward", to_array(scratch.reward));
      put(prefix + "not_terminated", to_array(scratch.not_terminated));
      put_noise(prefix + "target_noise", Purpose::target_noise, updates);
      put_noise(prefix + "policy_noise", Purpose::policy_sample, updates + 1);
    }
    after_update(update - 1, report);
  }
  put_rewards(training.replay, put);
}

// Observations of another run for the normalizer, where it is to have any.
template <class E>
void see_observations(Training<E>& training, std::vector<typename E::Scalar>& seen) {
  using T = typename E::Scalar;
  constexpr int kDim = E::Environment::kObservationDim, kCount = PpoUpdates::kSeen * kDim;
  seen.assign(kCount, T(0));
  fill_uniform<T>(Generic{}, {3, Purpose::shuffle, 1}, seen.data(), kCount, T(-1), T(1));
  for (int height = 1; height < kCount; height += kDim) seen[height] = T(48) + T(6) * seen[height];
  if (training.hyperparameters.norm_obs != 0) {
    update_moments(Generic{}, training.learner.normalizer, seen.data(), PpoUpdates::kSeen);
  }
}

template <class E, class Put>
void put_rollout(const Training<E>& training, Put&& put) {
  const auto& rollout = training.replay;
  const auto put_all = [&](const char* name, const auto& values) {
    put(name, Array(std::begin(values), std::end(values)));
  };
  put_all("observation", rollout.observation);
  put_all("action", rollout.action);
  put_all("mean", rollout.mean);
  put_all("reward", rollout.reward);
  put_all("ending", rollout.done);
  put_all("current_observation", rollout.current_observation);
  put_all("final_observation", rollout.final_observation);
}

// A rollout, then kUpdates minibatches.
template <class E, class Put, class AfterUpdate>
void run(PpoUpdatesOf<E>, training_run::Run<E>& run, const std::string& name, Put&& put,
         AfterUpdate&& after_update) {
  using Updates = PpoUpdatesOf<E>;
  auto& training = run.training;
  Updates::configure(name, training.hyperparameters);
  initialize(Generic{}, training);
  std::vector<double> seen;
  see_observations(training, seen);
  run.train(Generic{}, E::kRolloutSteps);
  put("hyperparameters", Updates::hyperparameters(training.hyperparameters));
  put("actor", parameters_of(training.learner.actor));
  put("critic", parameters_of(training.learner.critic));
  if (ppo::kDeviations<E> > 0) {
    put("log_std", to_array(training.learner.log_std.values, ppo::kDeviations<E>));
  }
  put("seen", seen);
  put_rollout(training, put);
  for (int update = 0; update < Updates::kUpdates; update++) {
    const auto report = run.step(Generic{});
    put(std::to_string(update) + "/row",
        Array(std::begin(training.scratch.row), std::end(training.scratch.row)));
    after_update(update, report);
  }
}

template <class Put, class AfterUpdate>
void run(DqnUpdates, training_run::Run<DqnUpdates::Experiment>& run, const std::string& name,
         Put&& put, AfterUpdate&& after_update) {
  auto& training = run.training;
  const auto& scratch = training.scratch;
  DqnUpdates::begin(name, training);
  run.train(Generic{}, training.hyperparameters.learning_starts);
  put("hyperparameters", DqnUpdates::hyperparameters(training.hyperparameters));
  put("critic", parameters_of(training.learner.critic));
  put("critic_target", parameters_of(training.learner.critic_target));
  for (int update = 0; update < DqnUpdates::kUpdates; update++) {
    const auto report = run.step(Generic{});
    const std::string prefix = std::to_string(update) + "/";
    Array action;
    for (int row = 0; row < scratch.kBatch; row++) {
      action.push_back(scratch.observation_action(row, scratch.kObservation));
    }
    put(prefix + "observation", to_array(scratch.observation));
    put(prefix + "action", action);
    put(prefix + "next_observation", to_array(scratch.next_observation));
    put(prefix + "reward", to_array(scratch.reward));
    put(prefix + "not_terminated", to_array(scratch.not_terminated));
    after_update(update, report);
  }
}

}  // namespace golden
