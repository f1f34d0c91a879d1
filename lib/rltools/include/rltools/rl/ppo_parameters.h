// Hyperparameters and metrics of PPO (algorithms/ppo.h).
#pragma once

#include "rltools/rl/hyperparameters.h"
#include "rltools/rl/metrics.h"

namespace rlt {

// Rewards are multiplied by reward_scale for learning alone: reported returns are those of the
// environment.
#define RLT_PPO_HYPERPARAMETERS(X)                                                                \
  RLT_RUN_HYPERPARAMETERS(X)                                                                      \
  X(float, learning_rate, 3e-4, 0, 1, "",                                                         \
    "Adam's learning rate, of actor and critic, at the start.")                                   \
  X(float, lr_end_factor, 1, 0, 1, "",                                                            \
    "Factor of the learning rate at the end; falls linearly to it.")                              \
  X(float, gamma, 0.99, 0, 1, "", "Discount of future rewards per step.")                         \
  X(float, gae_lambda, 0.95, 0, 1, "", "Decay of later steps' part in an advantage.")             \
  X(float, clip_range, 0.2, 0, 10, "", "How far a ratio of probabilities counts, from 1.")        \
  X(std::uint32_t, n_epochs, 4, 1, 1000, "", "Optimization epochs of an iteration.")              \
  X(float, vf_coef, 0.5, 0, 100, "", "Weight of the value's squared error in the loss.")          \
  X(float, ent_coef, 0, 0, 100, "", "Weight of the policy's entropy in the loss.")                \
  X(float, max_grad_norm, 1, 0, 1e9, "", "Largest norm of the gradient; 0: without bound.")       \
  X(float, log_std_init, 0, -10, 2, "", "Logarithm of the actions' deviation, at the start.")     \
  X(float, reward_scale, 1, 1e-6, 1e6, "", "Factor of rewards in learning.")                      \
  X(std::uint32_t, norm_obs, 1, 0, 1, "", "1: observations are normalized.")                      \
  X(std::uint32_t, normalize_advantage, 1, 0, 1, "",                                              \
    "1: a minibatch's advantages are normalized.")                                                \
  X(std::uint32_t, recompute_advantage, 0, 0, 1, "",                                              \
    "1: advantages are computed again in each epoch.")                                            \
  X(std::uint32_t, adaptive_lr, 1, 0, 1, "", "1: the learning rate follows the policy's change.") \
  X(float, target_kl, 0.008, 1e-9, 10, "nat", "KL divergence that adaptive_lr aims at.")          \
  RLT_ADAM_HYPERPARAMETERS(X)

RLT_DEFINE_HYPERPARAMETERS(PpoHyperparameters, RLT_PPO_HYPERPARAMETERS)

// Defaults of a Gymnasium task.
struct PpoTaskHyperparameters : PpoHyperparameters {
  PpoTaskHyperparameters() {
    steps = 1000000;
    eval_freq = 100000;
    learning_rate = 1e-3f;
    lr_end_factor = 0.1f;
    n_epochs = 10;
    adaptive_lr = 0;
    max_grad_norm = 0.5f;
    log_std_init = -0.7f;
  }
};

// Few numbers are learned best from wide actions and orthogonal first weights, more of them and
// choices from the others (docs/experiments.md, "Hopper and Swimmer by PPO").
struct PpoOrthogonalHyperparameters : PpoTaskHyperparameters {
  PpoOrthogonalHyperparameters() {
    learning_rate = 5e-4f;
    lr_end_factor = 0.5f;
    log_std_init = 0;
    adam_epsilon = 1e-5f;
  }
};

#define RLT_PPO_METRICS(X)                                                         \
  X(policy_loss, "Minus the clipped objective.")                                   \
  X(value_loss, "Mean squared error of the value against its target.")             \
  X(entropy, "Of the policy, in nats.")                                            \
  X(kl, "Divergence of the policy from the one that acted, in nats.")              \
  X(clip_fraction, "Share of the rows whose ratio is beyond the clip range.")      \
  X(explained_variance, "Share of the targets' variance that the value explains.") \
  X(learning_rate, "Adam's learning rate.")                                        \
  X(action_std, "Standard deviation of the actions, mean over the dimensions.")    \
  X(gradient_norm, "Of all parameters, before it is bounded.")

RLT_DEFINE_METRICS(PpoMetrics, RLT_PPO_METRICS)

}  // namespace rlt
