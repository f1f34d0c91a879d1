// The train application on a board that is memory, and a host.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "app/train/application.h"
#include "host_side.h"
#include "tiny_td3.h"
#include "training_run.h"

namespace scripted {

using namespace rlt;
using namespace board_in_memory;

// Trains an experiment.
template <class E, bool KeepsBest = true>
class BoardOf : public HostSide {
 public:
  using Application = TrainApplication<E, Generic, KeepsBest>;

  training_run::Run<E> run{7};
  typename Application::Images images{};
  const ArithmeticFault arithmetic;
  Application application{Generic{},    arithmetic, {read, write}, kSelf, {"scripted", "Generic"},
                          run.training, images};

  explicit BoardOf(ArithmeticFault fault = ArithmeticFault::none) : arithmetic(fault) {
    to_board.clear();
    from_board.clear();
    idle_calls = 0;
  }
};
extern template class BoardOf<TinyTd3>;  // compiled once, beside Board

class Board : public BoardOf<TinyTd3> {
 public:
  using BoardOf::BoardOf;

  void turns(int count);

  // Sends a message, and gives the board `count` turns from where it has it.
  template <class Content>
  std::vector<Message>& exchange(Encode<Content> encode, const Content& content, int count = 1) {
    received.clear();
    put(encode, content);
    take_all(count);
    return received;
  }

  // Gives the board turns until it has taken what was put into its link, and then `count` - 1 more.
  void take_all(int count = 1);

  static mavlink_command_long_t command_of(std::uint16_t command, float parameter = 0.0f,
                                           std::uint8_t confirmation = 0);

  // The acknowledgement's result; -1 without one.
  int command(std::uint16_t number, float parameter = 0.0f, std::uint8_t confirmation = 0);

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
};

struct ShortRun {
  Board board;
  ShortRun() { board.set_short_run(60); }
};

}  // namespace scripted
