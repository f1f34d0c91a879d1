// The train application on a board that is memory: a test puts bytes into its link and takes out
// what it sends. Messages are made and read with MAVLink's own generated code, not with the
// application's.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "app/train/application.h"
#include "board_in_memory.h"
#include "tiny_td3.h"
#include "training_run.h"

namespace scripted {

using namespace rlt;
using namespace board_in_memory;

constexpr std::uint8_t kHostSystem = 255, kHostComponent = 190;
constexpr link::Address kSelf{3, 77};  // no real board's: a node has the address that it is given

class Board {
 public:
  using Application = TrainApplication<TinyTd3, Generic>;
  using Message = mavlink_message_t;

  training_run::Run<TinyTd3> run;
  Application::PolicyImage policy_image{};
  const ArithmeticFault arithmetic;
  Application application{Generic{},    arithmetic,  {read, write}, kSelf, {"scripted", "Generic"},
                          run.training, policy_image};
  link::Address host{kHostSystem, kHostComponent};  // which sends
  std::vector<Message> received;                    // by the host, since the last exchange

  explicit Board(ArithmeticFault fault = ArithmeticFault::none) : arithmetic(fault) {
    to_board.clear();
    from_board.clear();
    idle_calls = 0;
  }

  void turns(int count) {
    for (int i = 0; i < count; i++) application.poll();
    parse();
  }

  // Sends a message, and gives the board `count` turns from where it has it.
  template <class Content>
  std::vector<Message>& exchange(std::uint16_t (*encode)(std::uint8_t, std::uint8_t, Message*,
                                                         const Content*),
                                 const Content& content, int count = 1) {
    received.clear();
    put(encode, content);
    take_all(count);
    return received;
  }

  // Gives the board turns until it has taken what was put into its link, and then `count` - 1 more.
  void take_all(int count = 1) {
    while (!to_board.empty()) turns(1);  // a long message takes two turns
    turns(count - 1);
  }

  template <class Content>
  void put(std::uint16_t (*encode)(std::uint8_t, std::uint8_t, Message*, const Content*),
           const Content& content) {
    Message message;
    encode(host.system, host.component, &message, &content);
    std::uint8_t frame[MAVLINK_MAX_PACKET_LEN];
    const std::uint16_t bytes = mavlink_msg_to_send_buffer(frame, &message);
    to_board.insert(to_board.end(), frame, frame + bytes);
  }

  static mavlink_command_long_t command_of(std::uint16_t command, float parameter = 0.0f,
                                           std::uint8_t confirmation = 0) {
    mavlink_command_long_t content{};
    content.command = command;
    content.param1 = parameter;
    content.confirmation = confirmation;
    content.target_system = kSelf.system;
    content.target_component = kSelf.component;
    return content;
  }

  // The acknowledgement's result; -1 without one.
  int command(std::uint16_t number, float parameter = 0.0f, std::uint8_t confirmation = 0) {
    exchange(mavlink_msg_command_long_encode, command_of(number, parameter, confirmation));
    for (const Message& message : received) {
      if (message.msgid != MAVLINK_MSG_ID_COMMAND_ACK) continue;
      mavlink_command_ack_t acknowledgement;
      mavlink_msg_command_ack_decode(&message, &acknowledgement);
      CHECK(acknowledgement.command == number);
      CHECK(acknowledgement.target_system == host.system);
      CHECK(acknowledgement.target_component == host.component);
      return acknowledgement.result;
    }
    return -1;
  }

  // All messages of a kind among those received.
  template <class Content>
  std::vector<Content> all(std::uint32_t id, void (*decode)(const Message*, Content*)) const {
    std::vector<Content> contents;
    for (const Message& message : received) {
      if (message.msgid != id) continue;
      contents.emplace_back();
      decode(&message, &contents.back());
    }
    return contents;
  }

  std::vector<std::string> texts() const {
    std::vector<std::string> result;
    for (const auto& text : all(MAVLINK_MSG_ID_STATUSTEXT, mavlink_msg_statustext_decode)) {
      result.emplace_back(text.text, strnlen(text.text, sizeof(text.text)));
    }
    return result;
  }

  mavlink_rlt_identity_t identity() {
    CHECK(command(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_RLT_IDENTITY) == MAV_RESULT_ACCEPTED);
    const auto identities = all(MAVLINK_MSG_ID_RLT_IDENTITY, mavlink_msg_rlt_identity_decode);
    REQUIRE(identities.size() == 1);
    return identities[0];
  }

  int state() { return identity().state; }

  mavlink_param_value_t set_bits(const char* name, std::uint32_t bits, std::uint8_t type) {
    mavlink_param_set_t content{};
    std::memcpy(&content.param_value, &bits, 4);
    std::memcpy(content.param_id, name, strnlen(name, 16));
    content.param_type = type;
    content.target_system = kSelf.system;
    content.target_component = kSelf.component;
    exchange(mavlink_msg_param_set_encode, content);
    const auto values = all(MAVLINK_MSG_ID_PARAM_VALUE, mavlink_msg_param_value_decode);
    REQUIRE(values.size() == 1);
    return values[0];
  }

  void set(const char* name, std::uint32_t value) {
    const auto answer = set_bits(name, value, MAV_PARAM_TYPE_UINT32);
    std::uint32_t bits;
    std::memcpy(&bits, &answer.param_value, 4);
    REQUIRE(bits == value);
  }

  // A short run: warm-up, updates and evaluations all happen.
  void set_short_run(std::uint32_t steps = 60) {
    set("seed", 7);
    set("steps", steps);
    set("learning_starts", 10);
    set("eval_every", 25);
    set("eval_episodes", 2);
    set("report_every", 10);
  }

  // Starts a short run, and trains to this step.
  void start_and_train(std::uint32_t step) {
    REQUIRE(command(MAV_CMD_RLT_START) == MAV_RESULT_ACCEPTED);
    train_until(step);
  }
  void train_until(std::uint32_t step) {
    for (int i = 0; i < 1000 && steps_done(run.training) < step; i++) turns(1);
    REQUIRE(steps_done(run.training) == step);
  }

  // Turns until training is over; the messages are in `received`.
  void train_to_rest(int at_most = 1000) {
    received.clear();
    for (int i = 0; i < at_most && application.state() == RLT_STATE_TRAINING; i++) turns(1);
    REQUIRE(application.state() != RLT_STATE_TRAINING);
  }

 private:
  void parse() {
    for (const std::uint8_t byte : from_board) {
      Message message;
      if (mavlink_frame_char_buffer(&partial_, &status_, byte, &message, nullptr) ==
          MAVLINK_FRAMING_OK) {
        received.push_back(message);
        CHECK(message.sysid == kSelf.system);
        CHECK(message.compid == kSelf.component);
      }
    }
    from_board.clear();
  }

  Message partial_{};
  mavlink_status_t status_{};
};

}  // namespace scripted
