// MAVLink 2 frames out of a stream of bytes that may be noisy
// (https://mavlink.io/en/guide/serialization.html). After a bad checksum it drops one byte and
// looks again: MAVLink's own parser drops what the length byte says, and with it the good frames
// behind a damaged one.
#pragma once

#include <cstddef>

#include "app/link/mavlink_protocol.h"

namespace rlt::link {

// Takes the messages of the table `kAccepted`, as far as they are addressed to `self`.
template <const auto& kAccepted>
class FrameReceiver {
 public:
  explicit FrameReceiver(Address self) : self_(self) {}

  // Take the bytes that have arrived since the last call, and call handle(const
  // mavlink_message_t&) for each whole message. A call without bytes says that the line is quiet.
  template <class Handle>
  void receive(const std::uint8_t* bytes, std::size_t count, Handle&& handle) {
    if (count == 0) return recover(handle);
    while (count > 0) {
      const std::size_t space = kBufferBytes - used_;
      const std::size_t taken = count < space ? count : space;
      __builtin_memcpy(buffer_ + used_, bytes, taken);
      used_ += taken;
      bytes += taken;
      count -= taken;
      extract(handle);
    }
  }

 private:
  static constexpr std::size_t kHeaderBytes = MAVLINK_CORE_HEADER_LEN + 1;
  static constexpr std::size_t kSequenceOffset = 4;
  static constexpr std::size_t kLongestFrame = MAVLINK_MAX_PACKET_LEN;
  // extract() leaves at most one unfinished frame, so there is always space for more.
  static constexpr std::size_t kBufferBytes = 2 * kLongestFrame;

  enum class Kind : std::uint8_t { none, unfinished, whole };
  struct Frame {
    Kind kind;
    std::size_t bytes;  // where whole
  };

  template <class Handle>
  void extract(Handle& handle) {
    std::size_t position = 0;
    while (position < used_) {
      const Frame frame = frame_at(position);
      if (frame.kind == Kind::unfinished) break;
      if (frame.kind == Kind::whole) deliver(position, handle);
      position += frame.kind == Kind::whole ? frame.bytes : 1;
    }
    discard(position);
  }

  // Discard a frame that does not end. A damaged length makes a frame seem unfinished, and good
  // frames behind it would wait for its end. On a quiet line whole frames behind it are the proof
  // that there is no such frame.
  template <class Handle>
  void recover(Handle& handle) {
    for (std::size_t position = 1; position < used_; position++) {
      if (frame_at(position).kind == Kind::whole) {
        discard(position);
        return extract(handle);
      }
    }
  }

  void discard(std::size_t count) {
    used_ -= count;
    __builtin_memmove(buffer_, buffer_ + count, used_);
  }

  static const AcceptedMessage* find(std::uint32_t id) {
    for (const AcceptedMessage& message : kAccepted) {
      if (message.id == id) return &message;
    }
    return nullptr;
  }

  static std::uint32_t id_of(const std::uint8_t* frame) {
    return frame[7] | static_cast<std::uint32_t>(frame[8]) << 8 |
           static_cast<std::uint32_t>(frame[9]) << 16;
  }

  Frame frame_at(std::size_t position) const {
    constexpr Frame kNone{Kind::none, 0}, kUnfinished{Kind::unfinished, 0};
    const std::uint8_t* frame = buffer_ + position;
    const std::size_t available = used_ - position;
    if (frame[0] != MAVLINK_STX) return kNone;
    if (available > 2 && (frame[2] & ~MAVLINK_IFLAG_MASK) != 0) return kNone;
    if (available < kHeaderBytes) return kUnfinished;
    const AcceptedMessage* message = find(id_of(frame));
    const std::size_t payload = frame[1];
    if (message == nullptr || payload == 0 || payload > message->longest_payload) return kNone;
    const std::size_t checked = kHeaderBytes + payload;
    const std::size_t bytes = checked + MAVLINK_NUM_CHECKSUM_BYTES +
                              (frame[2] & MAVLINK_IFLAG_SIGNED ? MAVLINK_SIGNATURE_BLOCK_LEN : 0);
    if (available < bytes) return kUnfinished;
    std::uint16_t checksum = crc_calculate(frame + 1, static_cast<std::uint16_t>(checked - 1));
    crc_accumulate(message->crc_extra, &checksum);
    const bool good = frame[checked] == (checksum & 0xff) && frame[checked + 1] == checksum >> 8;
    return good ? Frame{Kind::whole, bytes} : kNone;
  }

  template <class Handle>
  void deliver(std::size_t position, Handle& handle) const {
    const std::uint8_t* frame = buffer_ + position;
    if (Address{frame[5], frame[6]} == self_) return;  // an echo
    // Zeros stand for the payload's trailing zeros, which are not sent.
    mavlink_message_t message{};
    message.magic = frame[0];
    message.len = frame[1];
    message.incompat_flags = frame[2];
    message.compat_flags = frame[3];
    message.seq = frame[kSequenceOffset];
    message.sysid = frame[5];
    message.compid = frame[6];
    message.msgid = id_of(frame) & 0xffffffu;
    std::uint8_t* payload = reinterpret_cast<std::uint8_t*>(_MAV_PAYLOAD_NON_CONST(&message));
    __builtin_memcpy(payload, frame + kHeaderBytes, message.len);
    const AcceptedMessage& kind = *find(id_of(frame));
    const Address target{payload[kind.target_system_offset], payload[kind.target_component_offset]};
    if (reaches(target, self_)) handle(static_cast<const mavlink_message_t&>(message));
  }

  const Address self_;
  std::uint8_t buffer_[kBufferBytes];
  std::size_t used_ = 0;
};

}  // namespace rlt::link
