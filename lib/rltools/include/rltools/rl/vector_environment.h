// Many environments of a kind, each in an episode of its own: stepped together, and begun again
// where an episode ends. What they need is arrays that the caller owns, a row for each environment.
//
// The numbers that environment i draws depend on the seed, on i, and on its episode's number or on
// the step, never on the other environments: they may be worked on in any order, by any number of
// threads.
#pragma once

#include <cstddef>

#include "rltools/core/random.h"
#include "rltools/core/tasks.h"
#include "rltools/rl/environment.h"
#include "rltools/rl/environment_lanes.h"
#include "rltools/rl/non_finite_steps.h"

namespace rlt {

// Number of environments that an experiment E runs: E::kEnvironments, or one.
template <class E, class = void>
struct EnvironmentCount {
  static constexpr int kValue = 1;
};
template <class E>
struct EnvironmentCount<E, std::void_t<decltype(E::kEnvironments)>> {
  static constexpr int kValue = E::kEnvironments;
  static_assert(kValue > 0, "kEnvironments must be at least 1");
};
template <class E>
constexpr int kEnvironmentCount = EnvironmentCount<E>::kValue;

// As N: the number of environments is known at run time only, and their arrays lie elsewhere.
constexpr int kAtRunTime = 0;

// The parameters of N environments: no data where all have the nominal ones.
template <class E, int N, bool Sampled = kSamplesParameters<E>>
struct ParameterSets {
  static constexpr typename E::Parameters kNominal{};
  static constexpr const typename E::Parameters& at(int) { return kNominal; }
};
template <class E, int N>
struct ParameterSets<E, N, true> {
  typename E::Parameters values[N];
  const typename E::Parameters& at(int index) const { return values[index]; }
};
template <class E>
struct ParameterSets<E, kAtRunTime, true> {
  typename E::Parameters* values;
  const typename E::Parameters& at(int index) const { return values[index]; }
};

// N environments, and where their episodes stand: how many have ended, steps done in the present
// one and the sum of its rewards. Part of the training state.
template <class E, int N>
struct VectorEnvironment : ParameterSets<E, N> {
  using Environment = E;
  using T = typename E::Scalar;
  static constexpr int count() { return N; }

  typename E::State state[N];
  std::uint32_t episodes[N];
  std::uint32_t episode_step[N];
  T episode_return[N];
};

// The same for arrays that lie elsewhere.
template <class E>
struct VectorEnvironment<E, kAtRunTime> : ParameterSets<E, kAtRunTime> {
  using Environment = E;
  using T = typename E::Scalar;
  int count() const { return environment_count; }

  int environment_count;
  typename E::State* state;
  std::uint32_t* episodes;
  std::uint32_t* episode_step;
  T* episode_return;
};

// Call function(worker, index) for every environment, shared where the steps are enough work.
template <class E, class Device, class Function>
void for_each_environment(Device device, int count, Function&& function) {
  constexpr int kMinToShare_us = 20;
  if constexpr (E::kStepWork_us > 0) {
    if (count * E::kStepWork_us >= kMinToShare_us) {
      return for_each_index(device, count, function);
    }
  }
  for (int index = 0; index < count; index++) function(device, index);
}

// The result of a step of one environment. `episode_return` is the sum of the rewards of an episode
// that ended, and `episode_steps` how many there were.
template <class T>
struct Transition {
  T reward;
  bool terminated;  // in a terminal state
  bool truncated;   // cut off, after the number of steps that episodes have or by the environment
  T episode_return;
  std::uint32_t episode_steps = 0;
  bool lost = false;        // the step was not taken, and the episode is over
  bool shortened = false;   // the algorithm cut it off before its time: its return says nothing
  bool non_finite = false;  // its reward or the observation reached is not finite

