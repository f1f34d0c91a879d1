// The train application on a board that is memory: a test puts bytes into its link and takes out
// what it sends. Messages are made and read with MAVLink's own generated code, not with the
// application's.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "app/train/application.h"
#include "board_memory.h"
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
  Application application;
  link::Address host{kHostSystem, kHostComponent};  // which sends
  std::vector<Message> received;                    // by the host, since the last exchange

  explicit Board(ArithmeticFault fault = ArithmeticFault::none);

  void turns(int count);

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
  void take_all(int count = 1);

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
                                           std::uint8_t confirmation = 0);

  // The acknowledgement's result; -1 without one.
  int command(std::uint16_t number, float parameter = 0.0f, std::uint8_t confirmation = 0);

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

  std::vector<std::string> texts() const;

  mavlink_rlt_identity_t identity();

  int state() { return identity().state; }

  mavlink_param_value_t set_bits(const char* name, std::uint32_t bits, std::uint8_t type);

  void set(const char* name, std::uint32_t value);

  // A short run: warm-up, updates and evaluations all happen.
  void set_short_run(std::uint32_t steps = 60);

  // Starts a short run, and trains to this step.
  void start_and_train(std::uint32_t step);
  void train_until(std::uint32_t step);

  // Turns until training is over; the messages are in `received`.
  void train_to_rest(int at_most = 1000);

 private:
  void parse();

  Message partial_{};
  mavlink_status_t status_{};
};

}  // namespace scripted
