// Steps of many environments of a kind in lanes: the same bits as those of the loop in step_all()
// (vector_environment.h), which it replaces:
//   for (int i = 0; i < count; i++) {
//     const bool ended = step_and_observe(device, environment, environments, i, seed, step_number,
//                                         episode_steps, action, store);
//     if (ended) begin_next_episode(device, environment, environments, i, seed, store);
//   }
//
// In lanes, all steps of a block of environments come before all observations, in loops whose
// passes are independent, straight-line code, which compilers turn into vector instructions, an
// environment in each lane. kLaneCount environments whose states have many fields are transposed
// for it (core/lanes.h), so that these loops load and store whole vectors; a field of many states
// is otherwise loaded number by number.
//
// The compiler makes vectors of the loops where an environment's step() and observe() are
// straight-line code on scalars:
// - arrays are gone through by unrolled() (core/unrolled.h), and no element is chosen by data;
//   standard_normals() and uniforms() draw a few numbers (core/random.h);
// - selects, `c ? a : b` of values that are at hand, in place of branches, & in place of &&;
// - a condition that is the same for all is a number, 0 or 1, that is multiplied with;
// - what all of an episode's steps have in common, an exponential of a setting for example, stands
//   in Parameters.
#pragma once

#include "rltools/core/lanes.h"
#include "rltools/core/random.h"
#include "rltools/rl/environment.h"
#include "rltools/rl/non_finite_steps.h"

namespace rlt {

// Defined in vector_environment.h, which includes this header.
template <class E, int N>
struct VectorEnvironment;
template <class T>
struct Transition;

}  // namespace rlt

namespace rlt::detail {

// The compiler's own way suffices for states of a few numbers.
constexpr int kMinWordsToTranspose = 5;

template <class E>
constexpr bool has_parameters_of_words() {
  if constexpr (kSamplesParameters<E>) return kIsOfWords<typename E::Parameters>;
  return true;
}

template <class Device, class E>
constexpr bool is_transposed() {
  if constexpr (decltype(transposes_fast(std::declval<Device>()))::value &&
                std::is_same_v<typename E::Scalar, float>) {
    if constexpr (kIsOfWords<typename E::State> && has_parameters_of_words<E>()) {
      return kWords<typename E::State> >= kMinWordsToTranspose;
    }
  }
  return false;
}
template <class Device, class E>
constexpr bool kIsTransposed = is_transposed<Device, E>();

template <class E>
constexpr int parameter_words() {
  if constexpr (kSamplesParameters<E>) return kWords<typename E::Parameters>;
  return 0;
}

template <class E>
struct EnvironmentLanes {
  Lanes<kWords<typename E::State>> states;
  Lanes<parameter_words<E>()> parameters;  // none where all have the nominal ones
  Lanes<E::kActionDim> actions;
  Lanes<kCriticObservationDim<E>> observations;
  float rewards[kLaneCount];
  std::uint32_t terminated[kLaneCount];
};

// Return the parameters of lane `lane`.
template <class E>
[[gnu::always_inline]] inline typename E::Parameters parameters_of_lane(
    [[maybe_unused]] const Lanes<parameter_words<E>()>& lanes, [[maybe_unused]] int lane) {
  typename E::Parameters parameters{};
  if constexpr (kSamplesParameters<E>) read_lane(lanes, lane, parameters);
  return parameters;
}

// Step lanes. The environments' settings are copied, lest a setting that is used on a condition
// alone be loaded on it: the compiler does not make vectors of that.
template <class Device, class E>
RLT_LOOP_OVER_LANES void step_lanes(Device device, const E& shared,
                                    Lanes<kWords<typename E::State>>& __restrict states,
                                    const Lanes<parameter_words<E>()>& __restrict parameters,
                                    const Lanes<E::kActionDim>& __restrict actions,
                                    float* __restrict rewards, std::uint32_t* __restrict terminated,
                                    std::uint32_t seed, std::uint32_t step_number,
                                    std::uint32_t first) {
  const E environment = shared;
  for (int i = 0; i < kLaneCount; i++) {
    typename E::State state;
    float action[E::kActionDim];
    read_lane(states, i, state);
    read_array(actions, i, action);
    const auto own = parameters_of_lane<E>(parameters, i);
    auto result = step(device, environment, own, state, action,
                       RandomStream{seed, Purpose::environment_step, step_number,
                                    first + static_cast<std::uint32_t>(i)});
    write_lane(states, i, state);
    rewards[i] = result.reward;
    terminated[i] = result.terminated ? 1u : 0u;
  }
}

template <class Device, class E>
RLT_LOOP_OVER_LANES void observe_lanes(Device device, const E& shared,
                                       const Lanes<kWords<typename E::State>>& __restrict states,
                                       const Lanes<parameter_words<E>()>& __restrict parameters,
                                       Lanes<kCriticObservationDim<E>>& __restrict observations,
                                       std::uint32_t seed, std::uint32_t step_number,
                                       std::uint32_t first) {
  const E environment = shared;
  for (int i = 0; i < kLaneCount; i++) {
    typename E::State state;
    float observation[kCriticObservationDim<E>];
    read_lane(states, i, state);
    const auto own = parameters_of_lane<E>(parameters, i);
    observe(device, environment, own, state, observation,
            RandomStream{seed, Purpose::observation, step_number,
                         first + static_cast<std::uint32_t>(i)});
    write_array(observations, i, observation);
  }
}

// Step kLaneCount environments from `first` on by `actions` (lanes, ActionDim), and set rewards,
// terminated and observations (lanes, CriticObservationDim). `parameters` is null where all have
// the nominal ones. With `LooksForNonFinite` a state whose step is not finite stays.
template <bool LooksForNonFinite, class Device, class E>
void step_and_observe_lanes(Device device, const E& environment,
                            [[maybe_unused]] const typename E::Parameters* parameters,
                            typename E::State* states, const float* actions, std::uint32_t seed,
                            std::uint32_t step_number, std::uint32_t first, float* rewards,
                            std::uint8_t* terminated, float* observations) {
  EnvironmentLanes<E> lanes;
  transpose_words(device, states, lanes.states);
  if constexpr (kSamplesParameters<E>) transpose_words(device, parameters, lanes.parameters);
  transpose_words(device, actions, lanes.actions);
  step_lanes(device, environment, lanes.states, lanes.parameters, lanes.actions, lanes.rewards,
             lanes.terminated, seed, step_number, first);
  observe_lanes(device, environment, lanes.states, lanes.parameters, lanes.observations, seed,
                step_number, first);
  transpose_words(device, lanes.observations, observations);
  for (int i = 0; i < kLaneCount; i++) {
    rewards[i] = lanes.rewards[i];
    terminated[i] = static_cast<std::uint8_t>(lanes.terminated[i]);
  }
  if constexpr (LooksForNonFinite) {
    constexpr int kObservation = kCriticObservationDim<E>;
    if (!are_finite<E>(rewards, observations, kLaneCount)) {
      for (int i = 0; i < kLaneCount; i++) {
        if (is_non_finite<E>(rewards[i], observations + i * kObservation)) {
          write_lane(lanes.states, i, states[i]);
        }
      }
    }
  }
  transpose_words(device, lanes.states, states);
}

constexpr int kMaxInBlock = 64;

// Set rewards (count) and terminated (count) of environments `first` to `first` + count - 1, whose
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

// Set observations (count, CriticObservationDim) of their states (count).
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

// Do both: a state of `states` (count, Count at the most) whose step is not finite stays.
template <bool LooksForNonFinite, int Count, class Device, class E, int N>
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
  if constexpr (LooksForNonFinite) {
    typename E::State before[Count];
    for (int i = 0; i < count; i++) before[i] = states[i];
    step_all_of_them();
    constexpr int kObservation = kCriticObservationDim<E>;
    if (are_finite<E>(rewards, observations, count)) return;
    for (int i = 0; i < count; i++) {
      if (is_non_finite<E>(rewards[i], observations + i * kObservation)) states[i] = before[i];
    }
  } else {
    step_all_of_them();
  }
}

