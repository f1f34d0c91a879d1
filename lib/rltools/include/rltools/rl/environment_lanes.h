// kLaneCount environments of a kind, stepped and observed in lanes (core/lanes.h): their states and
// parameters are transposed, so that loops over them load and store whole vectors, and transposed
// back. For environments whose states have many fields, where a field of many states is otherwise
// loaded number by number.
//
// The compiler makes vectors of the two loops where an environment's step() and observe() are
// straight-line code on scalars:
// - arrays are gone through by unrolled() (core/unrolled.h), and no element is chosen by data;
//   standard_normals() and uniforms() draw a few numbers (core/random.h);
// - selects, `c ? a : b` of values that are at hand, in place of branches, & in place of &&;
// - a condition that is the same for all is a number, 0 or 1, that is multiplied with;
// - what all of an episode's steps have in common, an exponential of a setting for example, stands
// in
//   Parameters.
#pragma once

#include "rltools/core/lanes.h"
#include "rltools/core/random.h"
#include "rltools/rl/environment.h"
#include "rltools/rl/non_finite_steps.h"

namespace rlt::detail {

// The compiler's own way suffices for states of a few numbers.
constexpr int kFewestWordsToTranspose = 5;

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
      return kWords<typename E::State> >= kFewestWordsToTranspose;
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

// Of lane `lane`.
template <class E>
[[gnu::always_inline]] inline typename E::Parameters parameters_of_lane(
    [[maybe_unused]] const Lanes<parameter_words<E>()>& lanes, [[maybe_unused]] int lane) {
  typename E::Parameters parameters{};
  if constexpr (kSamplesParameters<E>) read_lane(lanes, lane, parameters);
  return parameters;
}

// The environments' settings are copied, lest a setting that is used on a condition alone be loaded
// on it: the compiler does not make vectors of that.
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

// Of kLaneCount environments from `first` on: states move on by `actions` (lanes, ActionDim), and
// rewards, terminated and observations (lanes, CriticObservationDim) are set. `parameters` is null
// where all have the nominal ones. With `LooksForBroken` a state whose step is broken stays.
template <bool LooksForBroken, class Device, class E>
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
  if constexpr (LooksForBroken) {
    constexpr int kObservation = kCriticObservationDim<E>;
    if (!are_sound<E>(rewards, observations, kLaneCount)) {
      for (int i = 0; i < kLaneCount; i++) {
        if (is_broken<E>(rewards[i], observations + i * kObservation)) {
          write_lane(lanes.states, i, states[i]);
        }
      }
    }
  }
  transpose_words(device, lanes.states, states);
}

}  // namespace rlt::detail
