// The train application on a board that is memory, for fuzz targets: frames in, messages out. What
// the board sends must be whole frames that MAVLink's own parser takes.
#pragma once

#include "app/train/application.h"
#include "board_in_memory.h"
#include "host_messages.h"
#include "input.h"
#include "point_experiments.h"
#include "tiny_td3.h"
#include "training_run.h"

namespace fuzz {

using namespace rlt;

constexpr link::Address kSelf{3, 77};
constexpr link::Address kClients[] = {{255, 190}, {254, 1}};

// Warm-up, updates, evaluations and the end all come within a few turns.
inline void shorten(Td3Hyperparameters& hyper) {
  hyper.steps = 90;
  hyper.learning_starts = 10;
}
inline void shorten(PpoHyperparameters& hyper) {
  hyper.steps = 192;
  hyper.n_epochs = 2;
}

template <class E>
class BoardOf {
 public:
  training_run::Run<E> run;

  BoardOf() {
    board_in_memory::to_board.clear();
    board_in_memory::from_board.clear();
    board_in_memory::counter_us = 0;
    auto& hyper = run.training.hyperparameters;
    shorten(hyper);
    hyper.seed = 7;
    hyper.eval_freq = 25;
    hyper.n_eval_episodes = 1;
    hyper.report_every = 10;
  }

  RLT_STATE state() const { return application_.state(); }
  bool is_at_rest() const { return state() == RLT_STATE_PAUSED || state() == RLT_STATE_FINISHED; }

  template <class Content>
  void put(board_in_memory::Encode<Content> encode, const Content& content,
           link::Address client = kClients[0]) {
    const Content addressed = board_in_memory::addressed_to(kSelf, content);
    put(board_in_memory::frame_of(client, encode, addressed));
  }
  void put(const Bytes& bytes) {
    board_in_memory::to_board.insert(board_in_memory::to_board.end(), bytes.begin(), bytes.end());
  }
  void put_command(std::uint16_t number, float parameter = 0.0f, std::uint8_t confirmation = 0) {
    mavlink_command_long_t content{};
    content.command = number;
    content.param1 = parameter;
    content.confirmation = confirmation;
    put(mavlink_msg_command_long_encode, content);
  }
  void put_request(const FileMessage& request, link::Address client = kClients[0]) {
    put(mavlink_msg_file_transfer_protocol_encode, board_in_memory::content_of(request), client);
  }

  // Turns until the board has taken what was put into its link, and so many more; returns what it
  // has sent.
  std::vector<mavlink_message_t> turns(int more) {
    while (!board_in_memory::to_board.empty()) application_.poll();
    for (int i = 0; i < more; i++) application_.poll();
    std::vector<mavlink_message_t> messages;
    mavlink_message_t partial{};
    mavlink_status_t status{};
    std::size_t bytes = 0;
    for (const std::uint8_t byte : board_in_memory::from_board) {
      mavlink_message_t message;
      bytes++;
      const auto result = mavlink_frame_char_buffer(&partial, &status, byte, &message, nullptr);
      if (result != MAVLINK_FRAMING_OK) continue;
      require(message.sysid == kSelf.system && message.compid == kSelf.component,
              "a message has its sender's address");
      messages.push_back(message);
      bytes = 0;
    }
    require(bytes == 0, "the board sends whole frames");
    board_in_memory::from_board.clear();
    return messages;
  }

  // Trains to this step, and rests there.
  void train_and_pause(std::uint32_t step) {
    put_command(MAV_CMD_RLT_START);
    turns(0);
    for (int i = 0; i < 1000 && steps_done(run.training) < step; i++) turns(1);
    put_command(MAV_CMD_RLT_PAUSE);
    turns(5);  // an evaluation comes to its end
    require(is_at_rest() && steps_done(run.training) == step, "the board trains");
  }

  // What the training state promises while nobody writes to it.
  void check_state() {
    if (!is_at_rest()) return;
    require(state_is_consistent(run.training), "the state at rest is consistent");
    require(state_is_finite(run.training), "the state at rest is finite");
  }

 private:
  typename TrainApplication<E, Generic, true>::Images images_{};
  TrainApplication<E, Generic, true> application_{
      Generic{}, ArithmeticFault::none, {board_in_memory::read, board_in_memory::write},
      kSelf,     {"fuzz", "Generic"},   run.training,
      images_};
};

using Board = BoardOf<TinyTd3>;

}  // namespace fuzz
