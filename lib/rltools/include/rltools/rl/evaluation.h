// Evaluation of the present policy: deterministic episodes, one environment step at a time, so that
// firmware can do other work between two steps.
#pragma once

#include "rltools/core/math.h"
#include "rltools/rl/privileged.h"
#include "rltools/rl/training.h"

namespace rlt {

// Returns of deterministic episodes: mean, population standard deviation, smallest, largest; the
// mean number of steps in an episode.
struct EvaluationReport {
  std::uint32_t episodes;
  float mean, std, min, max;
  float length_mean;
};

// An evaluation under way. It changes nothing of the training state, and is no part of it.
template <class E>
struct Evaluation : PolicyState<E> {
  using T = typename E::Scalar;

  std::uint32_t episodes;                          // to run in all
  std::uint32_t episode;                           // the present one, from 0; `episodes` at the end
  std::uint32_t episode_step;                      // steps done in the present episode
  std::uint32_t steps;                             // in the episodes that have ended
  typename E::Environment::Parameters parameters;  // of the present episode
  typename E::Environment::State environment_state;
  T episode_return;  // sum of rewards of the present episode
  // Moments about the first return: returns differ little compared with their size.
  T first, sum, sum_of_squares;
  T smallest, largest;
  // Before the last step; its action is `non_finite`'s. Of environments that are not elsewhere.
  typename E::Environment::State state_before;
  // The step that was not finite, which ends all episodes: the state is as before it, and the
  // report is of no number.
  NonFiniteTransition<typename E::Environment> non_finite;
};

namespace detail {

template <class Device, class E>
void begin_evaluation_episode(Device device, const Training<E>& training,
                              Evaluation<E>& evaluation) {
  const std::uint32_t seed = training.hyperparameters.seed;
  const auto environment = environment_of(training);
  draw_parameters(device, environment, evaluation.parameters,
                  {seed, Purpose::evaluation_parameters, evaluation.episode});
  reset(device, environment, evaluation.parameters, evaluation.environment_state,
        RandomStream{seed, Purpose::evaluation_reset, evaluation.episode});
  begin_episode<E>(evaluation);
  evaluation.episode_step = 0;
  evaluation.episode_return = typename E::Scalar(0);
}

// End an evaluation whose last step, or first observation, is not finite.
template <class E>
void end_as_non_finite(Evaluation<E>& evaluation, bool is_reward) {
  evaluation.non_finite.environment = 0;
  evaluation.non_finite.is_reward = is_reward;
  evaluation.non_finite.is_first = evaluation.episode_step == 0 && !is_reward;
  if (!evaluation.non_finite.is_first) evaluation.environment_state = evaluation.state_before;
  evaluation.first = evaluation.sum = static_cast<typename E::Scalar>(math::kQuietNan);
  evaluation.episode = evaluation.episodes;
}

template <class E>
void add_episode_return(Evaluation<E>& evaluation) {
  const auto value = evaluation.episode_return;
  if (evaluation.episode == 0) {
    evaluation.first = evaluation.smallest = evaluation.largest = value;
  }
  const auto difference = value - evaluation.first;
  evaluation.sum += difference;
  evaluation.sum_of_squares = math::fma(difference, difference, evaluation.sum_of_squares);
  evaluation.smallest = math::minimum(evaluation.smallest, value);
  evaluation.largest = math::maximum(evaluation.largest, value);
}

}  // namespace detail

// Begin an evaluation of hyperparameters.n_eval_episodes episodes. Initial states depend on the
// seed and the episode's number only.
template <class Device, class E>
void begin_evaluation(Device device, const Training<E>& training, Evaluation<E>& evaluation) {
  if constexpr (kKeepsContracts<E>) {
    evaluation = {};
    evaluation.episodes = training.hyperparameters.n_eval_episodes;
    detail::begin_evaluation_episode(device, training, evaluation);
  }
}

// Do at most one environment step. Return false once all episodes have ended: then
// evaluation_report() has the result. The policy and the seed must be the same in all steps.
template <class Device, class E>
bool evaluate_step(Device device, Training<E>& training, Evaluation<E>& evaluation) {
  if constexpr (kKeepsContracts<E>) {
    using T = typename E::Scalar;
    using Environment = typename E::Environment;
    constexpr auto kEpisodeSteps = static_cast<std::uint32_t>(E::kEpisodeSteps);
    constexpr bool kLooks = !kIsExternal<Environment>;
    if (evaluation.episode >= evaluation.episodes) return false;
    const Environment environment = environment_of(training);
    const auto& parameters = evaluation.parameters;
    auto& state = evaluation.environment_state;
    const auto random = [&](Purpose purpose) {
      return RandomStream{training.hyperparameters.seed, purpose, evaluation.episode_step,
                          evaluation.episode};
    };
    Matrix<T, 1, kCriticObservationDim<Environment>> observation;
    PolicyRows<Environment, 1> policy_rows;
    Matrix<T, 1, Environment::kActionDim> action;
    observe(device, environment, parameters, state, observation.data(),
            random(Purpose::evaluation_observation));
    if (kLooks && !all_finite(observation.data(), kCriticObservationDim<Environment>)) {
      detail::end_as_non_finite(evaluation, false);
      return false;
    }
    if constexpr (kIsRecurrent<PolicyNetwork<E>>) {
      PolicyState<E>& hidden = evaluation;
      act(device, training, policy_part(device, observation, policy_rows), hidden, action);
    } else {
      act(device, training, policy_part(device, observation, policy_rows), action);
    }
    bool ended = true;
    if (all_finite(action.data(), Environment::kActionDim)) {
      if constexpr (kLooks) {
        evaluation.state_before = state;
        for (int i = 0; i < Environment::kActionDim; i++) {
          evaluation.non_finite.action[i] = action.data()[i];
        }
      }
      const auto result = step(device, environment, parameters, state, action.data(),
                               random(Purpose::evaluation_step));
      if (kLooks && !is_finite(result.reward)) {
        detail::end_as_non_finite(evaluation, true);
        return false;
      }
      if (!result.lost) evaluation.episode_return += result.reward;
      evaluation.episode_step++;
      ended = result.terminated || evaluation.episode_step >= kEpisodeSteps || result.truncated ||
              result.lost;
    } else {  // no action to take: the episode's return is not a number, nor is then the mean
      evaluation.episode_return = static_cast<T>(math::kQuietNan);
    }
    if (ended) {
      detail::add_episode_return(evaluation);
      evaluation.steps += evaluation.episode_step;
      evaluation.episode++;
      if (evaluation.episode < evaluation.episodes) {
        detail::begin_evaluation_episode(device, training, evaluation);
      }
    }
    return evaluation.episode < evaluation.episodes;
  }
  return false;
}

// Return the report of the episodes that have ended; at least one must have.
template <class E>
EvaluationReport evaluation_report(const Evaluation<E>& evaluation) {
  using T = typename E::Scalar;
  const T count = static_cast<T>(evaluation.episode);
  const T mean = evaluation.sum / count;
  const T variance = math::maximum(T(0), evaluation.sum_of_squares / count - mean * mean);
  return {evaluation.episode,
          static_cast<float>(evaluation.first + mean),
          static_cast<float>(math::sqrt(variance)),
          static_cast<float>(evaluation.smallest),
          static_cast<float>(evaluation.largest),
          static_cast<float>(evaluation.steps) / static_cast<float>(evaluation.episode)};
}

// Do a whole evaluation.
template <class Device, class E>
EvaluationReport evaluate(Device device, Training<E>& training) {
  if constexpr (kKeepsContracts<E>) {
    Evaluation<E> evaluation;
    begin_evaluation(device, training, evaluation);
    while (evaluate_step(device, training, evaluation)) continue;
    return evaluation_report(evaluation);
  }
  return {};
}

}  // namespace rlt
