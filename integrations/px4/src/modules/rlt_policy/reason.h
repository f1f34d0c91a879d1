// Why the policy does not act, in the words that the ground reads.
#pragma once

#include <cstdint>

#include "rltools/policy/entry_envelope.h"

namespace rlt::px4 {

enum class Reason : std::uint8_t {
  none,
  loading,
  no_policy,
  policy_failed,
  trial_over,
  rotors_differ,
  rates_missing,
  rates_stale,
  rates_frozen,
  attitude_missing,
  attitude_stale,
  attitude_invalid,
  position_missing,
  position_stale,
  position_invalid,
  not_finite,
  out_of_range,
  clock,
  on_ground,
  too_fast,
  too_far,
  too_tilted,
  turns_too_fast,
  height_unknown,
  too_low,
};
constexpr int kReasonCount = 25;

// Return a text of at most 38 characters: PX4's log messages to the ground have 50.
constexpr const char* reason_text(Reason reason) {
  switch (reason) {
    case Reason::none: return "ready";
    case Reason::loading: return "policy is being loaded";
    case Reason::no_policy: return "no policy";
    case Reason::policy_failed: return "policy gave a number that is not finite";
    case Reason::trial_over: return "trial is over";
    case Reason::rotors_differ: return "rotors differ from the contract";
    case Reason::rates_missing: return "no angular velocity";
    case Reason::rates_stale: return "angular velocity too old";
    case Reason::rates_frozen: return "angular velocity does not change";
    case Reason::attitude_missing: return "no attitude";
    case Reason::attitude_stale: return "attitude too old";
    case Reason::attitude_invalid: return "attitude is no rotation";
    case Reason::position_missing: return "no local position";
    case Reason::position_stale: return "local position too old";
    case Reason::position_invalid: return "local position not valid";
    case Reason::not_finite: return "a measurement is not finite";
    case Reason::out_of_range: return "outside the range of the policy";
    case Reason::clock: return "measurements out of order";
    case Reason::on_ground: return "on the ground: take off first";
    case Reason::too_fast: return entry_obstacle_text(EntryObstacle::too_fast);
    case Reason::too_far: return entry_obstacle_text(EntryObstacle::too_far);
    case Reason::too_tilted: return entry_obstacle_text(EntryObstacle::too_tilted);
    case Reason::turns_too_fast: return entry_obstacle_text(EntryObstacle::turns_too_fast);
    case Reason::height_unknown: return "height above ground not known";
    case Reason::too_low: return entry_obstacle_text(EntryObstacle::too_low);
  }
  return "unknown reason";
}

constexpr Reason reason_of_entry(EntryObstacle obstacle) {
  switch (obstacle) {
    case EntryObstacle::none: return Reason::none;
    case EntryObstacle::not_finite: return Reason::not_finite;
    case EntryObstacle::too_fast: return Reason::too_fast;
    case EntryObstacle::too_far: return Reason::too_far;
    case EntryObstacle::too_tilted: return Reason::too_tilted;
    case EntryObstacle::turns_too_fast: return Reason::turns_too_fast;
    case EntryObstacle::too_low: return Reason::too_low;
  }
  return Reason::not_finite;
}

}  // namespace rlt::px4
