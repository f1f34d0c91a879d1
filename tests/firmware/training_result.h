// What the tests of the train application expect of a run's end.
#pragma once

#include <string>

#include "scripted_board.h"

namespace scripted {

inline std::string hash_of(const std::uint8_t (&sha256)[32]) {
  std::string text;
  for (const std::uint8_t byte : sha256) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// What a run without any application gives.
inline std::string expected_sha256(std::uint32_t steps) {
  training_run::Run<TinyTd3> run(7);
  run.training.hyperparameters.learning_starts = 10;
  initialize(Generic{}, run.training);
  run.train(Generic{}, steps);
  return run.state_sha256();
}

inline mavlink_rlt_result_t result_in(const Board& board) {
  const auto results = board.all(MAVLINK_MSG_ID_RLT_RESULT, mavlink_msg_rlt_result_decode);
  REQUIRE(results.size() == 1);
  return results[0];
}

}  // namespace scripted
