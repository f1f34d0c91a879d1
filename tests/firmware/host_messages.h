// What a host sends, made with MAVLink's own generated code, not with the application's.
#pragma once

#include <algorithm>
#include <cstring>

#include "app/link/mavlink_protocol.h"
#include "app/services/file_message.h"
#include "board_memory.h"
#include "rltools/core/sha256.h"

namespace board_in_memory {

// MAVLink's function for a message of this content.
template <class Content>
using Encode = std::uint16_t (*)(std::uint8_t, std::uint8_t, mavlink_message_t*, const Content*);

template <class Content>
Content addressed_to(rlt::link::Address board, Content content) {
  content.target_system = board.system;
  content.target_component = board.component;
  return content;
}

template <class Content>
Bytes frame_of(rlt::link::Address sender, Encode<Content> encode, const Content& content) {
  mavlink_message_t message;
  encode(sender.system, sender.component, &message, &content);
  Bytes frame(MAVLINK_MAX_PACKET_LEN);
  frame.resize(mavlink_msg_to_send_buffer(frame.data(), &message));
  return frame;
}

// -- files ----------------------------------------------------------------------------------------

inline rlt::FileMessage file_request(std::uint16_t sequence, std::uint8_t session,
                                     rlt::FileOperation operation, std::uint32_t offset,
                                     const Bytes& data) {
  rlt::FileMessage request{};
  request.sequence = sequence;
  request.session = session;
  request.operation = operation;
  request.offset = offset;
  request.size = static_cast<std::uint8_t>(data.size());
  std::copy(data.begin(), data.end(), request.data);
  return request;
}

inline mavlink_file_transfer_protocol_t content_of(const rlt::FileMessage& message) {
  mavlink_file_transfer_protocol_t content{};
  std::memcpy(content.payload, &message, rlt::kFileMessageBytes);
  return content;
}

inline Bytes bytes_of(const char* text) { return Bytes(text, text + std::strlen(text)); }

// -- policies -------------------------------------------------------------------------------------

struct Digest {
  std::uint8_t bytes[32];
};

inline Digest sha256_of(const Bytes& image) {
  rlt::Sha256 sha256;
  Digest digest;
  sha256.update(image.data(), image.size());
  sha256.finish(digest.bytes);
  return digest;
}

// How commands name an image.
inline float number_of(const Bytes& image) {
  const Digest digest = sha256_of(image);
  return static_cast<float>(digest.bytes[0] * 65536 + digest.bytes[1] * 256 + digest.bytes[2]);
}

}  // namespace board_in_memory
