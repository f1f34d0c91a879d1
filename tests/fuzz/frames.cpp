// Fuzz target: the frame receiver (firmware/app/link/frame_receiver.h), beside a receiver that
// keeps the whole stream and computes its checksums bit by bit. The input is a script of pieces of
// a stream: raw bytes, frames with a right checksum, and quiet lines.
#include "app/link/frame_receiver.h"

#include <algorithm>

#include "input.h"

namespace {

using namespace rlt::link;
using fuzz::Bytes;
using fuzz::Input;
using fuzz::require;

constexpr Address kSelf{1, 191}, kHost{255, 190};
constexpr auto kAccepted =
    accept(RLT_ACCEPTED_MESSAGE(COMMAND_LONG, command_long),
           RLT_ACCEPTED_MESSAGE(FILE_TRANSFER_PROTOCOL, file_transfer_protocol),
           RLT_ACCEPTED_MESSAGE(PARAM_SET, param_set),
           RLT_ACCEPTED_MESSAGE(PARAM_REQUEST_LIST, param_request_list));

constexpr std::size_t kHeaderBytes = 10, kChecksumBytes = 2, kSignatureBytes = 13;
constexpr std::size_t kMaxStreamBytes = 4096;
constexpr int kMaxQuietTurns = 100;  // each finds a frame where there is one

// CRC-16/MCRF4XX of a frame without its first byte, and of the message's extra byte.
std::uint16_t checksum(const std::uint8_t* bytes, std::size_t count, std::uint8_t extra) {
  std::uint16_t sum = 0xffff;
  for (std::size_t i = 0; i <= count; i++) {
    sum = static_cast<std::uint16_t>(sum ^ (i < count ? bytes[i] : extra));
    for (int bit = 0; bit < 8; bit++) {
      sum = static_cast<std::uint16_t>(sum & 1 ? sum >> 1 ^ 0x8408 : sum >> 1);
    }
  }
  return sum;
}

const AcceptedMessage* message_of(const std::uint8_t* frame) {
  const std::uint32_t id = frame[7] + 0x100u * frame[8] + 0x10000u * frame[9];
  for (const AcceptedMessage& message : kAccepted) {
    if (message.id == id) return &message;
  }
  return nullptr;
}

// A whole frame in the stream.
struct Frame {
  std::size_t position;
  std::size_t bytes;
};

// What a receiver is to do, by the words of docs/protocol.md.
class Model {
 public:
  Bytes stream;
  std::vector<Frame> frames;     // all
  std::vector<Frame> delivered;  // those from somebody else, to us

  void receive() {
    while (position_ < stream.size()) {
      bool unfinished;
      const std::size_t bytes = frame_bytes(position_, unfinished);
      if (unfinished) return;
      if (bytes > 0) deliver(position_, bytes);
      position_ += bytes > 0 ? bytes : 1;
    }
  }

  // A whole frame behind an unfinished one is the proof that the latter is none.
  void quiet() {
    for (std::size_t position = position_ + 1; position < stream.size(); position++) {
      bool unfinished;
      if (frame_bytes(position, unfinished) == 0) continue;
      position_ = position;
      return receive();
    }
  }

 private:
  // Zero where there is no frame with a right checksum.
  std::size_t frame_bytes(std::size_t position, bool& unfinished) const {
    const std::uint8_t* frame = &stream[position];
    const std::size_t available = stream.size() - position;
    unfinished = false;
    if (frame[0] != 0xfd) return 0;
    if (available >= 3 && frame[2] > 1) return 0;
    unfinished = available < kHeaderBytes;
    if (unfinished) return 0;
    const AcceptedMessage* message = message_of(frame);
    if (message == nullptr || frame[1] == 0 || frame[1] > message->longest_payload) return 0;
    const std::size_t checked = kHeaderBytes + frame[1];
    const std::size_t bytes = checked + kChecksumBytes + (frame[2] == 1 ? kSignatureBytes : 0);
    unfinished = available < bytes;
    if (unfinished) return 0;
    const std::uint16_t sum = checksum(frame + 1, checked - 1, message->crc_extra);
    return frame[checked] + 0x100 * frame[checked + 1] == sum ? bytes : 0;
  }

  void deliver(std::size_t position, std::size_t bytes) {
    frames.push_back({position, bytes});
    const std::uint8_t* frame = &stream[position];
    if (frame[5] == kSelf.system && frame[6] == kSelf.component) return;  // an echo
    const AcceptedMessage& message = *message_of(frame);
    const auto byte_of_payload = [frame](std::size_t offset) {
      return offset < frame[1] ? frame[kHeaderBytes + offset] : 0;
    };
    const int system = byte_of_payload(message.target_system_offset);
    const int component = byte_of_payload(message.target_component_offset);
    if (system != 0 && system != kSelf.system) return;
    if (component != 0 && component != kSelf.component) return;
    delivered.push_back({position, bytes});
  }

