// Hyperparameters as MAVLink parameters (https://mavlink.io/en/services/parameter.html): REAL32 and
// UINT32, an integer bytewise in the message's float field.
#pragma once

#include "app/link/service.h"
#include "rltools/rl/hyperparameters.h"

namespace rlt {

static_assert(kParameterIdBytes == MAVLINK_MSG_PARAM_VALUE_FIELD_PARAM_ID_LEN, "MAVLink's limit");

constexpr std::uint8_t parameter_type(DataType type) {
  return type == DataType::u32 ? MAV_PARAM_TYPE_UINT32 : MAV_PARAM_TYPE_REAL32;
}

// Owner must provide `const char* parameter_refusal() const`: why a value cannot change at present,
// at most 50 characters, or null.
template <class Hyperparameters, class Owner>
class ParameterService : public link::Service {
 public:
  static constexpr auto kAccepted =
      link::accept(RLT_ACCEPTED_MESSAGE(PARAM_REQUEST_LIST, param_request_list),
                   RLT_ACCEPTED_MESSAGE(PARAM_REQUEST_READ, param_request_read),
                   RLT_ACCEPTED_MESSAGE(PARAM_SET, param_set));
  static constexpr std::uint64_t kCapabilities = MAV_PROTOCOL_CAPABILITY_PARAM_ENCODE_BYTEWISE;

  ParameterService(link::MessageSender& sender, Hyperparameters& values, const Owner& owner)
      : sender_(sender), values_(values), owner_(owner) {}

  void receive(const mavlink_message_t& message) {
    switch (message.msgid) {
      case MAVLINK_MSG_ID_PARAM_REQUEST_LIST: return send_all();
      case MAVLINK_MSG_ID_PARAM_REQUEST_READ: return handle_read(message);
      case MAVLINK_MSG_ID_PARAM_SET: return handle_set(message);
      default: return;
    }
  }

 private:
  void send_all() {
    for (int i = 0; i < Hyperparameters::kCount; i++) send(i);
  }

  void handle_read(const mavlink_message_t& message) {
    mavlink_param_request_read_t request;
    mavlink_msg_param_request_read_decode(&message, &request);
    const int index = request.param_index >= 0 ? request.param_index : find(request.param_id);
    if (index < 0 || index >= Hyperparameters::kCount) return say_unknown();
    send(index);
  }

  // Answer with the value that holds afterwards: the old one where the new one is refused.
  void handle_set(const mavlink_message_t& message) {
    mavlink_param_set_t request;
    mavlink_msg_param_set_decode(&message, &request);
    const int index = find(request.param_id);
    if (index < 0) return say_unknown();
    std::uint32_t bits;
    __builtin_memcpy(&bits, &request.param_value, 4);
    if (const char* refusal = owner_.parameter_refusal()) {
      if (bits != values_.get_bits(index)) sender_.say_text(MAV_SEVERITY_ERROR, refusal);
    } else if (request.param_type != parameter_type(Hyperparameters::info(index).type)) {
      sender_.say(MAV_SEVERITY_ERROR, "hyperparameter refused: it is of another type");
    } else if (!values_.set_bits(index, bits)) {
      sender_.say(MAV_SEVERITY_ERROR, "hyperparameter refused: out of bounds");
    }
    send(index);
  }

  // Return the hyperparameter's index, or -1.
  static int find(const char* id) {
    for (int i = 0; i < Hyperparameters::kCount; i++) {
      if (share_an_id(Hyperparameters::info(i).name, id)) return i;
    }
    return -1;
  }

  void say_unknown() { sender_.say(MAV_SEVERITY_WARNING, "there is no such hyperparameter"); }

  void send(int index) {
    const ParameterInfo& info = Hyperparameters::info(index);
    mavlink_param_value_t content{};
    const std::uint32_t bits = values_.get_bits(index);
    __builtin_memcpy(&content.param_value, &bits, 4);
    content.param_count = Hyperparameters::kCount;
    content.param_index = static_cast<std::uint16_t>(index);
    link::copy_text(content.param_id, info.name);
    content.param_type = parameter_type(info.type);
    sender_.send(mavlink_msg_param_value_encode_status, content);
  }

  link::MessageSender& sender_;
  Hyperparameters& values_;
  const Owner& owner_;
};

}  // namespace rlt
