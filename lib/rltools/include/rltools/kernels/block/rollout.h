// Steps of many environments, and what PPO does with a rollout of them, by a block's threads: one
// has an environment, a row or a column, and sums are added up in the reference's order.
#pragma once

#include "rltools/kernels/block/threads.h"
#include "rltools/rl/on_policy.h"
#include "rltools/rl/ppo_loss.h"
#include "rltools/rl/rollout_values.h"
#include "rltools/rl/vector_environment.h"

namespace rlt {

// ---- Steps of environments ----------------------------------------------------------------------

template <class E, int N, class Store>
void step_all(Block device, const E& environment, VectorEnvironment<E, N>& environments,
              std::uint32_t seed, std::uint32_t step_number, std::uint32_t episode_steps,
              const typename E::Scalar* action, Store&& store) {
  static_assert(!kIsExternal<E>,
                "an environment that another program plays has no block's kernels");
  const auto step = [of = environment, all = &environments, seed, step_number, episode_steps,
                     action, store](int index) {
    auto own = store;
    const bool ended =
        step_and_observe(Generic{}, of, *all, index, seed, step_number, episode_steps, action, own);
    if (ended) begin_next_episode(Generic{}, of, *all, index, seed, own);
  };
  if (N == 1 || !block::are_shared(action)) {
    for (int index = 0; index < environments.count(); index++) step(index);
    return;
  }
  device.threads->run([step, count = environments.count()](int thread) {
    for (int index = thread; index < count; index += block::kThreads) step(index);
  });
}

// Few of them are worth a note: the threads find those.
template <class E>
void note_transitions(Block device, Progress<float>& progress,
                      const Transition<float> (&transitions)[kEnvironmentCount<E>],
                      const float* action, StepReport<E>& report) {
  constexpr int kCount = kEnvironmentCount<E>, kWord = 8;
  if constexpr (kCount % kWord != 0 || kCount > block::kMaxCopied) {
    note_transitions(Generic{}, progress, transitions, action, report);
  } else {
    std::uint8_t* is_noted = device.threads->template results<std::uint8_t, kCount>();
    const Transition<float>* all = transitions;
    device.threads->run([all, is_noted](int thread) {
      for (int i = thread; i < kCount; i += block::kThreads) {
        const Transition<float>& own = all[i];
        is_noted[i] = own.ended() || own.non_finite || !is_finite(own.episode_return);
      }
    });
    for (int first = 0; first < kCount; first += kWord) {
      std::uint64_t any;
      __builtin_memcpy(&any, is_noted + first, kWord);
      for (int i = first; any != 0 && i < first + kWord; i++) {
        if (is_noted[i]) note_transition(progress, transitions[i], i, action, report);
      }
    }
  }
}

template <int Count>
bool all_finite(Block device, const float* values) {
  if (Count < block::kMinElementsToShare || !block::are_shared(values)) {
    return all_finite<Count>(Generic{}, values);
  }
  std::uint32_t* others = device.threads->results<std::uint32_t, 1>();
  *others = 0;
  block::for_each_element<Count>(device, [values, others](int i) {
    if (!is_finite(values[i])) *others = 1;
  });
  return *others == 0;
}

template <int Count, int Action>
Block draw_gaussian(Block device, const Deviations<float, Action>& std, const float* mean,
                    float* means, float* drawn, float* clamped) {
  return block::for_each_element<Count>(
      device, [=](int i) { draw_gaussian_element(i, std, mean, means, drawn, clamped); }, mean,
      means, drawn, clamped);
}

// ---- What is computed of a rollout --------------------------------------------------------------

// A column for each thread.
template <int D>
void update_moments(Block device, Normalizer<float, D>& normalizer, const float* observations,
                    int rows) {
  if (rows < block::kMinElementsToShare || !block::are_shared(observations)) {
    return update_moments(Generic{}, normalizer, observations, rows);
  }
  Normalizer<float, D>* to = &normalizer;
  device.threads->run([to, observations, rows](int thread) {
    for (int i = thread; i < D; i += block::kThreads) {
      const double added = rows;
      double mean = 0, squares = 0;
      for (int row = 0; row < rows; row++) mean += static_cast<double>(observations[row * D + i]);
      mean /= added;
      for (int row = 0; row < rows; row++) {
        const double difference = static_cast<double>(observations[row * D + i]) - mean;
        squares += difference * difference;
      }
      merge_moments(*to, i, mean, squares, added);
    }
  });
  normalizer.count += rows;
  apply_moments(normalizer);
}

template <int Count>
Block standardize(Block device, float* values) {
  const auto [mean, variance] = moments(values, Count);
  const float std = math::sqrt(variance) + 1e-8f;
  return block::for_each_element<Count>(
      device, [values, mean = mean, std](int i) { values[i] = (values[i] - mean) / std; }, values);
}

// Threads of two warps have a sum each.
template <int S, int N, int O, int A, int C, int M>
float explained_variance(Block device, const RolloutBuffer<float, S, N, O, A, C, M>& rollout) {
  float* variance = device.threads->results<float, 2>();
  const auto* from = &rollout;
  device.threads->run([from, variance](int thread) {
    if (thread == 0) variance[0] = moments(from->advantage, from->kRows).variance;
    if (thread == 32) variance[1] = moments(from->target, from->kRows).variance;
  });
  return explained_variance(variance[0], variance[1]);
}

namespace block {

// The values of the states in which episodes were truncated, of a critic that is not recurrent, go
// where the advantages of these rows will be.
template <class E>
constexpr bool kHasFinalTiles = !kIsRecurrent<typename E::Critic> &&
                                kEnvironmentCount<E> * kMaxTruncations<E> % E::kTileRows == 0;

template <class E>
void compute_final_values(Block device, Training<E>& training) {
  constexpr int kObservation = kCriticObservationDim<typename E::Environment>;
  constexpr int kTile = E::kTileRows, kMost = kMaxTruncations<E>, kCount = kEnvironmentCount<E>;
  auto& scratch = training.scratch;
  for (int first = 0; first < kCount * kMost; first += kTile) {
    normalize_rows<kTile>(device, training.learner.normalizer,
                          training.replay.final_observation + first * kObservation,
                          scratch.observation.data());
    forward(device, training.learner.critic, scratch.observation, scratch.value,
            scratch.critic_buffer);
    auto* rollout = &training.replay;
    for_each_element<kTile>(device, [rollout, first, value = scratch.value.data()](int i) {
      const int environment = (first + i) / kMost;
      int before = (first + i) % kMost;
      for (int step = 0; step < E::kRolloutSteps; step++) {
        const int row = step * kCount + environment;
        if (rollout->done[row] != rollout->kTruncated) continue;
        if (before-- == 0) rollout->advantage[row] = value[i];
      }
    });
  }
}

}  // namespace block

template <class E>
void compute_advantages(Block device, Training<E>& training) {
  if constexpr (!block::kHasFinalTiles<E>) {
    compute_advantages<Block, E>(device, training);
  } else {
    const auto& hyper = training.hyperparameters;
    compute_values_at_once(device, training);
    block::compute_final_values(device, training);
    auto* rollout = &training.replay;
    const AdvantageParameters<float> parameters{hyper.gamma, hyper.gae_lambda, hyper.reward_scale};
    const float* value = training.scratch.value_of_row;
    const float* current = training.scratch.current_value.data();
    block::for_each_element<kEnvironmentCount<E>>(
        device, [rollout, parameters, value, current](int environment) {
          compute_advantages_of(
              *rollout, parameters, value, current,
              [rollout](int of, int step) {
                return rollout->advantage[step * kEnvironmentCount<E> + of];
              },
              environment);
        });
  }
}

// ---- The loss of the policy ---------------------------------------------------------------------

namespace block {

// Sum the columns of terms (rows, Terms), each added to its `sums` in the order of the rows.
template <int Terms>
void add_columns(Block device, const float* terms, int rows, float* sums) {
  device.threads->run([terms, rows, sums](int thread) {
    if (thread >= Terms) return;
    float sum = sums[thread];
    for (int row = 0; row < rows; row++) sum += terms[row * Terms + thread];
    sums[thread] = sum;
  });
}

// Call row(i, terms) for the rows of a tile, and add the terms of each row to `sums`.
template <int Rows, int Terms, class Row>
void add_rows(Block device, float (&sums)[Terms], const Row& row) {
  constexpr int kAtOnce = (kMaxCopied - Terms) / Terms;
  float* terms = device.threads->results<float, kMaxCopied>();
  float* common = terms + kAtOnce * Terms;
  for (int i = 0; i < Terms; i++) common[i] = sums[i];
  for (int first = 0; first < Rows; first += kAtOnce) {
    const int count = math::minimum(kAtOnce, Rows - first);
    for_each_element(device, count,
                     [row, first, terms](int i) { row(first + i, terms + i * Terms); });
    add_columns<Terms>(device, terms, count, common);
  }
  for (int i = 0; i < Terms; i++) sums[i] = common[i];
}

}  // namespace block

namespace ppo {

template <class E, int Action>
void policy_loss_of_tile(Block device, Training<E>& training,
                         const GaussianChange<float, Action>& of, int first, Sums<float>& sums) {
  constexpr int kFixed = 3;
  float all[kFixed + Action] = {sums.policy_loss, sums.kl, static_cast<float>(sums.clipped)};
  auto& log_std_gradient = training.scratch.log_std_gradient.values;
  for (int i = 0; i < Action; i++) all[kFixed + i] = log_std_gradient[i];
  const float clip = training.hyperparameters.clip_range;
  block::add_rows<E::kTileRows>(device, all,
                                [of, clip, first, from = &training.replay,
                                 scratch = &training.scratch](int row, float* terms) {
                                  ClippedRows<float, 1, Action> own;
                                  const std::uint32_t at = scratch->row[first + row] * Action;
                                  for (int i = 0; i < Action; i++) {
                                    own.action[i] = from->action[at + i];
                                    own.mean_before[i] = from->mean[at + i];
                                    own.mean[i] = scratch->tile_mean(row, i);
                                  }
                                  own.advantage[0] = scratch->advantage[first + row];
                                  compute_clipped_objective(of, clip,
                                                            static_cast<float>(E::kBatchSize), own);
                                  terms[0] = -own.objective[0];
                                  terms[1] = own.kl[0];
                                  terms[2] = static_cast<float>(own.is_clipped[0]);
                                  for (int i = 0; i < Action; i++) {
                                    scratch->mean_gradient(row, i) = own.mean_gradient[i];
                                    terms[kFixed + i] = own.log_std_gradient[i];
                                  }
                                });
  sums.policy_loss = all[0];
  sums.kl = all[1];
  sums.clipped = static_cast<int>(all[2]);
  for (int i = 0; i < Action; i++) log_std_gradient[i] = all[kFixed + i];
}

template <class E>
void policy_loss_of_tile(Block device, Training<E>& training, ChoicesChange, int first,
                         Sums<float>& sums) {
  constexpr int kAction = E::Environment::kActionDim, kOutput = Scratch<E>::kOutput;
  float all[4] = {sums.policy_loss, sums.kl, static_cast<float>(sums.clipped), sums.entropy};
  const float clip = training.hyperparameters.clip_range;
  const float ent_coef = training.hyperparameters.ent_coef;
  block::add_rows<E::kTileRows>(device, all,
                                [clip, ent_coef, first, from = &training.replay,
                                 scratch = &training.scratch](int row, float* terms) {
                                  const std::uint32_t at = scratch->row[first + row];
                                  const auto own = clipped_choices<typename E::Environment>(
                                      from->action + at * kAction, from->mean + at * kOutput,
                                      scratch->tile_mean.row(row), scratch->advantage[first + row],
                                      clip, ent_coef, static_cast<float>(E::kBatchSize),
                                      scratch->mean_gradient.row(row));
                                  terms[0] = -own.objective;
                                  terms[1] = own.kl;
                                  terms[2] = static_cast<float>(own.is_clipped);
                                  terms[3] = own.entropy;
                                });
  sums = {all[0], sums.value_loss, all[1], all[3], static_cast<int>(all[2])};
}

}  // namespace ppo

}  // namespace rlt
