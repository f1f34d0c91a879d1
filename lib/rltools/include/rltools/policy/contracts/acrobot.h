// The observations and actions of a policy for Gymnasium's Acrobot-v1. The upper link's angle is 0
// where it hangs down, the lower link's is against the upper one; both grow counterclockwise, and
// so does the torque between the links.
#pragma once

#include "rltools/policy/contract.h"

namespace rlt::contracts {

struct Acrobot {
  static constexpr const char* kContractName = "acrobot";
  static constexpr float kMaxUpperVelocity_rad_s = 12.566371f;  // 4 pi
  static constexpr float kMaxLowerVelocity_rad_s = 28.274334f;  // 9 pi
  static constexpr std::uint32_t kStepInterval_us = 200000;
  static constexpr int kObservationDim = 6;
  static constexpr int kActionDim = 1;
  static constexpr Channel kObservations[kObservationDim] = {
      {"cos_upper", "1", -1.0f, 1.0f},
      {"sin_upper", "1", -1.0f, 1.0f},
      {"cos_lower", "1", -1.0f, 1.0f},
      {"sin_lower", "1", -1.0f, 1.0f},
      {"upper_velocity", "rad/s", -kMaxUpperVelocity_rad_s, kMaxUpperVelocity_rad_s},
      {"lower_velocity", "rad/s", -kMaxLowerVelocity_rad_s, kMaxLowerVelocity_rad_s},
  };
  static constexpr Channel kActions[kActionDim] = {
      choice("torque", "clockwise|none|counterclockwise")};
  static constexpr float kSafeAction[kActionDim] = {1.0f};  // none
};

}  // namespace rlt::contracts
