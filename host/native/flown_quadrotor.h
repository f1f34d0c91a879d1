// The quadrotor of a flight, tick by tick: in a steady wind (rl/environments/windy_quadrotor.h),
// with an airframe that is chosen or drawn (quadrotor/distribution.h) and may change in flight: a
// payload drops, a rotor becomes weaker. Where nothing is drawn and nothing changes, every bit is
// windy_quadrotor.h's.
#pragma once

#include "rltools/rl/environments/quadrotor/distribution.h"
#include "rltools/rl/environments/windy_quadrotor.h"

namespace rlt::flight {

// A flight that says nothing of the distribution draws no airframe from it.
struct Drawn : quadrotor::Distribution {
  Drawn() { table_share = 1.0f; }
};

// X(type, name, default, minimum, maximum, unit, description)
#define RLT_FLIGHT_CHANGES(X)                                                             \
  X(float, change_s, 5, 0, 600, "s", "When the airframe changes in flight.")              \
  X(float, payload, 0, 0, 0.9, "1", "Part of the mass that drops then, from its centre.") \
  X(float, rotor_loss, 0, 0, 1, "1",                                                      \
    "Part of its thrust that one rotor, which is drawn, loses then.")

RLT_DEFINE_HYPERPARAMETERS(Changes, RLT_FLIGHT_CHANGES)
using DrawnSettings = JoinedHyperparameters<quadrotor::WindySettings, Drawn>;
using FlownSettings = JoinedHyperparameters<DrawnSettings, Changes>;

struct FlownQuadrotor : WindyQuadrotor<float, 1, 1, FlownSettings> {
  using Windy = WindyQuadrotor<float, 1, 1, FlownSettings>;
};

// The number of an episode's stream that says which rotor loses thrust.
constexpr std::uint32_t kWeakRotorIndex = 48;

inline void sample_parameters(Generic device, const FlownQuadrotor& environment,
                              FlownQuadrotor::Parameters& parameters, RandomStream random) {
  const FlownSettings& settings = environment.settings;
  const Drawn& within = static_cast<const DrawnSettings&>(settings).environment;
  sample_parameters(device, static_cast<const FlownQuadrotor::Windy&>(environment), parameters,
                    random);
  if (uniform<float>(random, quadrotor::kTableIndex, 0.0f, 1.0f) >= within.table_share) {
    quadrotor::draw_episode_of(quadrotor::drawn_airframe<float>(within, random), 0, settings,
                               static_cast<float>(FlownQuadrotor::kSubstep_s), 1, random,
                               static_cast<quadrotor::EpisodeParameters<float>&>(parameters));
  }
}

// What becomes of an episode's airframe in flight. Its inertia stays, as the payload was in its
// centre; gusts stay accelerations.
inline void change_airframe(const Changes& changes, RandomStream random,
                            FlownQuadrotor::Parameters& parameters) {
  const float left = 1.0f - changes.payload, more = 1.0f / left;
  parameters.mass_kg *= left;
  parameters.hover_fraction *= left;
  float* const per_mass[] = {&parameters.lift_0,  &parameters.lift_1, &parameters.lift_2,
                             &parameters.drag,    &parameters.drag_y, &parameters.drag_z,
                             &parameters.per_mass};
  for (float* each : per_mass) *each *= more;
  parameters.gain[uniform_index(random, kWeakRotorIndex, 4)] *= 1.0f - changes.rotor_loss;
}

}  // namespace rlt::flight
