// Many environments of a kind, each in an episode of its own: stepped together, and begun again
// where an episode ends. What they need is arrays that the caller owns, a row for each environment.
//
// What environment i draws depends on the seed, on i, and on its episode's number or on the step,
// never on the other environments: they may be worked on in any order, by any number of threads.
#pragma once

#include <cstddef>

#include "rltools/core/random.h"
#include "rltools/core/tasks.h"
#include "rltools/rl/environment.h"
#include "rltools/rl/environment_lanes.h"
#include "rltools/rl/non_finite_steps.h"

namespace rlt {

// How many environments an experiment E runs: E::kEnvironments, or one.
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

// In place of N: as many environments as is known at run time, whose arrays lie elsewhere.
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

// function(worker, index) for every environment, shared where the steps are enough work.
template <class E, class Device, class Function>
void for_each_environment(Device device, int count, Function&& function) {
  constexpr int kLeastToShare_us = 20;
  if constexpr (E::kStepWork_us > 0) {
    if (count * E::kStepWork_us >= kLeastToShare_us) {
      return for_each_index(device, count, function);
    }
  }
  for (int index = 0; index < count; index++) function(device, index);
}

// What a step of one environment gave. Of an episode that ended, `episode_return` is the sum of its
// rewards.
template <class T>
struct Transition {
  T reward;
  bool terminated;  // in a terminal state
  bool truncated;   // cut off, after the number of steps that episodes have or by the environment
  T episode_return;
  bool lost = false;    // it did not take place, and the episode is over
  bool broken = false;  // its reward or the observation reached is not finite

  bool ended() const { return terminated || truncated || lost; }
};

// The first state of environment `index`, whose parameters are known.
template <class Device, class E, int N>
void reset_environment(Device device, const E& environment, VectorEnvironment<E, N>& environments,
                       int index, std::uint32_t seed) {
  reset(device, environment, environments.at(index), environments.state[index],
        RandomStream{seed, Purpose::environment_reset, environments.episodes[index],
                     static_cast<std::uint32_t>(index)});
}

// A new episode of environment `index`: its parameters, where they differ from episode to episode,
// and its initial state.
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

// observation (CriticObservationDim) of environment `index`, which is in its episode's first state.
template <class Device, class E, int N>
void observe_first(Device device, const E& environment, const VectorEnvironment<E, N>& environments,
                   int index, std::uint32_t seed, typename E::Scalar* observation) {
  observe(device, environment, environments.at(index), environments.state[index], observation,
          RandomStream{seed, Purpose::first_observation, environments.episodes[index],
                       static_cast<std::uint32_t>(index)});
}

// Environment `index` takes `action` (ActionDim) in the run's step `step_number`. An episode of
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
    if (result.lost) return {0, false, false, environments.episode_return[index], true};
  }
  environments.episode_step[index]++;
  environments.episode_return[index] += result.reward;
  bool is_over = environments.episode_step[index] >= episode_steps;
  if constexpr (E::kTruncates) is_over = is_over || result.truncated;
  const bool truncated = !result.terminated && is_over;
  return {result.reward, result.terminated, truncated, environments.episode_return[index]};
}

// A new episode of environment `index`, whose episode has ended; T* store.begun(index) is where its
// first observation goes.
template <class Device, class E, int N, class Store>
void begin_next_episode(Device device, const E& environment, VectorEnvironment<E, N>& environments,
                        int index, std::uint32_t seed, Store& store) {
  environments.episodes[index]++;
  begin_episode(device, environment, environments, index, seed);
  observe_first(device, environment, environments, index, seed, store.begun(index));
}

// Environment `index` takes its row of `action` (N, ActionDim), as by step_environment(), and is
// observed: T* store.reached(index, transition) is where that goes. Whether its episode has ended,
// so that the next one is to begin.
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
    if (detail::is_broken<E>(transition.reward, reached)) {
      environments.state[index] = before.state;
      store.broken(index);
      return false;
    }
  }
  return transition.ended();
}

