// A node of the link: receives frames and hands them to its services, says who it is and that it
// lives (docs/protocol.md). It never waits for the host.
#pragma once

#include <tuple>

#include "app/link/board_time.h"
#include "app/link/frame_receiver.h"
#include "app/link/revision.h"
#include "app/link/service.h"

namespace rlt::link {

constexpr std::uint16_t kProtocolVersion = 3;

// Names for the identity message.
struct NodeNames {
  const char* board;
  const char* device;
};

template <class... Services>
class Node {
 public:
  // The services receive and work in this order.
  Node(Transport transport, Address self, NodeNames names, MessageSender& sender,
       HeartbeatClock& heartbeat, Services&... services)
      : transport_(transport),
        names_(names),
        sender_(sender),
        heartbeat_(heartbeat),
        receiver_(self),
        services_(services...) {}

  // Handle what has arrived, send a heartbeat if one is due, and do one piece of work of each
  // service. Return false if there was nothing to do.
  bool poll() {
    bool active = receive();
    if (heartbeat_.strike()) send_heartbeat();
    for_each([&active](auto& service) { active |= service.poll(); });
    return active;
  }

 private:
  static constexpr auto kAccepted = join(accept(RLT_ACCEPTED_MESSAGE(COMMAND_LONG, command_long),
                                                RLT_ACCEPTED_MESSAGE(COMMAND_INT, command_int)),
                                         Services::kAccepted...);
  static constexpr std::uint64_t kCapabilities =
      (MAV_PROTOCOL_CAPABILITY_MAVLINK2 | ... | Services::kCapabilities);

  template <class Visit>
  void for_each(Visit&& visit) {
    std::apply([&visit](auto&... services) { (visit(services), ...); }, services_);
  }

  // Take at most so much at once that a flood of bytes does not stop the services' work.
  bool receive() {
    std::uint8_t bytes[256];
    const std::size_t count = transport_.read(bytes, sizeof(bytes));
    receiver_.receive(bytes, count, [this](const mavlink_message_t& message) { handle(message); });
    return count > 0;
  }

  void handle(const mavlink_message_t& message) {
    switch (message.msgid) {
      case MAVLINK_MSG_ID_COMMAND_LONG: return handle_command(Command(message, sender_));
      case MAVLINK_MSG_ID_COMMAND_INT: return refuse_command_int(message);
      default: return for_each([&message](auto& service) { service.receive(message); });
    }
  }

  void handle_command(const Command& command) {
    if (answer(command)) return;
    bool obeyed = false;
    for_each([&](auto& service) { obeyed = obeyed || service.obey(command); });
    if (!obeyed) command.acknowledge(MAV_RESULT_UNSUPPORTED);
  }

  void refuse_command_int(const mavlink_message_t& message) {
    mavlink_command_int_t content;
    mavlink_msg_command_int_decode(&message, &content);
    mavlink_command_ack_t acknowledgement{};
    acknowledgement.command = content.command;
    acknowledgement.result = MAV_RESULT_COMMAND_LONG_ONLY;
    acknowledgement.target_system = message.sysid;
    acknowledgement.target_component = message.compid;
    sender_.send(mavlink_msg_command_ack_encode_status, acknowledgement);
  }

  // Answer a request for a message of the node's own.
  bool answer(const Command& command) {
    const auto accept_and = [&command](auto&& send) {
      command.acknowledge(MAV_RESULT_ACCEPTED);
      send();
      return true;
    };
    if (command.requests(MAVLINK_MSG_ID_RLT_IDENTITY)) {
      return accept_and([this] { send_identity(); });
    }
    if (command.requests(MAVLINK_MSG_ID_NAMED_VALUE_INT)) {
      return accept_and([this] { send_stack_use(); });
    }
    if (command.requests(MAVLINK_MSG_ID_HEARTBEAT)) {
      return accept_and([this] { send_heartbeat(); });
    }
    if (command.requests(MAVLINK_MSG_ID_AUTOPILOT_VERSION)) {
      return accept_and([this] { send_capabilities(); });
    }
    return false;
  }

  void send_heartbeat() {
    mavlink_heartbeat_t content{};
    content.type = MAV_TYPE_ONBOARD_CONTROLLER;
    content.autopilot = MAV_AUTOPILOT_INVALID;
    content.system_status = MAV_STATE_STANDBY;
    content.mavlink_version = 3;
    for_each([&content](auto& service) { service.describe_state(content); });
    sender_.send(mavlink_msg_heartbeat_encode_status, content);
  }

  void send_identity() {
    mavlink_rlt_identity_t content{};
    content.protocol_version = kProtocolVersion;
    content.counter =
        board::kCountsInstructions ? RLT_COUNTER_GUEST_INSTRUCTIONS : RLT_COUNTER_MICROSECONDS;
    copy_text(content.board, names_.board);
    copy_text(content.device, names_.device);
    copy_text(content.revision, kRevision);
    board::unique_id(content.unique_id);
    for_each([&content](auto& service) { service.describe_identity(content); });
    sender_.send(mavlink_msg_rlt_identity_encode_status, content);
  }

  // Send the capabilities, for ground control programs, which ask before they use files and
  // parameters.
  void send_capabilities() {
    mavlink_autopilot_version_t content{};
    content.capabilities = kCapabilities;
    std::uint8_t id[16];
    board::unique_id(id);
    __builtin_memcpy(&content.uid, id, sizeof(content.uid));
    __builtin_memcpy(content.uid2, id, sizeof(id));
    sender_.send(mavlink_msg_autopilot_version_encode_status, content);
  }

  void send_stack_use() {
    const board::StackUse use = board::stack_use();
    send_named_value("stack", use.capacity_bytes);
    send_named_value("stack_peak", use.peak_bytes);
  }

  void send_named_value(const char* name, std::uint32_t value) {
    mavlink_named_value_int_t content{};
    content.value = static_cast<std::int32_t>(value);
    copy_text(content.name, name);
    sender_.send(mavlink_msg_named_value_int_encode_status, content);
  }

  const Transport transport_;
  const NodeNames names_;
  MessageSender& sender_;
  HeartbeatClock& heartbeat_;
  FrameReceiver<kAccepted> receiver_;
  const std::tuple<Services&...> services_;
};

}  // namespace rlt::link
