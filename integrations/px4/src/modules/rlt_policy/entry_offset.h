// The position of the target when the mode is entered, seen from the vehicle: for flights from a
// start that is not the target. In the frame of the target, in meters, packed into one word, so
// that the shell's task can hand it to the one that flies.
#pragma once

#include <cstdint>

#include "rltools/core/math.h"
#include "rltools/policy/contracts/quadrotor.h"

namespace rlt::px4 {

struct EntryOffset {
  static constexpr float kStep_m = 0.01f;
  // Along an axis, by what it is packed into; the policy's entry envelope is narrower.
  static constexpr int kMaxSteps = 500;
  static_assert(kStep_m * kMaxSteps <= contracts::Quadrotor::kMaxPositionError_m, "observed");

  // Pack an offset, to the nearest step; 0 where it is too far, or no number.
  static std::int32_t pack(const float* offset_m) {
    std::uint32_t packed = 1;
    for (int i = 0; i < 3; i++) {
      const float steps = offset_m[i] / kStep_m;
      if (!(math::absolute(steps) < kMaxSteps + 0.5f)) return 0;
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
  static float distance_m(std::int32_t packed) {
    float v[3];
    unpack(packed, v);
    return math::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  }
};

}  // namespace rlt::px4
