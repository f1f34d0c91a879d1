// What a node asks of a service. A service derives from this, and hides what it does; the node
// knows its type, so that nothing is virtual.
#pragma once

#include "app/link/command.h"

namespace rlt::link {

struct Service {
  // Messages that the service takes by receive(), and what they say of the node
  // (MAV_PROTOCOL_CAPABILITY).
  static constexpr std::array<AcceptedMessage, 0> kAccepted{};
  static constexpr std::uint64_t kCapabilities = 0;

  // A message that some service takes.
  void receive(const mavlink_message_t&) {}
  // Carries out a command and acknowledges it; false where it is not this service's.
  bool obey(const Command&) { return false; }
  // One bounded piece of work; false where there is none.
  bool poll() { return false; }
  // Fields of RLT_IDENTITY and HEARTBEAT that are the service's.
  void describe_identity(mavlink_rlt_identity_t&) const {}
  void describe_state(mavlink_heartbeat_t&) const {}
};

}  // namespace rlt::link
