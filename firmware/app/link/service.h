// The functions of a service that a node calls. A service derives from this struct and redefines
// the functions that it needs. The node knows each service's type: nothing is virtual.
#pragma once

#include "app/link/command.h"

namespace rlt::link {

struct Service {
  // The messages that receive() takes; the node's capabilities (MAV_PROTOCOL_CAPABILITY) that the
  // service adds.
  static constexpr std::array<AcceptedMessage, 0> kAccepted{};
  static constexpr std::uint64_t kCapabilities = 0;

  // Receive a message of any service's table.
  void receive(const mavlink_message_t&) {}
  // Acknowledge a command and carry it out; return false where it is not this service's.
  bool obey(const Command&) { return false; }
  // Do one bounded piece of work; return false where there is none.
  bool poll() { return false; }
  // Set the fields of RLT_IDENTITY and HEARTBEAT that are the service's.
  void describe_identity(mavlink_rlt_identity_t&) const {}
  void describe_state(mavlink_heartbeat_t&) const {}
};

}  // namespace rlt::link
