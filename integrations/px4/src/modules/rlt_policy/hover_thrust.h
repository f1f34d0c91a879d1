// The thrust at which the vehicle hovers, as PX4 estimates it: what the rotors get from a fault
// until the fallback acts, so that it takes over what it would command itself.
#pragma once

#include <cstdint>

namespace rlt::px4 {

struct HoverThrust {
  std::uint64_t taken_us = 0;  // 0: PX4 has no valid one
  float part = 0.0f;           // of a rotor's greatest thrust
};

// PX4 estimates within these.
constexpr float kLeastHover = 0.1f, kMaxHover = 0.9f;
constexpr std::uint32_t kOldestHover_us = 1000000;

// Return the thrust of a fault; `otherwise` where it is not known.
inline float thrust_of_fault(const HoverThrust& hover, std::uint64_t now_us, float otherwise) {
  const bool is_new =
      hover.taken_us != 0 && now_us >= hover.taken_us && now_us - hover.taken_us <= kOldestHover_us;
  const bool is_sound = hover.part >= kLeastHover && hover.part <= kMaxHover;  // a NaN is not
  return is_new && is_sound ? hover.part : otherwise;
}

}  // namespace rlt::px4