  std::size_t position_ = 0;  // of what is undecided
};

class Link {
 public:
  // The receiver gets the bytes in parts of this size.
  void send(const Bytes& bytes, std::size_t part) {
    for (std::size_t first = 0; first < bytes.size(); first += part) {
      const std::size_t count = std::min(part, bytes.size() - first);
      model_.stream.insert(model_.stream.end(), &bytes[first], &bytes[first] + count);
      // A copy, so that the address sanitizer sees what is read behind it.
      const Bytes exact(&bytes[first], &bytes[first] + count);
      receive(exact.data(), count);
      model_.receive();
      compare();
    }
  }

  void quiet() {
    receive(nullptr, 0);
    model_.quiet();
    compare();
  }

  // A frame that comes now is found, unless it is a part of another one.
  void require_reception() {
    const std::size_t position = model_.stream.size();
    send(frame_of(kAccepted[0], 0, kHost, {1, 2, 3}), 1000);
    for (int turn = 0; turn < kMaxQuietTurns; turn++) quiet();
    const Frame last = model_.frames.empty() ? Frame{0, 0} : model_.frames.back();
    require(last.position + last.bytes > position, "a frame is found, whatever came before");
  }

  std::size_t bytes() const { return model_.stream.size(); }

  static Bytes frame_of(const AcceptedMessage& message, std::uint8_t flags, Address sender,
                        const Bytes& payload) {
    const auto length = static_cast<std::uint8_t>(payload.size());
    const auto id = static_cast<std::uint8_t>(message.id);
    Bytes frame{0xfd, length, flags, 0, 0, sender.system, sender.component, id, 0, 0};
    frame.insert(frame.end(), payload.begin(), payload.end());
    const std::uint16_t sum = checksum(&frame[1], frame.size() - 1, message.crc_extra);
    frame.push_back(static_cast<std::uint8_t>(sum));
    frame.push_back(static_cast<std::uint8_t>(sum >> 8));
    if (flags == 1) frame.resize(frame.size() + kSignatureBytes, 0x55);
    return frame;
  }

 private:
  void receive(const std::uint8_t* bytes, std::size_t count) {
    receiver_.receive(bytes, count,
                      [this](const mavlink_message_t& message) { received_.push_back(message); });
  }

  void compare() {
    require(received_.size() == model_.delivered.size(), "as many messages as frames for us");
    for (; compared_ < received_.size(); compared_++) {
      const mavlink_message_t& message = received_[compared_];
      const std::uint8_t* frame = &model_.stream[model_.delivered[compared_].position];
      require(message.len == frame[1] && message.incompat_flags == frame[2] &&
                  message.seq == frame[4] && message.sysid == frame[5] &&
                  message.compid == frame[6] && message.msgid == message_of(frame)->id,
              "a message has its frame's header");
      std::uint8_t payload[MAVLINK_MAX_PAYLOAD_LEN] = {};
      std::memcpy(payload, frame + kHeaderBytes, frame[1]);
      require(std::memcmp(payload, _MAV_PAYLOAD(&message), sizeof(payload)) == 0,
              "a message has its frame's payload, and then zeros");
    }
  }

  FrameReceiver<kAccepted> receiver_{kSelf};
  Model model_;
  std::vector<mavlink_message_t> received_;
  std::size_t compared_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  constexpr std::size_t kParts[] = {1000, 1, 7, 256};
  Input input(bytes, count);
  Link link;
  while (!input.is_empty() && link.bytes() < kMaxStreamBytes) {
    const auto piece = input.take<std::uint8_t>();
    const std::size_t part = kParts[piece >> 2 & 3];
    switch (piece & 3) {
      case 0: link.quiet(); break;
      case 1: link.send(input.take_bytes(input.take<std::uint8_t>()), part); break;
      default: {
        const auto flags = static_cast<std::uint8_t>(piece >> 4 & 1);
        const AcceptedMessage message = kAccepted[piece >> 5 & 3];
        const auto system = input.take<std::uint8_t>();
        const auto component = input.take<std::uint8_t>();
        Bytes frame = Link::frame_of(message, flags, {system, component},
                                     input.take_bytes(input.take<std::uint8_t>()));
        // Some are cut short.
        if ((piece & 3) == 3) frame.resize(input.take<std::uint8_t>() % frame.size());
        link.send(frame, part);
      }
    }
  }
  link.require_reception();
  return 0;
}
