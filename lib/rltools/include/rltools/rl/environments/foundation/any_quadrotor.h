// The quadrotor's task (quadrotor.h) with an airframe that is drawn for each episode from a
// distribution (quadrotor/distribution.h): what a policy learns that is to fly any drone. In
// `table_share` of the episodes it is one of the tables, by the setting `airframe`.
//
// Critics see the airframe, as numbers of about -1 to 1.
//
// An environment of its own, and no setting of the other: runs of that go on.
#pragma once

#include "rltools/rl/environments/quadrotor.h"
#include "rltools/rl/environments/quadrotor/distribution.h"

namespace rlt {

namespace quadrotor {

// Number of traits of an airframe: the logarithms of greatest thrust to weight, of torque to
// inertia about x, y and z (a rotor's, rad/s^2), of the lags of 5 ms and more; the part of the
// thrust that is proportional to the speed; drag to mass; latency.
constexpr int kTraits = 9;

// The part of a rotor's greatest thrust that a policy that knows the airframe has for a turn
// (known_quadrotor.h): half of it where a rotor turns the body by kSlowTurn rad/s^2 or less, and
// the less the more it does, by the square root.
constexpr double kSlowTurn = 80.0, kGreatestTurn = 0.5, kYawTurn = 0.25;

template <class T>
struct DrawnParameters : EpisodeParameters<T> {
  using Traits = T[kTraits];
  Traits traits;
  RLT_ADDED_FIELD_VISITS(EpisodeParameters<T>, traits)
};
template <class T>
struct AnyParameters : DrawnParameters<T> {
  Vector<T> turn;  // about x, y and z
  RLT_ADDED_FIELD_VISITS(DrawnParameters<T>, turn)
};

template <class T>
void set_traits(const Airframe<T>& a, T substep_s, AnyParameters<T>& parameters) {
  constexpr T kKgM2 = T(1e-6), kMinLag_s = T(0.005);
  const T greatest = thrust(a, T(1));
  // Logarithm of a positive number: 0 in the middle, 1 where it is `factor` times that.
  const auto scaled = [](T value, double middle, double factor) {
    return math::log(math::maximum(value, T(1e-6)) / static_cast<T>(middle)) /
           math::log(static_cast<T>(factor));
  };
  const T turn_x = a.rotor_y_m * greatest / (a.inertia_x * kKgM2);
  const T turn_y = a.rotor_x_m * greatest / (a.inertia_y * kKgM2);
  const auto part = [](T turn) {
    const T slow = math::minimum(static_cast<T>(kSlowTurn) / turn, T(1));
    return static_cast<T>(kGreatestTurn) * math::sqrt(slow);
  };
  parameters.turn[0] = part(turn_x);
  parameters.turn[1] = part(turn_y);
  parameters.turn[2] = static_cast<T>(kYawTurn);
  T* traits = parameters.traits;
  traits[0] = scaled(T(1) / parameters.hover_fraction, 2.7, 1.8);
  traits[1] = scaled(turn_x, 220.0, 5.5);
  traits[2] = scaled(turn_y, 220.0, 5.5);
  traits[3] = scaled(math::absolute(torque(a, T(1))) / (a.inertia_z * kKgM2), 20.0, 5.5);
  traits[4] = scaled(math::maximum(a.lag_up_s, kMinLag_s), 0.055, 1.8);
  traits[5] = scaled(math::maximum(a.lag_down_s, kMinLag_s), 0.095, 3.2);
  traits[6] = a.thrust_1 / greatest;
  traits[7] = (a.drag_x + a.drag_y + a.drag_z) / (T(3) * a.mass_kg);
  traits[8] = static_cast<T>(parameters.latency) * substep_s * T(50);
}

}  // namespace quadrotor

template <class T, int Ticks = 10, int Substeps = 2>
struct AnyQuadrotor : Quadrotor<T, Ticks, Substeps, quadrotor::AnySettings> {
  using Base = Quadrotor<T, Ticks, Substeps, quadrotor::AnySettings>;
  using Settings = quadrotor::AnySettings;
  using Parameters = quadrotor::AnyParameters<T>;
  static constexpr const char* kName = "AnyQuadrotor";
  static constexpr int kEpisodeSteps = 250;
  // Behind the policy's: the rotors' speeds, the gust, the traits.
  static constexpr int kPrivilegedDim = 4 + 3 + quadrotor::kTraits;
  // Return the settings of a probe. Its choice of airframe counts in half of its episodes.
  static Settings probe_settings(int probe) {
    Settings settings;
    static_cast<quadrotor::Settings&>(settings) = quadrotor::probe_settings(probe);
    settings.environment.table_share = 0.5f;
    return settings;
  }
};

template <class T, int Ticks, int Substeps>
void sample_parameters(Generic, const AnyQuadrotor<T, Ticks, Substeps>& environment,
                       quadrotor::AnyParameters<T>& parameters, RandomStream random) {
  const quadrotor::AnySettings& settings = environment.settings;
  const T substep_s = static_cast<T>(environment.kSubstep_s);
  const bool is_table = uniform<T>(random, quadrotor::kTableIndex, T(0), T(1)) <
                        static_cast<T>(settings.environment.table_share);
  const std::uint32_t table = is_table ? quadrotor::drawn_table(settings, random) : 0;
  const auto airframe =
      is_table ? quadrotor::varied(
                     quadrotor::chosen_airframe<T>(table, quadrotor::custom_airframe<T>(settings)),
                     static_cast<T>(settings.spread), random)
               : quadrotor::drawn_airframe<T>(settings.environment, random);
  quadrotor::draw_episode_of(airframe, table, settings, substep_s, Substeps, random,
                             static_cast<quadrotor::EpisodeParameters<T>&>(parameters));
  quadrotor::set_traits(airframe, substep_s, parameters);
}

template <class T, int Ticks, int Substeps>
void observe(Generic device, const AnyQuadrotor<T, Ticks, Substeps>& environment,
             const quadrotor::AnyParameters<T>& parameters,
             const typename AnyQuadrotor<T, Ticks, Substeps>::State& state, T* observation,
             RandomStream random) {
  using Environment = AnyQuadrotor<T, Ticks, Substeps>;
  using Base = typename Environment::Base;
  T seen[kCriticObservationDim<Base>];
  observe(device, static_cast<const Base&>(environment), parameters, state, seen, random);
  constexpr int kKept = Environment::kObservationDim + 4 + 3;
  unrolled<kKept>([&](int i) { observation[i] = seen[i]; });
  unrolled<quadrotor::kTraits>([&](int i) { observation[kKept + i] = parameters.traits[i]; });
}

}  // namespace rlt
