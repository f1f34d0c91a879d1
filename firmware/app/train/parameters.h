// Hyperparameters as MAVLink parameters (https://mavlink.io/en/services/parameter.html): REAL32 and
// UINT32, an integer bytewise in the message's float field.
#pragma once

#include "app/message_sender.h"
#include "rltools/rl/hyperparameters.h"

namespace rlt {

constexpr int kParameterNameBytes = MAVLINK_MSG_PARAM_VALUE_FIELD_PARAM_ID_LEN;

constexpr std::uint8_t parameter_type(DataType type) {
  return type == DataType::u32 ? MAV_PARAM_TYPE_UINT32 : MAV_PARAM_TYPE_REAL32;
}

// `id` ends with a zero unless it has all 16 characters.
inline bool is_parameter_name(const char* name, const char* id) {
  for (int i = 0; i < kParameterNameBytes; i++) {
    if (name[i] != id[i]) return false;
    if (name[i] == '\0') return true;
  }
  return name[kParameterNameBytes] == '\0';
}

// The hyperparameter's index, or -1.
template <class Hyperparameters>
int find_parameter(const char* id) {
  for (int i = 0; i < Hyperparameters::kCount; i++) {
    if (is_parameter_name(Hyperparameters::info(i).name, id)) return i;
  }
  return -1;
}

template <class Hyperparameters>
void send_parameter(link::MessageSender& sender, const Hyperparameters& values, int index) {
  const ParameterInfo& info = Hyperparameters::info(index);
  mavlink_param_value_t content{};
  const std::uint32_t bits = values.get_bits(index);
  __builtin_memcpy(&content.param_value, &bits, 4);
  content.param_count = Hyperparameters::kCount;
  content.param_index = static_cast<std::uint16_t>(index);
  link::copy_text(content.param_id, info.name);
  content.param_type = parameter_type(info.type);
  sender.send(mavlink_msg_param_value_encode_status, content);
}

}  // namespace rlt
