// The board's side of the link: frames out of streams with noise, lost, doubled and flipped bytes.
// No wrong message is accepted, and after noise the receiver is back in step within two good
// messages.
#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "app/link/frame_receiver.h"
#include "host_messages.h"

namespace {

using namespace rlt::link;
using board_in_memory::Bytes;

constexpr Address kSelf{1, 191}, kHost{255, 190};
constexpr auto kAccepted =
    join(accept(RLT_ACCEPTED_MESSAGE(COMMAND_LONG, command_long)),
         accept(RLT_ACCEPTED_MESSAGE(FILE_TRANSFER_PROTOCOL, file_transfer_protocol)));

constexpr std::uint32_t kFileMessage = 0x80000000u;  // in numbers: a long message

// A message whose content follows from its number.
Bytes frame_of(std::uint32_t number) {
  if (number & kFileMessage) {
    mavlink_file_transfer_protocol_t content{};
    std::mt19937 random(number);
    for (auto& byte : content.payload) byte = static_cast<std::uint8_t>(random());
    __builtin_memcpy(content.payload, &number, 4);
    content.payload[250] = 1;  // no trailing zeros
    return board_in_memory::frame_of(kHost, mavlink_msg_file_transfer_protocol_encode, content);
  }
  mavlink_command_long_t content{};
  content.command = static_cast<std::uint16_t>(number);
  content.param1 = static_cast<float>(number);
  return board_in_memory::frame_of(kHost, mavlink_msg_command_long_encode, content);
}

std::uint32_t number_of(const mavlink_message_t& message) {
  if (message.msgid == MAVLINK_MSG_ID_FILE_TRANSFER_PROTOCOL) {
    mavlink_file_transfer_protocol_t content;
    mavlink_msg_file_transfer_protocol_decode(&message, &content);
    std::uint32_t number;
    __builtin_memcpy(&number, content.payload, 4);
    const Bytes expected = frame_of(number);  // every byte of the payload counts
    CHECK(expected.size() == message.len + 12u);
    CHECK(__builtin_memcmp(&expected[10], _MAV_PAYLOAD(&message), message.len) == 0);
    return number;
  }
  REQUIRE(message.msgid == MAVLINK_MSG_ID_COMMAND_LONG);
  mavlink_command_long_t content;
  mavlink_msg_command_long_decode(&message, &content);
  CHECK(content.param1 == static_cast<float>(content.command));
  return content.command;
}

class Collector {
 public:
  std::vector<std::uint32_t> numbers;

  void feed(const Bytes& bytes) {
    receiver_.receive(bytes.data(), bytes.size(),
                      [this](const mavlink_message_t& m) { numbers.push_back(number_of(m)); });
  }
  void quiet() { feed({}); }