// Step, observe and, where an episode ends, begin the next one, of `count` environments from
// `first` on, all steps before all observations.
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
  [[maybe_unused]] const bool all_are_finite =
      !kLooks || are_finite<E>(rewards, observations, count);
  for (int i = 0; i < count; i++) {
    const Transition<T> transition{rewards[i], terminated[i] != 0, truncated[i] != 0,
                                   environments.episode_return[first + i],
                                   environments.episode_step[first + i]};
    T* reached = store.reached(first + i, transition);
    for (int k = 0; k < kObservation; k++) reached[k] = observations[i * kObservation + k];
    if constexpr (kLooks) {
      if (!all_are_finite && is_non_finite<E>(rewards[i], reached)) {
        store.non_finite(first + i);
        continue;
      }
    }
    if (transition.ended())
      begin_next_episode(device, environment, environments, first + i, seed, store);
  }
}

}  // namespace rlt::detail

namespace rlt {

// Step, observe and, where an episode ends, begin the next one, of every environment, as step_all()
// does, block by block.
template <class Device, class E, int N, class Store>
void step_in_lanes(Device device, const E& environment, VectorEnvironment<E, N>& environments,
                   std::uint32_t seed, std::uint32_t step_number, std::uint32_t episode_steps,
                   const typename E::Scalar* action, Store& store) {
  constexpr bool kIsOneBlock = N > 0 && N < detail::kMaxInBlock;  // 0: known at run time only
  constexpr int kBlock = kIsOneBlock ? N : detail::kMaxInBlock;
  const int whole = environments.count();
  for (int first = 0, count = 0; first != whole; first += count) {
    count = math::minimum(kBlock, whole - first);
    detail::step_block<kBlock>(device, environment, environments, first, count, seed, step_number,
                               episode_steps, action, store);
  }
}

}  // namespace rlt
