// A command from the host (https://mavlink.io/en/services/command.html).
#pragma once

#include "app/link/message_sender.h"

namespace rlt::link {

// A COMMAND_LONG. The service whose command it is acknowledges it, before the work, which may take
// a moment.
class Command {
 public:
  Command(const mavlink_message_t& message, MessageSender& sender)
      : client_(sender_of(message)), sender_(sender) {
    mavlink_msg_command_long_decode(&message, &content_);
  }

  std::uint16_t number() const { return content_.command; }
  float parameter() const { return content_.param1; }
  float second_parameter() const { return content_.param2; }
  float third_parameter() const { return content_.param3; }
  float fourth_parameter() const { return content_.param4; }
  // Return whether the host has sent it before, without receiving an acknowledgement.
  bool is_repetition() const { return content_.confirmation > 0; }

  // Return whether it asks for one message of this kind. The numbers are compared as floats: one
  // that is no message's must not be converted.
  bool requests(std::uint32_t message_id) const {
    return number() == MAV_CMD_REQUEST_MESSAGE && parameter() == static_cast<float>(message_id);
  }

  void acknowledge(std::uint8_t result) const {
    mavlink_command_ack_t acknowledgement{};
    acknowledgement.command = number();
    acknowledgement.result = result;
    acknowledgement.target_system = client_.system;
    acknowledgement.target_component = client_.component;
    sender_.send(mavlink_msg_command_ack_encode_status, acknowledgement);
  }
  // Return `allowed`.
  bool accept_if(bool allowed) const {
    acknowledge(allowed ? MAV_RESULT_ACCEPTED : MAV_RESULT_DENIED);
    return allowed;
  }

 private:
  mavlink_command_long_t content_;
  const Address client_;
  MessageSender& sender_;
};

}  // namespace rlt::link