  bool ended() const { return terminated || truncated || lost; }
};

// Set the first state of environment `index`, whose parameters are known.
template <class Device, class E, int N>
void reset_environment(Device device, const E& environment, VectorEnvironment<E, N>& environments,
                       int index, std::uint32_t seed) {
  reset(device, environment, environments.at(index), environments.state[index],
        RandomStream{seed, Purpose::environment_reset, environments.episodes[index],
                     static_cast<std::uint32_t>(index)});
}

// Begin an episode of environment `index`: set its parameters, where they differ from episode to
// episode, and its initial state.
template <class Device, class E, int N>
void begin_episode(Device device, const E& environment, VectorEnvironment<E, N>& environments,
                   int index, std::uint32_t seed) {
  if constexpr (kSamplesParameters<E>) {
    draw_parameters(device, environment, environments.values[index],
                    {seed, Purpose::environment_parameters, environments.episodes[index],
                     static_cast<std::uint32_t>(index)});
  }
  reset_environment(device, environment, environments, index, seed);
  environments.episode_step[index] = 0;
  environments.episode_return[index] = typename E::Scalar(0);
}

// Observe (CriticObservationDim) environment `index`, which is in its episode's first state.
template <class Device, class E, int N>
void observe_first(Device device, const E& environment, const VectorEnvironment<E, N>& environments,
                   int index, std::uint32_t seed, typename E::Scalar* observation) {
  observe(device, environment, environments.at(index), environments.state[index], observation,
          RandomStream{seed, Purpose::first_observation, environments.episodes[index],
                       static_cast<std::uint32_t>(index)});
}

// Step environment `index` with `action` (ActionDim) in the run's step `step_number`. An episode of
// `episode_steps` steps is truncated.
template <class Device, class E, int N>
Transition<typename E::Scalar> step_environment(Device device, const E& environment,
                                                VectorEnvironment<E, N>& environments, int index,
                                                std::uint32_t seed, std::uint32_t step_number,
                                                std::uint32_t episode_steps,
                                                const typename E::Scalar* action) {
  const auto result =
      step(device, environment, environments.at(index), environments.state[index], action,
           RandomStream{seed, Purpose::environment_step, step_number,
                        static_cast<std::uint32_t>(index)});
  if constexpr (kIsExternal<E>) {
    if (result.lost) {
      return {
          0,   false, false, environments.episode_return[index], environments.episode_step[index],
          true};
    }
  }
  environments.episode_step[index]++;
  environments.episode_return[index] += result.reward;
  bool is_over = environments.episode_step[index] >= episode_steps;
  if constexpr (E::kTruncates) is_over = is_over || result.truncated;
  const bool truncated = !result.terminated && is_over;
  return {result.reward, result.terminated, truncated, environments.episode_return[index],
          environments.episode_step[index]};
}

// Begin the next episode of environment `index`; T* store.begun(index) is where its first
// observation goes.
template <class Device, class E, int N, class Store>
void begin_next_episode(Device device, const E& environment, VectorEnvironment<E, N>& environments,
                        int index, std::uint32_t seed, Store& store) {
  environments.episodes[index]++;
  begin_episode(device, environment, environments, index, seed);
  observe_first(device, environment, environments, index, seed, store.begun(index));
}

// Step environment `index` with its row of `action` (N, ActionDim), as step_environment() does, and
// observe it: T* store.reached(index, transition) is where that goes. Return whether its episode
// has ended, so that the next one is to begin.
template <class Device, class E, int N, class Store>
bool step_and_observe(Device device, const E& environment, VectorEnvironment<E, N>& environments,
                      int index, std::uint32_t seed, std::uint32_t step_number,
                      std::uint32_t episode_steps, const typename E::Scalar* action, Store& store) {
  [[maybe_unused]] const detail::StateBefore<E, kLooksForNonFinite<E, Store>> before{
      environments.state[index]};
  const auto transition =
      step_environment(device, environment, environments, index, seed, step_number, episode_steps,
                       action + static_cast<std::ptrdiff_t>(index) * E::kActionDim);
  typename E::Scalar* reached = store.reached(index, transition);
  observe(device, environment, environments.at(index), environments.state[index], reached,
          RandomStream{seed, Purpose::observation, step_number, static_cast<std::uint32_t>(index)});
  if constexpr (kLooksForNonFinite<E, Store>) {
    if (detail::is_non_finite<E>(transition.reward, reached)) {
      environments.state[index] = before.state;
      store.non_finite(index);
      return false;
    }
  }
  return transition.ended();
}

namespace detail {

// Cheap environments from this many on are stepped in lanes (environment_lanes.h). No bit changes
// by that. Those that end episodes by themselves, and external ones, are stepped one at a time.
constexpr int kMinLanes = 16;

template <class E, int N>
constexpr bool kStepsInLanes = (N >= kMinLanes || N == kAtRunTime) && E::kStepWork_us == 0 &&
                               !E::kTruncates && !kIsExternal<E>;

}  // namespace detail

// Step every environment with its row of `action` (N, ActionDim) in the run's step `step_number`,
// and begin a new episode where one has ended. On the worker that has environment i,
//   T* store.reached(i, transition)  says where the observation of the state reached is to go,
//   T* store.begun(i)                where the first one of a new episode is to go, and
//   void store.non_finite(i)         where there is one, is called where a step is not finite
//   (kLooksForNonFinite).
template <class Device, class E, int N, class Store>
void step_all(Device device, const E& environment, VectorEnvironment<E, N>& environments,
              std::uint32_t seed, std::uint32_t step_number, std::uint32_t episode_steps,
              const typename E::Scalar* action, Store&& store) {
  if constexpr (detail::kStepsInLanes<E, N>) {
    if (environments.count() >= detail::kMinLanes) {
      return step_in_lanes(device, environment, environments, seed, step_number, episode_steps,
                           action, store);
    }
  }
  if constexpr (kIsExternal<E>) {  // nothing else is asked of it before all have stepped
    step_async(device, environment, environments.state, N, action);
    bool ended[N];
    for (int i = 0; i < N; i++) {
      ended[i] = step_and_observe(device, environment, environments, i, seed, step_number,
                                  episode_steps, action, store);
    }
    for (int i = 0; i < N; i++) {
      if (ended[i]) begin_next_episode(device, environment, environments, i, seed, store);
    }
    return;
  }
  for_each_environment<E>(device, environments.count(), [&](auto worker, int index) {
    const bool ended = step_and_observe(worker, environment, environments, index, seed, step_number,
                                        episode_steps, action, store);
    if (ended) begin_next_episode(worker, environment, environments, index, seed, store);
  });
}

// End the episodes under way, as if they had been lost, and begin new ones.
template <class Device, class E, int N, class Begun>
void restart_all(Device device, const E& environment, VectorEnvironment<E, N>& environments,
                 std::uint32_t seed, Begun&& begun) {
  struct {
    Begun& function;
    auto begun(int index) { return function(index); }
  } store{begun};
  for_each_environment<E>(device, environments.count(), [&](auto worker, int index) {
    begin_next_episode(worker, environment, environments, index, seed, store);
  });
}

// Begin the first episode of every environment; T* begun(i) is where its first observation goes.
template <class Device, class E, int N, class Begun>
void begin_all(Device device, const E& environment, VectorEnvironment<E, N>& environments,
               std::uint32_t seed, Begun&& begun) {
  for (int index = 0; index < environments.count(); index++) {
    environments.episodes[index] = ~std::uint32_t{0};  // the next one is episode 0
  }
  restart_all(device, environment, environments, seed, begun);
}

// Return the number of episodes that have ended, of all environments.
template <class E, int N>
std::uint32_t episodes_ended(const VectorEnvironment<E, N>& environments) {
  std::uint32_t sum = 0;
  for (int index = 0; index < environments.count(); index++) sum += environments.episodes[index];
  return sum;
}

}  // namespace rlt
