// The quadrotor of a flight, tick by tick: in a steady wind (rl/environments/windy_quadrotor.h),
// with an airframe that is chosen or drawn (quadrotor/distribution.h) and may change in flight: a
// payload drops, a rotor becomes weaker; or with a + frame. Where nothing is drawn and nothing
// changes, every bit is windy_quadrotor.h's.
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
  X(float, payload, 0, 0, 0.9, "1", "Part of the mass that drops then, from its center.") \
  X(float, rotor_loss, 0, 0, 1, "1",                                                      \
    "Part of its thrust that one rotor, which is drawn, loses then.")                     \
  X(std::uint32_t, plus_frame, 0, 0, 1, "",                                               \
    "1: a + frame, whose inertias are those about its arms.")

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

// Change an episode's airframe in flight. Its inertia stays, as the payload was in its center;
// gusts stay accelerations.
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

// + frames.
//
// Who flies one takes the direction between two arms for forward: rotor 3, front left, is on the
// arm that points ahead, and so the rotors are those of the contract. What is about the body's axes
// in the airframe, inertias and drag, is about the arms then, and body axes through them are the
// principal ones: observations and what is drawn know nothing of them. An arm is as long as the
// distance of the X frame's rotors from the center.

// The airframe's parameters as those about the arms.
struct PlusFrame : FlownQuadrotor::Parameters {
  explicit PlusFrame(const FlownQuadrotor::Parameters& parameters)
      : FlownQuadrotor::Parameters(parameters) {}
};

// Return the effect of the rotors. A rotor's arm is the square root of 2 times its distance from an
// axis of the X frame; two rotors turn the body about each arm.
template <class T>
[[gnu::always_inline]] inline quadrotor::RotorEffect<T> rotor_effect(
    const PlusFrame& d, const quadrotor::RotorEffect<T>& push, T right, T rear, T left, T front) {
  constexpr T kLonger = static_cast<T>(1.41421356237309505);
  const auto sum = [&](T first, T second, T of_speed, T of_square, T pushed) {
    const T turn = of_square * (first * first - second * second) + of_speed * (first - second);
    return math::fma(kLonger, turn, pushed);
  };
  auto effect = quadrotor::rotor_effect<T>(static_cast<const quadrotor::EpisodeParameters<T>&>(d),
                                           push, right, rear, left, front);
  effect.roll = sum(left, right, d.roll_1, d.roll_2, push.roll);
  effect.pitch = sum(rear, front, d.pitch_1, d.pitch_2, push.pitch);
  return effect;
}

// Turn the body's axes by 45 degrees about z, to the left, or back. Sums of products alone: of sums
// beside differences GCC 12 makes vfmaddsub, whatever -ffp-contract says.
template <class Body>
void turn_axes(Body& body, float left) {
  constexpr float kCosine = 0.9238795325f, kSine = 0.3826834324f, kDiagonal = 0.7071067812f;
  float* q = body.attitude;
  const float w = q[0], x = q[1], y = q[2], z = q[3], sine = left * kSine, minus = -left * kSine;
  q[0] = kCosine * w + minus * z;
  q[1] = kCosine * x + sine * y;
  q[2] = kCosine * y + minus * x;
  q[3] = kCosine * z + sine * w;
  float* rate = body.angular_velocity_rad_s;
  const float roll = rate[0], pitch = rate[1];
  rate[0] = kDiagonal * (roll + left * pitch);
  rate[1] = kDiagonal * (pitch - left * roll);
}

// Step as step() of quadrotor.h does, for a tick; not a form of that one, which compilers would no
// longer step in lanes.
inline StepResult<float> step_plus(const FlownQuadrotor& environment,
                                   const FlownQuadrotor::Parameters& parameters,
                                   FlownQuadrotor::State& state, const float* action,
                                   RandomStream random) {
  constexpr float kTick_s = static_cast<float>(FlownQuadrotor::kSubstep_s);
  const FlownSettings& settings = environment.settings;
  float fraction[4], commanded[4], setpoint[4], force[3], change = 0.0f;
  const float no_torque[3] = {0.0f, 0.0f, 0.0f};
  for (int i = 0; i < 4; i++) {
    const float normalized = math::clamp(action[i], -1.0f, 1.0f);
    const float difference = normalized - state.last_action[i];
    change = math::fma(difference, difference, change);
    state.last_action[i] = normalized;
    fraction[i] = parameters.gain[i] * math::fma(0.5f, normalized, 0.5f);
  }
  quadrotor::rotor_setpoints<float>(parameters, fraction, commanded);
  const bool is_lost = uniform<float>(random, quadrotor::kLossIndex, 0.0f, 1.0f) < settings.loss;
  float* held = state.held_setpoint;  // four of each tick, the latest first
  for (int i = 0; i < 4; i++) commanded[i] = is_lost ? held[i] : commanded[i];
  const auto latency = static_cast<int>(parameters.latency);
  for (int i = 0; i < 4; i++) {
    setpoint[i] = latency == 0 ? commanded[i] : held[4 * (latency - 1) + i];
  }
  quadrotor::shift_gust(settings, parameters, state);
  quadrotor::disturb<float>(settings, parameters, state, kTick_s, random);
  for (int i = 0; i < 3; i++) force[i] = state.gust_m_s2[i] * parameters.mass_kg;
  turn_axes(state, 1.0f);
  quadrotor::rk4_step<float>(PlusFrame(parameters), state, setpoint, force, no_torque);
  turn_axes(state, -1.0f);
  for (int i = 4 * quadrotor::held_actions(1) - 1; i >= 4; i--) held[i] = held[i - 4];
  for (int i = 0; i < 4; i++) held[i] = commanded[i];
  const float* rate = state.angular_velocity_rad_s;
  quadrotor::move_target<float>(settings, state, kTick_s, random);
  return quadrotor::judge<float>(settings, state, change,
                                 quadrotor::largest(rate[0], rate[1], rate[2]));
}

}  // namespace rlt::flight
