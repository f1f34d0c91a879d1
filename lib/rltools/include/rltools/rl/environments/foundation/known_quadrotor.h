// The quadrotor with any airframe (any_quadrotor.h) for a policy that knows it: a teacher, whose
// actions another policy learns that does not (rl/algorithms/distillation/distillation.h).
//
// It sees what a policy sees, the rotors' speeds and commands, the gust and the airframe. Its
// actions are lift and the turns about x, y and z, and so is what it sees of the rotors: of lift
// -1 is no thrust, 0 hover's and 1 the greatest; a turn is a part of the rotors' thrusts, the
// smaller the faster this airframe turns by it. So the same numbers do about the same with all
// airframes, and zeros hover.
#pragma once

#include "rltools/rl/environments/added_channels.h"
#include "rltools/rl/environments/foundation/any_quadrotor.h"

namespace rlt {

namespace quadrotor {

// Further observations of a policy that knows its airframe.
inline constexpr detail::ChannelList<4 + 4 + 3 + kTraits> kKnownChannels = {
    {// the rotors' speeds, and their commands
     {"lift", "1", -1.0f, 10.0f},
     {"turn_x", "1", -10.0f, 10.0f},
     {"turn_y", "1", -10.0f, 10.0f},
     {"turn_z", "1", -10.0f, 10.0f},
     {"lift_told", "1", -1.0f, 10.0f},
     {"turn_x_told", "1", -10.0f, 10.0f},
     {"turn_y_told", "1", -10.0f, 10.0f},
     {"turn_z_told", "1", -10.0f, 10.0f},
     {"gust_x", "m/s", -30.0f, 30.0f},
     {"gust_y", "m/s", -30.0f, 30.0f},
     {"gust_z", "m/s", -30.0f, 30.0f},
     // the traits, in their order
     {"thrust_to_weight", "1", -10.0f, 10.0f},
     {"torque_to_inertia_x", "1", -10.0f, 10.0f},
     {"torque_to_inertia_y", "1", -10.0f, 10.0f},
     {"torque_to_inertia_z", "1", -10.0f, 10.0f},
     {"lag_up", "1", -10.0f, 10.0f},
     {"lag_down", "1", -10.0f, 10.0f},
     {"thrust_by_speed", "1", -10.0f, 10.0f},
     {"drag_to_mass", "1/s", 0.0f, 100.0f},
     {"latency", "1", 0.0f, 10.0f}}};

}  // namespace quadrotor

template <class T, int Ticks = 10, int Substeps = 2>
struct KnownQuadrotor : AnyQuadrotor<T, Ticks, Substeps> {
  using Unknown = AnyQuadrotor<T, Ticks, Substeps>;
  static constexpr const char* kName = "KnownQuadrotor";
  static constexpr const char* kContractName = nullptr;  // its channels are its own
  static constexpr int kEpisodeSteps = 250;
  static constexpr int kSeenDim = contracts::Quadrotor::kObservationDim;
  static constexpr int kObservationDim = kSeenDim + 4 + 4 + 3 + quadrotor::kTraits;
  static constexpr int kPrivilegedDim = 0;
  static constexpr auto kChannels =
      detail::with_channels<contracts::Quadrotor>(quadrotor::kKnownChannels);
  static constexpr const Channel (&kObservations)[kObservationDim] = kChannels.of;
  static constexpr Channel kActions[4] = {{"lift", "1", -1.0f, 1.0f},
                                          {"turn_x", "1", -1.0f, 1.0f},
                                          {"turn_y", "1", -1.0f, 1.0f},
                                          {"turn_z", "1", -1.0f, 1.0f}};