namespace detail {

// Cheap environments from this many on are stepped in lanes: in loops whose passes are independent,
// straight-line code, which compilers turn into vector instructions, an environment in each lane,
// where they see all of it. No bit changes by that. Those with many fields are transposed for it
// (environment_lanes.h). Those that end episodes by themselves, and those that are elsewhere, are
// stepped one at a time.
constexpr int kFewestLanes = 16, kMaxInBlock = 64;

template <class E, int N>
constexpr bool kStepsInLanes = (N >= kFewestLanes || N == kAtRunTime) && E::kStepWork_us == 0 &&
                               !E::kTruncates && !kIsExternal<E>;

// rewards (count) and terminated (count) of environments `first` to `first` + count - 1, whose
// states (count) move on.
template <class Device, class E, int N>
RLT_LOOP_OVER_LANES void step_states(Device device, const E& environment,
                                     const VectorEnvironment<E, N>& environments, int first,
                                     int count, std::uint32_t seed, std::uint32_t step_number,
                                     const typename E::Scalar* __restrict action,
                                     typename E::State* __restrict states,
                                     typename E::Scalar* __restrict rewards,
                                     std::uint8_t* __restrict terminated) {
  for (int i = 0; i < count; i++) {
    const auto number = static_cast<std::uint32_t>(first + i);
    const auto result = step(device, environment, environments.at(first + i), states[i],
                             action + static_cast<std::ptrdiff_t>(i) * E::kActionDim,
                             RandomStream{seed, Purpose::environment_step, step_number, number});
    rewards[i] = result.reward;
    terminated[i] = result.terminated;
  }
}

// observations (count, CriticObservationDim) of their states (count).
template <class Device, class E, int N>
RLT_LOOP_OVER_LANES void observe_states(Device device, const E& environment,
                                        const VectorEnvironment<E, N>& environments, int first,
                                        int count, std::uint32_t seed, std::uint32_t step_number,
                                        const typename E::State* __restrict states,
                                        typename E::Scalar* __restrict observations) {
  for (int i = 0; i < count; i++) {
    const auto number = static_cast<std::uint32_t>(first + i);
    observe(device, environment, environments.at(first + i), states[i],
            observations + static_cast<std::ptrdiff_t>(i) * kCriticObservationDim<E>,
            RandomStream{seed, Purpose::observation, step_number, number});
  }
}

// Both of them: a state of `states` (count, Count at the most) whose step is broken stays.
template <bool LooksForBroken, int Count, class Device, class E, int N>
void step_and_observe_states(Device device, const E& environment,
                             const VectorEnvironment<E, N>& environments, int first, int count,
                             std::uint32_t seed, std::uint32_t step_number,
                             const typename E::Scalar* action, typename E::State* states,
                             typename E::Scalar* rewards, std::uint8_t* terminated,
                             typename E::Scalar* observations) {
  const auto step_all_of_them = [&] {
    step_states(device, environment, environments, first, count, seed, step_number, action, states,
                rewards, terminated);
    observe_states(device, environment, environments, first, count, seed, step_number, states,
                   observations);
  };
  if constexpr (LooksForBroken) {
    typename E::State before[Count];
    for (int i = 0; i < count; i++) before[i] = states[i];
    step_all_of_them();
    constexpr int kObservation = kCriticObservationDim<E>;
    if (are_sound<E>(rewards, observations, count)) return;
    for (int i = 0; i < count; i++) {
      if (is_broken<E>(rewards[i], observations + i * kObservation)) states[i] = before[i];
    }
  } else {
    step_all_of_them();
  }
}

// Step, observation and, where an episode ends, the next one, of `count` environments from `first`
// on, all steps before all observations.
template <int Count, class Device, class E, int N, class Store>
void step_block(Device device, const E& environment, VectorEnvironment<E, N>& environments,
                int first, int count, std::uint32_t seed, std::uint32_t step_number,
                std::uint32_t episode_steps, const typename E::Scalar* action, Store& store) {
  using T = typename E::Scalar;
  constexpr int kObservation = kCriticObservationDim<E>;
  constexpr bool kLooks = kLooksForNonFinite<E, Store>;
  T rewards[Count], observations[Count * kObservation];
  std::uint8_t terminated[Count], truncated[Count];
  auto* states = environments.state + first;
  action += static_cast<std::ptrdiff_t>(first) * E::kActionDim;
  int done = 0;
  if constexpr (kIsTransposed<Device, E>) {
    for (; done + kLaneCount <= count; done += kLaneCount) {
      const int index = first + done;
      step_and_observe_lanes<kLooks>(device, environment, &environments.at(index), states + done,
                                     action + done * E::kActionDim, seed, step_number,
                                     static_cast<std::uint32_t>(index), rewards + done,
                                     terminated + done, observations + done * kObservation);
    }
  }
  constexpr int kRest = kIsTransposed<Device, E> ? kLaneCount : Count;
  if (done < count) {
    step_and_observe_states<kLooks, kRest>(
        device, environment, environments, first + done, count - done, seed, step_number,
        action + done * E::kActionDim, states + done, rewards + done, terminated + done,
        observations + done * kObservation);
  }
  for (int i = 0; i < count; i++) {
    const std::uint32_t episode_step = ++environments.episode_step[first + i];
    environments.episode_return[first + i] += rewards[i];
    truncated[i] = static_cast<std::uint8_t>(!terminated[i] & (episode_step >= episode_steps));
  }
  [[maybe_unused]] const bool all_are_sound = !kLooks || are_sound<E>(rewards, observations, count);
  for (int i = 0; i < count; i++) {
    const Transition<T> transition{rewards[i], terminated[i] != 0, truncated[i] != 0,
                                   environments.episode_return[first + i]};
    T* reached = store.reached(first + i, transition);
    for (int k = 0; k < kObservation; k++) reached[k] = observations[i * kObservation + k];
    if constexpr (kLooks) {
      if (!all_are_sound && is_broken<E>(rewards[i], reached)) {
        store.broken(first + i);
        continue;
      }
    }
    if (transition.ended())
      begin_next_episode(device, environment, environments, first + i, seed, store);
  }
}

}  // namespace detail

