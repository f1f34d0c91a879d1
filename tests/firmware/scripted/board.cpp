#include "scripted_board.h"

#include "board_in_memory.h"
#include "training_result.h"

namespace scripted {

template class BoardOf<TinyTd3>;

void Board::turns(int count) {
  for (int i = 0; i < count; i++) application.poll();
  parse();
}

void Board::take_all(int count) {
  while (!to_board.empty()) turns(1);  // a long message takes two turns
  turns(count - 1);
}

int Board::command(std::uint16_t number, float parameter, std::uint8_t confirmation) {
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

mavlink_rlt_identity_t Board::identity() {
  CHECK(command(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_RLT_IDENTITY) == MAV_RESULT_ACCEPTED);
  const auto identities = all(MAVLINK_MSG_ID_RLT_IDENTITY, mavlink_msg_rlt_identity_decode);
  REQUIRE(identities.size() == 1);
  return identities[0];
}

mavlink_param_value_t Board::set_bits(const char* name, std::uint32_t bits, std::uint8_t type) {
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

void Board::set(const char* name, std::uint32_t value) {
  const auto answer = set_bits(name, value, MAV_PARAM_TYPE_UINT32);
  std::uint32_t bits;
  std::memcpy(&bits, &answer.param_value, 4);
  REQUIRE(bits == value);
}

void Board::set_short_run(std::uint32_t steps) {
  set("seed", 7);
  set("steps", steps);
  set("learning_starts", 10);
  set("eval_freq", 25);
  set("n_eval_episodes", 2);
  set("report_every", 10);
}

void Board::start_and_train(std::uint32_t step) {
  REQUIRE(command(MAV_CMD_RLT_START) == MAV_RESULT_ACCEPTED);
  train_until(step);
}

void Board::train_until(std::uint32_t step) {
  for (int i = 0; i < 1000 && steps_done(run.training) < step; i++) turns(1);
  REQUIRE(steps_done(run.training) == step);
}

void Board::train_to_rest(int at_most) {
  received.clear();
  for (int i = 0; i < at_most && application.state() == RLT_STATE_TRAINING; i++) turns(1);
  REQUIRE(application.state() != RLT_STATE_TRAINING);
}

mavlink_command_long_t Board::command_of(std::uint16_t command, float parameter,
                                         std::uint8_t confirmation) {
  mavlink_command_long_t content{};
  content.command = command;
  content.param1 = parameter;
  content.confirmation = confirmation;
  content.target_system = kSelf.system;
  content.target_component = kSelf.component;
  return content;
}

std::string hash_of(const std::uint8_t (&sha256)[32]) {
  std::string text;
  for (const std::uint8_t byte : sha256) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string expected_sha256(std::uint32_t steps) {
  training_run::Run<TinyTd3> run(7);
  run.training.hyperparameters.learning_starts = 10;
  initialize(Generic{}, run.training);
  run.train(Generic{}, steps);
  return run.state_sha256();
}

mavlink_rlt_result_t result_in(const HostSide& board) {
  const auto results = board.all(MAVLINK_MSG_ID_RLT_RESULT, mavlink_msg_rlt_result_decode);
  REQUIRE(results.size() == 1);
  return results[0];
}
std::vector<mavlink_rlt_progress_t> progress_in(const HostSide& board) {
  return board.all(MAVLINK_MSG_ID_RLT_PROGRESS, mavlink_msg_rlt_progress_decode);
}
std::vector<mavlink_rlt_evaluation_t> evaluations_in(const HostSide& board) {
  return board.all(MAVLINK_MSG_ID_RLT_EVALUATION, mavlink_msg_rlt_evaluation_decode);
}

}  // namespace scripted
