// PPO's loss of the policy, of a tile of a minibatch: of actions that are numbers, drawn from a
// Gaussian (clipped_objective.h), and of choices (categorical.h).
#pragma once

#include <type_traits>

#include "rltools/rl/categorical.h"
#include "rltools/rl/clipped_objective.h"
#include "rltools/rl/training.h"

namespace rlt::ppo {

// Number of actions that have a deviation: none of those that are choices.
template <class E>
constexpr int kDeviations = kIsDiscrete<typename E::Environment> ? 0 : E::Environment::kActionDim;

// The part that all rows have in common: the change of the deviations; of choices nothing.
struct ChoicesChange {};
template <class E>
using PolicyChange = std::conditional_t<kDeviations<E> == 0, ChoicesChange,
                                        GaussianChange<typename E::Scalar, kDeviations<E>>>;

template <class E>
PolicyChange<E> policy_change(const Training<E>& training) {
  if constexpr (kDeviations<E> == 0) {
    return {};
  } else {
    return {training.learner.acting_log_std, training.learner.log_std.values};
  }
}

// Sums over the rows of a minibatch.
template <class T>
struct Sums {
  T policy_loss, value_loss, kl, entropy;
  int clipped;
};

// Compute the policy's loss of a tile that begins at row `first` of the minibatch, from
// scratch.tile_mean: scratch.mean_gradient, and its part of the gradient of log_std.
template <class E, class T, int Action>
void policy_loss_of_tile(Generic, Training<E>& training, const GaussianChange<T, Action>& of,
                         int first, Sums<T>& sums) {
  constexpr int kAction = Action;
  constexpr int kRows = rows_at_once(E::kTileRows);
  const T clip = static_cast<T>(training.hyperparameters.clip_range);
  const auto& rollout = training.replay;
  auto& scratch = training.scratch;
  ClippedRows<T, kRows, kAction> rows;
  for (int begin = 0; begin < E::kTileRows; begin += kRows) {
    for (int row = 0; row < kRows; row++) {
      const std::uint32_t from = scratch.row[first + begin + row] * kAction;
      for (int i = 0; i < kAction; i++) {
        rows.action[row * kAction + i] = rollout.action[from + i];
        rows.mean_before[row * kAction + i] = rollout.mean[from + i];
        rows.mean[row * kAction + i] = scratch.tile_mean(begin + row, i);
      }
      rows.advantage[row] = scratch.advantage[first + begin + row];
    }
    compute_clipped_objective(of, clip, static_cast<T>(E::kBatchSize), rows);
    for (int row = 0; row < kRows; row++) {
      for (int i = 0; i < kAction; i++) {
        scratch.mean_gradient(begin + row, i) = rows.mean_gradient[row * kAction + i];
        scratch.log_std_gradient.values[i] += rows.log_std_gradient[row * kAction + i];
      }
      sums.policy_loss -= rows.objective[row];
      sums.kl += rows.kl[row];
      sums.clipped += static_cast<int>(rows.is_clipped[row]);
    }
  }
}

// Compute the same for choices, whose logits are scratch.tile_mean.
template <class E, class T>
void policy_loss_of_tile(Generic, Training<E>& training, ChoicesChange, int first, Sums<T>& sums) {
  constexpr int kAction = E::Environment::kActionDim, kOutput = Scratch<E>::kOutput;
  const auto& hyper = training.hyperparameters;
  const auto& rollout = training.replay;
  auto& scratch = training.scratch;
  for (int row = 0; row < E::kTileRows; row++) {
    const std::uint32_t from = scratch.row[first + row];
    const auto result = clipped_choices<typename E::Environment>(
        rollout.action + from * kAction, rollout.mean + from * kOutput, scratch.tile_mean.row(row),
        scratch.advantage[first + row], static_cast<T>(hyper.clip_range),
        static_cast<T>(hyper.ent_coef), static_cast<T>(E::kBatchSize),
        scratch.mean_gradient.row(row));
    sums.policy_loss -= result.objective;
    sums.kl += result.kl;
    sums.entropy += result.entropy;
    sums.clipped += static_cast<int>(result.is_clipped);
  }
}

}  // namespace rlt::ppo
