// A pendulum on a motor, without its pins: what a turn of a potentiometer means, and what the motor
// is given for a torque. Plain C++, for any board.
#pragma once

#include "rltools/core/math.h"
#include "rltools/policy/contracts/pendulum.h"

namespace rig {

// A potentiometer on the axis, read with 12 bits; it turns once from 5 % to 95 % of its range. A
// reading beyond is a wire that is broken or shorted.
inline constexpr int kLowest = 205, kHighest = 3890, kTurn = kHighest - kLowest + 1;
inline constexpr float kPi = 3.14159265f;

struct Motor {
  bool is_enabled;
  bool is_reverse;
  int duty;  // of kFullDuty
};
inline constexpr int kFullDuty = 4095;

class Pendulum {
 public:
  // Readings in the order of their times. False where there is no observation: the reading is none,
  // or it is the first and tells no velocity.
  bool observe(int reading, std::uint32_t now_us, float (&observation)[3]) {
    if (reading < kLowest || reading > kHighest) {
      has_last_ = false;
      return false;
    }
    const float angle = static_cast<float>(reading - kLowest) * (2 * kPi / kTurn) - kPi;
    const std::uint32_t step_us = now_us - last_us_;
    float turned = angle - last_angle_;
    if (turned > kPi) turned -= 2 * kPi;
    if (turned < -kPi) turned += 2 * kPi;
    const bool is_whole = has_last_ && step_us > 0;
    if (is_whole) {
      constexpr float kMax = rlt::contracts::Pendulum::kMaxVelocity_rad_s;
      const float velocity = turned * 1e6f / static_cast<float>(step_us);
      observation[0] = rlt::math::cos(angle);
      observation[1] = rlt::math::sin(angle);
      observation[2] = rlt::math::clamp(velocity, -kMax, kMax);  // as the policy was trained
    }
    last_angle_ = angle;
    last_us_ = now_us;
    has_last_ = true;
    return is_whole;
  }

 private:
  float last_angle_ = 0;
  std::uint32_t last_us_ = 0;
  bool has_last_ = false;
};

// On a fault the torque is the contract's safe action, and the bridge is off, so that the motor
// turns freely.
inline Motor motor_for(float torque_nm, bool is_fault) {
  constexpr float kMax = rlt::contracts::Pendulum::kMaxTorque_nm;
  const float share = rlt::math::clamp(rlt::math::absolute(torque_nm) / kMax, 0.0f, 1.0f);
  return {!is_fault, torque_nm < 0, static_cast<int>(share * kFullDuty + 0.5f)};
}

}  // namespace rig
