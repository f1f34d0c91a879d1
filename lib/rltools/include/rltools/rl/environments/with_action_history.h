// An environment whose observation ends with the last K actions, the latest first: what a policy
// needs to know of where actions work late, by a motor's lag or a delay on the way. They are as the
// policy gave them, normalized and clamped to [-1, 1]; 0, the middle of the range, before an
// episode's first ones. All else is E's:
//   using Environment = WithActionHistory<Pendulum<float>, 2>;
// Their channels are those by which an executor gives a policy its last actions
// (policy/action_history.h), which counts ticks of the contract: an environment whose step lasts
// several states `kTicksPerStep`.
#pragma once

#include "rltools/core/math.h"
#include "rltools/core/unrolled.h"
#include "rltools/rl/environment.h"
#include "rltools/rl/environments/added_channels.h"

namespace rlt {

namespace detail {

// The observations of E, and for k = 1 .. K the action k steps ago: `torque` gives `torque_t-1`,
// or `torque_t-5` where a step lasts 5 ticks.
template <class E, int K>
struct ActionHistoryChannels {
  static constexpr int kCount = K * E::kActionDim;
  struct Names {
    ConstantText<kChannelNameBytes> of[kCount];
  };

  static constexpr Names make_names() {
    Names names{};
    for (int i = 0; i < kCount; i++) {
      const int ticks = (i / E::kActionDim + 1) * E::kTicksPerStep;
      names.of[i].add(E::kActions[i % E::kActionDim].name).add("_t-").add(ticks);
    }
    return names;
  }
  static constexpr Names kNames = make_names();
  static constexpr bool names_fit() {
    for (const auto& name : kNames.of) {
      if (!name.fits()) return false;
    }
    return true;
  }

  static constexpr ChannelList<E::kObservationDim + kCount> make_channels() {
    ChannelList<kCount> own{};
    for (int i = 0; i < kCount; i++) own.of[i] = {kNames.of[i].characters, "1", -1.0f, 1.0f};
    return with_channels<E>(own);
  }
  static constexpr auto kChannels = make_channels();

  static constexpr auto kEnvironmentName =
      ConstantText<kEnvironmentNameBytes>{}.add(E::kName).add(" +").add(K).add(" actions");
};

}  // namespace detail

template <class E, int K>
struct WithActionHistory : E {
  static_assert(K >= 1 && K < 100, "an action history holds 1 to 99 actions");
  static_assert(!kIsDiscrete<E>, "an action history holds numbers, and the actions are choices");
  static_assert(detail::ActionHistoryChannels<E, K>::names_fit(),
                "an action's name is too long: with `_t-1` after it, it has 23 bytes at most");
  static_assert(detail::ActionHistoryChannels<E, K>::kEnvironmentName.fits(),
                "the environment's name is too long: with ` +1 actions` after it, it has 31 bytes "
                "at most");
  static constexpr const char* kName =
      detail::ActionHistoryChannels<E, K>::kEnvironmentName.characters;
  static constexpr int kHistoryDim = K * E::kActionDim;
  static constexpr int kObservationDim = E::kObservationDim + kHistoryDim;
  static constexpr const Channel (&kObservations)[kObservationDim] =
      detail::ActionHistoryChannels<E, K>::kChannels.of;

  // Return the image of an element; mirrors are E's, if it has any.
  static constexpr Mirrored mirrored_observation(int mirror, int element) {
    const int past = element - E::kObservationDim;
    if (past < 0) return E::mirrored_observation(mirror, element);
    if (past >= kHistoryDim) {
      const Mirrored privileged = E::mirrored_observation(mirror, element - kHistoryDim);
      return {privileged.element + kHistoryDim, privileged.sign};
    }
    const int action = past % E::kActionDim;
    const Mirrored mirrored = E::mirrored_action(mirror, action);
    return {element - action + mirrored.element, mirrored.sign};
  }

  struct State : E::State {
    using Actions = typename E::Scalar[kHistoryDim];
    Actions last_actions;
    RLT_ADDED_FIELD_VISITS(E::State, last_actions)
  };
};

template <class Device, class E, int K>
void reset(Device device, const WithActionHistory<E, K>& environment,
           const typename E::Parameters& parameters, typename WithActionHistory<E, K>::State& state,
           RandomStream random) {
  reset(device, static_cast<const E&>(environment), parameters,
        static_cast<typename E::State&>(state), random);
  for (auto& value : state.last_actions) value = typename E::Scalar(0);
}

template <class Device, class E, int K>
StepResult<typename E::Scalar> step(Device device, const WithActionHistory<E, K>& environment,
                                    const typename E::Parameters& parameters,
                                    typename WithActionHistory<E, K>::State& state,
                                    const typename E::Scalar* action, RandomStream random) {
  using T = typename E::Scalar;
  constexpr int kAction = E::kActionDim;
  constexpr int kLast = K * kAction - 1;
  unrolled<(K - 1) * kAction>(
      [&](int i) { state.last_actions[kLast - i] = state.last_actions[kLast - i - kAction]; });
  unrolled<kAction>([&](int i) { state.last_actions[i] = math::clamp(action[i], T(-1), T(1)); });
  return step(device, static_cast<const E&>(environment), parameters,
              static_cast<typename E::State&>(state), action, random);
}

template <class Device, class E, int K>
void observe(Device device, const WithActionHistory<E, K>& environment,
             const typename E::Parameters& parameters,
             const typename WithActionHistory<E, K>::State& state, typename E::Scalar* observation,
             RandomStream random) {
  observe(device, static_cast<const E&>(environment), parameters,
          static_cast<const typename E::State&>(state), observation, random);
  detail::insert_observations<E, K * E::kActionDim>(state.last_actions, observation);
}

}  // namespace rlt
