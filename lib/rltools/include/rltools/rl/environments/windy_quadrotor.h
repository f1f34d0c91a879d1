// The quadrotor's task (quadrotor.h) in a wind that stays: an episode draws its acceleration w, 0
// to `wind_m_s2`, in any horizontal direction. The gusts g of quadrotor.h vary about it:
//   g' = w + keeps (g - w) + changes n
// which is what quadrotor.h makes of g + w (1 - keeps) / keeps. So the gust of its state is all of
// the wind, which critics see, and without a wind every bit is quadrotor.h's.
//
// An acceleration, as that is what a vehicle feels: a wind of u m/s gives drag / mass * u, which of
// one and the same wind differs by vehicle. docs/gate.md has some in m/s.
//
// An environment of its own, and no setting of the other: runs of that go on.
#pragma once

#include "rltools/rl/environments/quadrotor.h"

namespace rlt {

namespace quadrotor {

template <class T>
struct WindyParameters : EpisodeParameters<T> {
  Vector<T> wind_m_s2;  // in the world
  RLT_ADDED_FIELD_VISITS(EpisodeParameters<T>, wind_m_s2)
};

// The numbers of an episode's stream that its wind takes.
constexpr std::uint32_t kWindSpeedIndex = 15, kWindDirectionIndex = 16;

inline const Wind& wind_of(const WindySettings& settings) { return settings.environment; }

// Shift the gust before a step, so that quadrotor.h's is one about the wind.
template <class T, class State>
void shift_gust(const WindySettings& settings, const WindyParameters<T>& parameters, State& state) {
  const bool blows = wind_of(settings).wind_m_s2 > 0.0f;
  const T part = (T(1) - parameters.gust_keeps) / parameters.gust_keeps;
  unrolled<3>([&](int i) {
    const T shifted = math::fma(part, parameters.wind_m_s2[i], state.gust_m_s2[i]);
    state.gust_m_s2[i] = blows ? shifted : state.gust_m_s2[i];
  });
}

}  // namespace quadrotor

// `ItsSettings` are quadrotor::WindySettings, or derive from them.
template <class T, int Ticks = 20, int Substeps = 8, class ItsSettings = quadrotor::WindySettings>
struct WindyQuadrotor : Quadrotor<T, Ticks, Substeps, ItsSettings> {
  using Calm = Quadrotor<T, Ticks, Substeps, ItsSettings>;
  using Settings = ItsSettings;
  using Parameters = quadrotor::WindyParameters<T>;
  static constexpr const char* kName = "WindyQuadrotor";
  static constexpr int kEpisodeSteps = 125;
  static Settings probe_settings(int probe) {
    Settings settings;
    static_cast<quadrotor::Settings&>(settings) = quadrotor::probe_settings(probe);
    settings.environment.wind_m_s2 = 3.0f;
    return settings;
  }
};

template <class T, int Ticks, int Substeps, class S>
void sample_parameters(Generic device, const WindyQuadrotor<T, Ticks, Substeps, S>& environment,
                       quadrotor::WindyParameters<T>& parameters, RandomStream random) {
  using Calm = typename WindyQuadrotor<T, Ticks, Substeps, S>::Calm;
  sample_parameters(device, static_cast<const Calm&>(environment),
                    static_cast<quadrotor::EpisodeParameters<T>&>(parameters), random);
  constexpr T kTurn = static_cast<T>(6.283185307179586);
  const T wind = static_cast<T>(quadrotor::wind_of(environment.settings).wind_m_s2) *
                 uniform<T>(random, quadrotor::kWindSpeedIndex, T(0), T(1));
  const auto direction =
      math::sincos(kTurn * uniform<T>(random, quadrotor::kWindDirectionIndex, T(0), T(1)));
  parameters.wind_m_s2[0] = wind * direction.cosine;
  parameters.wind_m_s2[1] = wind * direction.sine;
  parameters.wind_m_s2[2] = T(0);
}

template <class T, int Ticks, int Substeps, class S>
void reset(Generic device, const WindyQuadrotor<T, Ticks, Substeps, S>& environment,
           const quadrotor::WindyParameters<T>& parameters,
           typename WindyQuadrotor<T, Ticks, Substeps, S>::State& state, RandomStream random) {
  using Calm = typename WindyQuadrotor<T, Ticks, Substeps, S>::Calm;
  reset(device, static_cast<const Calm&>(environment), parameters, state, random);
  const bool blows = quadrotor::wind_of(environment.settings).wind_m_s2 > 0.0f;
  unrolled<3>([&](int i) {
    const T wind = state.gust_m_s2[i] + parameters.wind_m_s2[i];
    state.gust_m_s2[i] = blows ? wind : state.gust_m_s2[i];
  });
}

template <class T, int Ticks, int Substeps, class S>
StepResult<T> step(Generic device, const WindyQuadrotor<T, Ticks, Substeps, S>& environment,
                   const quadrotor::WindyParameters<T>& parameters,
                   typename WindyQuadrotor<T, Ticks, Substeps, S>::State& state, const T* action,
                   RandomStream random) {
  using Calm = typename WindyQuadrotor<T, Ticks, Substeps, S>::Calm;
  quadrotor::shift_gust(environment.settings, parameters, state);
  return step(device, static_cast<const Calm&>(environment), parameters, state, action, random);
}

}  // namespace rlt