 private:
  FrameReceiver<kAccepted> receiver_{kSelf};
};

Bytes noise(std::mt19937& random, std::size_t count) {
  Bytes bytes(count);
  for (auto& byte : bytes) {
    byte = random() % 5 == 0 ? std::uint8_t{MAVLINK_STX} : static_cast<std::uint8_t>(random());
  }
  return bytes;
}

void append(Bytes& bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

}  // namespace

TEST_CASE("whole messages arrive in order, however the stream is cut") {
  std::mt19937 random(1);
  Bytes stream;
  std::vector<std::uint32_t> sent;
  for (std::uint32_t i = 1; i <= 200; i++) {
    sent.push_back(i % 3 == 0 ? i | kFileMessage : i);
    append(stream, frame_of(sent.back()));
  }
  for (const std::size_t longest : {1u, 2u, 7u, 100u, 1000u, 100000u}) {
    Collector collector;
    for (std::size_t position = 0; position < stream.size();) {
      const std::size_t count = std::min(stream.size() - position, 1 + random() % longest);
      collector.feed({stream.begin() + static_cast<std::ptrdiff_t>(position),
                      stream.begin() + static_cast<std::ptrdiff_t>(position + count)});
      position += count;
    }
    CHECK(collector.numbers == sent);
  }
}

TEST_CASE("noise before a message does not hide it") {
  std::mt19937 random(2);
  for (std::uint32_t i = 1; i <= 2000; i++) {
    Collector collector;
    Bytes stream = noise(random, random() % 600);
    append(stream, frame_of(i));
    append(stream, frame_of(i + 1));
    collector.feed(stream);
    collector.quiet();
    REQUIRE(collector.numbers.size() >= 1);
    CHECK(collector.numbers.back() == i + 1);  // in step within two good messages
  }
}

TEST_CASE("a message cut short, or with a wrong length, costs itself only") {
  for (int flipped = 0; flipped < 8; flipped++) {
    Collector collector;
    Bytes damaged = frame_of(1);
    damaged[1] = static_cast<std::uint8_t>(damaged[1] ^ (1 << flipped));
    collector.feed(damaged);
    collector.feed(frame_of(2));
    collector.quiet();
    CHECK(collector.numbers == std::vector<std::uint32_t>{2});
  }
  const Bytes whole = frame_of(5 | kFileMessage);
  for (std::size_t count = 1; count < whole.size(); count++) {
    Collector collector;
    collector.feed({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(count)});
    collector.feed(frame_of(6));
    collector.quiet();
    REQUIRE(collector.numbers == std::vector<std::uint32_t>{6});
  }
}

TEST_CASE("dropped, doubled and flipped bytes: nothing wrong is accepted, good messages follow") {
  std::mt19937 random(3);
  int accepted = 0, sent = 0;
  for (int round = 0; round < 300; round++) {
    Collector collector;
    std::uint32_t number = 1;
    for (int i = 0; i < 20; i++, number++, sent++) {
      const std::uint32_t id = random() % 4 == 0 ? number | kFileMessage : number;
      Bytes frame = frame_of(id);
      if (random() % 2 == 0) {
        const std::size_t position = random() % frame.size();
        const auto at = frame.begin() + static_cast<std::ptrdiff_t>(position);
        switch (random() % 3) {
          case 0: frame.erase(at); break;
          case 1: frame.insert(at, frame[position]); break;
          default: frame[position] ^= static_cast<std::uint8_t>(1u << random() % 8);
        }
      }
      collector.feed(frame);
      if (random() % 3 == 0) collector.quiet();
    }
    collector.quiet();
    std::uint32_t previous = 0;
    for (const std::uint32_t id : collector.numbers) {  // number_of() has checked the contents
      const std::uint32_t current = id & ~kFileMessage;
      CHECK(current > previous);
      CHECK(current < number);
      previous = current;
      accepted++;
    }
    collector.numbers.clear();
    collector.feed(frame_of(1000));
    collector.feed(frame_of(1001));
    collector.quiet();
    REQUIRE(!collector.numbers.empty());
    CHECK(collector.numbers.back() == 1001);
  }
  CHECK(accepted >
        sent * 45 / 100);  // half are sound, and damage may strike the byte's own repetition
}

namespace {

// A command from one address to another.
bool is_taken(Address sender, Address target) {
  mavlink_command_long_t content{};
  content.command = 9;
  content.param1 = 9.0f;
  const auto addressed = board_in_memory::addressed_to(target, content);
  Collector collector;
  collector.feed(board_in_memory::frame_of(sender, mavlink_msg_command_long_encode, addressed));
  return collector.numbers == std::vector<std::uint32_t>{9};
}

}  // namespace

TEST_CASE("messages are taken that are addressed to this component, or to all") {
  CHECK(is_taken(kHost, kSelf));
  CHECK(is_taken(kHost, {0, 0}));
  CHECK(is_taken(kHost, {1, 0}));
  CHECK(is_taken(kHost, {0, 191}));
  CHECK_FALSE(is_taken(kHost, {2, 191}));
  CHECK_FALSE(is_taken(kHost, {1, 1}));
  CHECK_FALSE(is_taken(kHost, {2, 0}));
}

TEST_CASE("our own messages, sent back by the line, are ignored; those of our vehicle are not") {
  CHECK_FALSE(is_taken(kSelf, kSelf));
  CHECK(is_taken({1, 1}, kSelf));  // its autopilot
  CHECK(is_taken({2, 191}, kSelf));
}

TEST_CASE("messages of no service are rejected, and cost no other") {
  mavlink_param_set_t content{};
  content.target_system = kSelf.system;
  content.param_type = 9;
  Bytes stream = board_in_memory::frame_of(kHost, mavlink_msg_param_set_encode, content);
  append(stream, frame_of(9));
  Collector collector;
  collector.feed(stream);
  CHECK(collector.numbers == std::vector<std::uint32_t>{9});
}

namespace {

// The frame with the checksum that it should have.
void set_checksum(Bytes& frame) {
  std::uint16_t checksum = crc_calculate(&frame[1], static_cast<std::uint16_t>(frame.size() - 3));
  crc_accumulate(MAVLINK_MSG_ID_COMMAND_LONG_CRC, &checksum);
  frame[frame.size() - 2] = static_cast<std::uint8_t>(checksum);
  frame[frame.size() - 1] = static_cast<std::uint8_t>(checksum >> 8);
}

}  // namespace

TEST_CASE("a payload longer than its message is rejected") {
  Bytes frame = frame_of(77);
  const std::size_t payload = frame[1];
  frame.insert(frame.end() - 2, MAVLINK_MSG_ID_COMMAND_LONG_LEN + 1 - payload, 0);
  frame[1] = MAVLINK_MSG_ID_COMMAND_LONG_LEN + 1;
  set_checksum(frame);
  Collector collector;
  collector.feed(frame);
  collector.feed(frame_of(78));
  CHECK(collector.numbers == std::vector<std::uint32_t>{78});
}

TEST_CASE("a signed message is read, its signature ignored") {
  Bytes frame = frame_of(77);
  frame[2] = MAVLINK_IFLAG_SIGNED;
  set_checksum(frame);
  const Bytes signature = frame_of(0);  // could be a message itself
  REQUIRE(signature.size() == MAVLINK_SIGNATURE_BLOCK_LEN);
  append(frame, signature);
  Collector collector;
  collector.feed(frame);
  collector.feed(frame_of(78));
  CHECK(collector.numbers == std::vector<std::uint32_t>{77, 78});
}
