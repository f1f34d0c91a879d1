// The generated MAVLink 2 headers (lib/protocol/rltools.xml), set up for one link and little
// memory; addresses, and which messages a receiver accepts.
#pragma once

#define MAVLINK_COMM_NUM_BUFFERS 1
#define MAVLINK_MAX_SIGNING_STREAMS 1
// Nothing is signed here; the tables of MAVLink's SHA-256 would take memory.
#define MAVLINK_NO_SIGN_PACKET
#define MAVLINK_NO_SIGNATURE_CHECK

#include <rltools/mavlink.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace rlt::link {

// Who sent a message, and whom an answer is for. Zeros address everybody.
struct Address {
  std::uint8_t system;
  std::uint8_t component;
};

constexpr bool operator==(Address a, Address b) {
  return a.system == b.system && a.component == b.component;
}

// Return whether a message with this target is for `self`.
constexpr bool reaches(Address target, Address self) {
  return (target.system == 0 || target.system == self.system) &&
         (target.component == 0 || target.component == self.component);
}

inline Address sender_of(const mavlink_message_t& message) {
  return {message.sysid, message.compid};
}

// A message that a receiver takes; frames with other ids are rejected. It has a target.
struct AcceptedMessage {
  std::uint32_t id;
  std::uint8_t crc_extra;
  std::uint8_t longest_payload;
  std::uint8_t target_system_offset;  // in the payload
  std::uint8_t target_component_offset;
};

// For example RLT_ACCEPTED_MESSAGE(PARAM_SET, param_set).
#define RLT_ACCEPTED_MESSAGE(NAME, name)                                             \
  ::rlt::link::AcceptedMessage {                                                     \
    MAVLINK_MSG_ID_##NAME, MAVLINK_MSG_ID_##NAME##_CRC, MAVLINK_MSG_ID_##NAME##_LEN, \
        std::uint8_t{offsetof(mavlink_##name##_t, target_system)}, std::uint8_t {    \
      offsetof(mavlink_##name##_t, target_component)                                 \
    }                                                                                \
  }

template <class... Messages>
constexpr std::array<AcceptedMessage, sizeof...(Messages)> accept(Messages... messages) {
  return {{messages...}};
}

// Return one table of several.
template <std::size_t... Counts>
constexpr auto join(const std::array<AcceptedMessage, Counts>&... tables) {
  std::array<AcceptedMessage, (0 + ... + Counts)> all{};
  std::size_t count = 0;
  const auto append = [&all, &count](const auto& table) {
    for (const AcceptedMessage& message : table) all[count++] = message;
  };
  (append(tables), ...);
  return all;
}

}  // namespace rlt::link
