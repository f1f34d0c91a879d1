// The states in which a quadrotor's policy may be handed the vehicle: a vehicle that is slow, near,
// level and high enough for it to recover. The bounds are measured (docs/gate.md, "What a policy
// may be handed"), stand in the policy's image, and are checked by a flight controller before the
// policy acts.
#pragma once

#include <cstdint>

#include "rltools/core/finite.h"
#include "rltools/core/math.h"

namespace rlt {

// Bounds that hold together: a policy recovers from any state within all of them.
struct EntryEnvelope {
  float speed_m_s;   // largest, against the target's
  float offset_m;    // largest distance from the target
  float tilt_rad;    // largest, from level
  float rate_rad_s;  // largest turn rate, about any axis
  float height_m;    // least, above ground, at these bounds: height_needed()
};

// The same of a vehicle now. The height is the lower one of the vehicle's and its target's; one
// that is not known is not a number.
struct EntryState {
  float speed_m_s, offset_m, tilt_rad, rate_rad_s, height_m;
};

// The part of `height_m` that is needed at rest, too. The rest is for what a recovery loses, and is
// needed as far as the state goes to a bound: a vehicle that hovers need not be as high as one that
// is fast.
constexpr float kEntryMargin_m = 0.5f;

// The envelope of an image that states none: from rest, at the target. The shipped recipes'
// policies tilt by at most 45 degrees from there, and lose 0.1 m of height (docs/gate.md).
constexpr EntryEnvelope kEntryAtRest = {0.5f, 0.3f, 0.35f, 1.0f, 0.5f};

// Obstacles to handing a policy the vehicle, in the order in which they are looked for.
enum class EntryObstacle : std::uint8_t {
  none,
  not_finite,
  too_fast,
  too_far,
  too_tilted,
  turns_too_fast,
  too_low
};

// Return a text of at most 38 characters: PX4's log messages to the ground have 50.
constexpr const char* entry_obstacle_text(EntryObstacle obstacle) {
  switch (obstacle) {
    case EntryObstacle::none: return "may be handed over";
    case EntryObstacle::not_finite: return "a measurement is not finite";
    case EntryObstacle::too_fast: return "too fast for this policy";
    case EntryObstacle::too_far: return "target too far away for this policy";
    case EntryObstacle::too_tilted: return "tilted too far for this policy";
    case EntryObstacle::turns_too_fast: return "turns too fast for this policy";
    case EntryObstacle::too_low: return "too low for this policy";
  }
  return "unknown reason";
}

// Return how far a state goes to the bound that it is nearest to: 0 at rest, 1 at a bound.
inline float part_of_bounds(const EntryEnvelope& envelope, const EntryState& state) {
  const float values[] = {state.speed_m_s, state.offset_m, state.tilt_rad, state.rate_rad_s};
  const float bounds[] = {envelope.speed_m_s, envelope.offset_m, envelope.tilt_rad,
                          envelope.rate_rad_s};
  float part = 0.0f;
  for (int i = 0; i < 4; i++) {
    if (values[i] > 0.0f) part = math::maximum(part, values[i] / bounds[i]);
  }
  return part;
}

// Return the minimum height for a state within the bounds.
inline float height_needed(const EntryEnvelope& envelope, const EntryState& state) {
  const float at_rest = math::minimum(envelope.height_m, kEntryMargin_m);
  return at_rest + (envelope.height_m - at_rest) * part_of_bounds(envelope, state);
}

// Return the first obstacle of a state. One that is equal to a bound may enter. A height that is
// not known is no obstacle: not every vehicle measures it, and its pilot sees the ground. All else
// must be known.
inline EntryObstacle entry_obstacle(const EntryEnvelope& envelope, const EntryState& state) {
  if (!is_finite(state.speed_m_s) || !is_finite(state.offset_m) || !is_finite(state.tilt_rad) ||
      !is_finite(state.rate_rad_s)) {
    return EntryObstacle::not_finite;
  }
  if (!(state.speed_m_s <= envelope.speed_m_s)) return EntryObstacle::too_fast;
  if (!(state.offset_m <= envelope.offset_m)) return EntryObstacle::too_far;
  if (!(state.tilt_rad <= envelope.tilt_rad)) return EntryObstacle::too_tilted;
  if (!(state.rate_rad_s <= envelope.rate_rad_s)) return EntryObstacle::turns_too_fast;
  if (state.height_m < height_needed(envelope, state)) return EntryObstacle::too_low;
  return EntryObstacle::none;
}

namespace detail {

inline float length_of_3(const float* v) {
  return math::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

// Return the angle whose sine is in [0, 1], within 7e-5 (Abramowitz and Stegun, 4.4.45) where it is
// not near 1.
inline float arc_sine(float sine) {
  const float series = 1.5707288f + sine * (-0.2121144f + sine * (0.0742610f + sine * -0.0187293f));
  return 1.57079633f - math::sqrt(1.0f - sine) * series;
}

// Return the angle from level of a rotation (w, x, y, z).
inline float tilt_of(const float* q) {
  const float sine = math::sqrt(q[1] * q[1] + q[2] * q[2]);
  const float cosine = math::sqrt(q[0] * q[0] + q[3] * q[3]);
  return sine < cosine ? 2.0f * arc_sine(sine) : 3.14159265f - 2.0f * arc_sine(cosine);
}

}  // namespace detail

// Return the state of an observation of policy/contracts/quadrotor.h (13 numbers), and the
// vehicle's height above ground, or math::kQuietNan where it is not known.
inline EntryState entry_state(const float* observation, float height_m) {
  return {detail::length_of_3(observation + 3), detail::length_of_3(observation),
          detail::tilt_of(observation + 6), detail::length_of_3(observation + 10),
          height_m - math::maximum(observation[2], 0.0f)};
}

}  // namespace rlt
