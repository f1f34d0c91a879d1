// The generated MAVLink 2 headers (lib/protocol/rltools.xml), set up for one link and little
// memory.
#pragma once

#define MAVLINK_COMM_NUM_BUFFERS 1
#define MAVLINK_MAX_SIGNING_STREAMS 1

#include <rltools/mavlink.h>

#include <cstdint>

namespace rlt::link {

constexpr std::uint8_t kSystem = 1;
constexpr std::uint8_t kComponent = MAV_COMP_ID_AUTOPILOT1;

// Who sent a message, and whom an answer is for.
struct Address {
  std::uint8_t system;
  std::uint8_t component;
};

inline Address sender_of(const mavlink_message_t& message) {
  return {message.sysid, message.compid};
}

// Zero addresses everybody.
inline bool is_for_us(std::uint8_t target_system, std::uint8_t target_component) {
  return (target_system == 0 || target_system == kSystem) &&
         (target_component == 0 || target_component == kComponent);
}

}  // namespace rlt::link
