// Where the target is when the mode is entered, seen from the vehicle: for flights from a start
// that is not the target. In the frame of the target, in metres, packed into one word, so that the
// shell's task can hand it to the one that flies.
#pragma once

#include <cstdint>

#include "rltools/core/math.h"
#include "rltools/policy/contracts/quadrotor.h"

namespace rlt::px4 {

struct EntryOffset {
  static constexpr float kStep_m = 0.01f;
  static constexpr int kMostSteps = 250;
  static constexpr float kMost_m = kStep_m * kMostSteps;  // along an axis
  static_assert(kMost_m <= 0.5f * contracts::Quadrotor::kMaxPositionError_m, "as a setpoint");

  // To the nearest step; 0 where it is too far, or no number.
  static std::int32_t pack(const float* offset_m) {
    std::uint32_t packed = 1;
    for (int i = 0; i < 3; i++) {
      const float steps = offset_m[i] / kStep_m;
      if (!(math::absolute(steps) < kMostSteps + 0.5f)) return 0;
      const int whole = static_cast<int>(steps + (steps < 0.0f ? -0.5f : 0.5f));
      packed = packed << 10 | static_cast<std::uint32_t>(whole + 512);
    }
    return static_cast<std::int32_t>(packed);
  }
  static void unpack(std::int32_t packed, float* offset_m) {
    const auto bits = static_cast<std::uint32_t>(packed);
    for (int i = 0; i < 3; i++) {
      const int whole = static_cast<int>(bits >> (20 - 10 * i) & 1023u) - 512;
      offset_m[i] = kStep_m * static_cast<float>(whole);
    }
  }
};

}  // namespace rlt::px4