  static constexpr Mirrored mirrored_action(int mirror, int i) {
    return {i, i == 3 || i == 1 + mirror ? -1 : 1};
  }
  static constexpr Mirrored mirrored_observation(int mirror, int i) {
    if (i < kSeenDim) return Unknown::mirrored_observation(mirror, i);
    const int behind = i - kSeenDim;  // rotors, commands, gust, traits
    if (behind < 8) return {i, mirrored_action(mirror, behind % 4).sign};
    return {i, behind == 8 + 1 - mirror ? -1 : 1};
  }
};

namespace quadrotor {

// Compute the lift and the turns of rotors with these parts of their greatest thrust.
template <class T>
void lift_and_turns(const AnyParameters<T>& parameters, const T (&fraction)[4], T (&result)[4]) {
  const T right = fraction[0] + fraction[1], left = fraction[2] + fraction[3];
  const T right_turn = fraction[1] - fraction[0], left_turn = fraction[3] - fraction[2];
  result[0] = T(0.25) * (right + left) / parameters.hover_fraction - T(1);
  result[1] = T(0.25) * (left - right) / parameters.turn[0];
  result[2] = T(0.25) * (right_turn - left_turn) / parameters.turn[1];
  result[3] = T(0.25) * (right_turn + left_turn) / parameters.turn[2];
}

}  // namespace quadrotor

// Translate a policy's action here into that of `AnyQuadrotor`.
template <class T, int Ticks, int Substeps>
void translate_action(Generic, const KnownQuadrotor<T, Ticks, Substeps>&,
                      const quadrotor::AnyParameters<T>& parameters, const T* action, T* result) {
  T a[4];
  unrolled<4>([&](int i) { a[i] = math::clamp(action[i], T(-1), T(1)); });
  const T hover = parameters.hover_fraction;
  const T lift = math::fma(a[0], a[0] > T(0) ? T(1) - hover : hover, hover);
  const T x = a[1] * parameters.turn[0], y = a[2] * parameters.turn[1];
  const T z = a[3] * parameters.turn[2];
  const T fraction[4] = {lift - x - y - z, lift - x + y + z, lift + x + y - z, lift + x - y + z};
  unrolled<4>(
      [&](int i) { result[i] = math::clamp(math::fma(T(2), fraction[i], T(-1)), T(-1), T(1)); });
}

template <class T, int Ticks, int Substeps>
StepResult<T> step(Generic device, const KnownQuadrotor<T, Ticks, Substeps>& environment,
                   const quadrotor::AnyParameters<T>& parameters,
                   typename KnownQuadrotor<T, Ticks, Substeps>::State& state, const T* action,
                   RandomStream random) {
  using Unknown = typename KnownQuadrotor<T, Ticks, Substeps>::Unknown;
  T rotors[4];
  translate_action(device, environment, parameters, action, rotors);
  return step(device, static_cast<const Unknown&>(environment), parameters, state, rotors, random);
}

template <class T, int Ticks, int Substeps>
void observe(Generic device, const KnownQuadrotor<T, Ticks, Substeps>& environment,
             const quadrotor::AnyParameters<T>& parameters,
             const typename KnownQuadrotor<T, Ticks, Substeps>::State& state, T* observation,
             RandomStream random) {
  using Environment = KnownQuadrotor<T, Ticks, Substeps>;
  using Unknown = typename Environment::Unknown;
  constexpr int kSeen = Environment::kSeenDim, kBehind = kSeen + 4;  // the rotors' speeds
  T seen[kCriticObservationDim<Unknown>];
  observe(device, static_cast<const Unknown&>(environment), parameters, state, seen, random);
  unrolled<kSeen>([&](int i) { observation[i] = seen[i]; });
  T thrust[4], commanded[4], effect[4], wanted[4];
  const T greatest = parameters.thrust_0 + parameters.thrust_1 + parameters.thrust_2;
  unrolled<4>([&](int i) {
    const T speed = seen[kSeen + i];
    thrust[i] = math::fma(math::fma(parameters.thrust_2, speed, parameters.thrust_1), speed,
                          parameters.thrust_0) /
                greatest;
    commanded[i] = math::fma(T(0.5), state.last_action[i], T(0.5));
  });
  quadrotor::lift_and_turns(parameters, thrust, effect);
  quadrotor::lift_and_turns(parameters, commanded, wanted);
  unrolled<4>([&](int i) {
    observation[kSeen + i] = effect[i];
    observation[kSeen + 4 + i] = wanted[i];
  });
  unrolled<3 + quadrotor::kTraits>([&](int i) { observation[kSeen + 8 + i] = seen[kBehind + i]; });
}

}  // namespace rlt