// Every environment takes its row of `action` (N, ActionDim) in the run's step `step_number`, and
// begins a new episode where one has ended. On the worker that has environment i,
//   T* store.reached(i, transition)  says where the observation of the state reached is to go,
//   T* store.begun(i)                where the first one of a new episode is to go, and
//   void store.broken(i)             where there is one, is told of a broken step
//   (kLooksForNonFinite).
template <class Device, class E, int N, class Store>
void step_all(Device device, const E& environment, VectorEnvironment<E, N>& environments,
              std::uint32_t seed, std::uint32_t step_number, std::uint32_t episode_steps,
              const typename E::Scalar* action, Store&& store) {
  if constexpr (detail::kStepsInLanes<E, N>) {
    constexpr bool kIsOneBlock = N != kAtRunTime && N < detail::kMaxInBlock;
    constexpr int kBlock = kIsOneBlock ? N : detail::kMaxInBlock;
    const int whole = environments.count();
    if (N != kAtRunTime || whole >= detail::kFewestLanes) {
      for (int first = 0, count = 0; first != whole; first += count) {
        count = math::minimum(kBlock, whole - first);
        detail::step_block<kBlock>(device, environment, environments, first, count, seed,
                                   step_number, episode_steps, action, store);
      }
      return;
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

// Ends the episodes under way, as if they had been lost, and begins new ones.
template <class Device, class E, int N, class Begun>
void begin_all_anew(Device device, const E& environment, VectorEnvironment<E, N>& environments,
                    std::uint32_t seed, Begun&& begun) {
  struct {
    Begun& function;
    auto begun(int index) { return function(index); }
  } store{begun};
  for_each_environment<E>(device, environments.count(), [&](auto worker, int index) {
    begin_next_episode(worker, environment, environments, index, seed, store);
  });
}

// The first episode of every environment; T* begun(i) is where its first observation goes.
template <class Device, class E, int N, class Begun>
void begin_all(Device device, const E& environment, VectorEnvironment<E, N>& environments,
               std::uint32_t seed, Begun&& begun) {
  for (int index = 0; index < environments.count(); index++) {
    environments.episodes[index] = ~std::uint32_t{0};  // the next one is episode 0
  }
  begin_all_anew(device, environment, environments, seed, begun);
}

// Episodes ended, of all environments.
template <class E, int N>
std::uint32_t episodes_ended(const VectorEnvironment<E, N>& environments) {
  std::uint32_t sum = 0;
  for (int index = 0; index < environments.count(); index++) sum += environments.episodes[index];
  return sum;
}

}  // namespace rlt
