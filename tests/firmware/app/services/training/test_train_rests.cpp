// Test: scripted_board
// A board without memory for a second policy: where the host asks for it, it rests after each
// evaluation that is the best so far, so that the host can fetch its policy.
#include "file_client.h"
#include "training_result.h"

#include <cmath>
#include <limits>

using namespace scripted;

namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

// What a board that keeps the best policy comes to, and what it reports.
struct Kept {
  Board board;
  Bytes best;
  std::vector<mavlink_rlt_progress_t> progress;
  std::vector<mavlink_rlt_evaluation_t> evaluations;

  explicit Kept(std::uint32_t seed) {
    board.set_short_run(120);
    board.set("eval_freq", 10);
    board.set("report_every", 7);
    board.set("seed", seed);
    REQUIRE(board.command(MAV_CMD_RLT_START, 1.0f) == MAV_RESULT_ACCEPTED);
    board.train_to_rest(4000);
    progress = progress_in(board);
    evaluations = evaluations_in(board);
    best = Client(board).download("/best.rltp");
  }

  std::vector<mavlink_rlt_evaluation_t> better() const {
    std::vector<mavlink_rlt_evaluation_t> found;
    for (const auto& evaluation : evaluations) {
      if (found.empty() || evaluation.return_mean > found.back().return_mean) {
        found.push_back(evaluation);
      }
    }
    return found;
  }
};

struct Resting : BoardOf<TinyTd3, false> {
  float token = 0.0f;  // of the last command

  explicit Resting(std::uint32_t seed = 7) {
    auto& hyper = run.training.hyperparameters;
    hyper.seed = seed;
    hyper.steps = 120;
    hyper.learning_starts = 10;
    hyper.eval_freq = 10;
    hyper.n_eval_episodes = 2;
    hyper.report_every = 7;
  }

  int command(std::uint16_t number, float first, float second = 0.0f, float third = 0.0f,
              std::uint8_t confirmation = 0) {
    auto content = Board::command_of(number, first, confirmation);
    content.param2 = second;
    content.param3 = third;
    put(mavlink_msg_command_long_encode, content);
    while (!to_board.empty()) application.poll();
    return answer();
  }
  int start(float above = kNone) { return command(MAV_CMD_RLT_START, token = 1.0f, 1.0f, above); }
  int resume(float above) { return command(MAV_CMD_RLT_RESUME, ++token, 1.0f, above); }

  int answer() {
    parse();
    const auto answers = all(MAVLINK_MSG_ID_COMMAND_ACK, mavlink_msg_command_ack_decode);
    return answers.empty() ? -1 : answers.back().result;
  }

  void train_to_rest() {
    for (int i = 0; i < 4000 && application.state() == RLT_STATE_TRAINING; i++) application.poll();
    REQUIRE(application.state() != RLT_STATE_TRAINING);
    parse();
  }
  Bytes policy() const { return {std::begin(images.last), std::end(images.last)}; }
  mavlink_rlt_result_t result() { return results().back(); }
  std::vector<mavlink_rlt_result_t> results() {
    return all(MAVLINK_MSG_ID_RLT_RESULT, mavlink_msg_rlt_result_decode);
  }
};

}  // namespace

TEST_CASE("at rest a board states its best evaluation and its last one, for who was not there") {
  Kept kept(7);
  Board& board = kept.board;
  const auto asked = [&] {
    return board.command(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_RLT_EVALUATION);
  };
  REQUIRE(asked() == MAV_RESULT_ACCEPTED);
  const auto stated = evaluations_in(board);
  REQUIRE(stated.size() >= 2);
  const auto& best = stated[stated.size() - 2];
  const auto& last = stated.back();
  CHECK(best.step == kept.better().back().step);
  CHECK(best.return_mean == kept.better().back().return_mean);
  CHECK(last.step == kept.evaluations.back().step);
  CHECK(last.counter == kept.evaluations.back().counter);

  board.command(MAV_CMD_RLT_START, 2.0f);
  CHECK(asked() == MAV_RESULT_DENIED);  // it trains
  board.command(MAV_CMD_RLT_PAUSE);
  CHECK(asked() == MAV_RESULT_DENIED);  // of the run before
}

TEST_CASE("a host has the best policy of a board that rests for it, and the same run") {
  for (const std::uint32_t seed : {7u, 8u, 9u, 10u}) {
    CAPTURE(seed);
    Kept kept(seed);
    const auto better = kept.better();
    Resting board(seed);
    Bytes best;
    REQUIRE(board.start() == MAV_RESULT_ACCEPTED);
    for (const auto& evaluation : better) {
      board.train_to_rest();
      REQUIRE(board.result().step == evaluation.step);
      CHECK(board.result().is_best == 1);
      const bool is_end = evaluation.step == 120;
      CHECK(board.application.state() == (is_end ? RLT_STATE_FINISHED : RLT_STATE_PAUSED));
      CHECK(std::memcmp(board.images.last + offsetof(PolicyImageHeader, state_sha256),
                        board.result().state_sha256, 32) == 0);
      best = board.policy();
      if (!is_end) REQUIRE(board.resume(evaluation.return_mean) == MAV_RESULT_ACCEPTED);
    }
    board.train_to_rest();
    CHECK(best == kept.best);
    CHECK(board.result().state == RLT_STATE_FINISHED);
    CHECK(board.result().is_best == (better.back().step == 120));
    CHECK(hash_of(board.result().state_sha256) == kept.board.run.state_sha256());
    // Neither reports nor evaluations differ.
    const auto evaluations = evaluations_in(board);
    REQUIRE(evaluations.size() == kept.evaluations.size());
    for (std::size_t i = 0; i < evaluations.size(); i++) {
      CHECK(evaluations[i].return_mean == kept.evaluations[i].return_mean);
    }
    const auto progress = progress_in(board);
    REQUIRE(progress.size() == kept.progress.size());
    for (std::size_t i = 0; i < progress.size(); i++) {
      CHECK(progress[i].step == kept.progress[i].step);
      CHECK(std::memcmp(progress[i].metrics, kept.progress[i].metrics, 64) == 0);
    }
  }
}

TEST_CASE("a board rests where it was asked to, and only above what was stated") {
  const Kept kept(7);
  const auto better = kept.better();
  const float largest = better.back().return_mean;
  SUBCASE("not asked: as by an older host") {
    Resting board;
    float second = 0.0f;
    SUBCASE("nothing is stated") {}
    SUBCASE("a number that is not 1") { second = 2.0f; }
    REQUIRE(board.command(MAV_CMD_RLT_START, 1.0f, second, kNone) == MAV_RESULT_ACCEPTED);
    board.train_to_rest();
    CHECK(board.result().state == RLT_STATE_FINISHED);
    CHECK(board.result().is_best == 0);
  }
  SUBCASE("an equal mean return is not above it") {
    Resting board;
    REQUIRE(board.start(largest) == MAV_RESULT_ACCEPTED);
    board.train_to_rest();
    CHECK(board.results().size() == 1);
    CHECK(board.result().state == RLT_STATE_FINISHED);
    CHECK(board.result().is_best == 0);
  }
  SUBCASE("the next smaller one is") {
    Resting board;
    REQUIRE(board.start(std::nextafter(largest, kNone)) == MAV_RESULT_ACCEPTED);
    board.train_to_rest();
    CHECK(board.result().step == better.back().step);
    CHECK(board.result().is_best == 1);
  }
  SUBCASE("who resumes without asking for rests has none") {
    Resting board;
    REQUIRE(board.start() == MAV_RESULT_ACCEPTED);
    board.train_to_rest();
    REQUIRE(board.command(MAV_CMD_RLT_RESUME, 0.0f) == MAV_RESULT_ACCEPTED);
    board.train_to_rest();
    CHECK(board.results().size() == 2);
    CHECK(board.result().state == RLT_STATE_FINISHED);
  }
  SUBCASE("a board that keeps the best policy never does") {
    Board board;
    board.set_short_run(60);
    auto content = Board::command_of(MAV_CMD_RLT_START, 1.0f);
    content.param2 = 1.0f;
    content.param3 = kNone;
    board.exchange(mavlink_msg_command_long_encode, content);
    board.train_to_rest();
    CHECK(evaluations_in(board).size() == 3);
    CHECK(result_in(board).state == RLT_STATE_FINISHED);
    CHECK(result_in(board).is_best == 0);
  }
}

TEST_CASE("a command that comes again does not end the rest that it led to") {
  Resting board;
  REQUIRE(board.start() == MAV_RESULT_ACCEPTED);
  board.train_to_rest();
  REQUIRE(board.result().is_best == 1);
  const std::uint32_t step = board.result().step;
  CHECK(board.command(MAV_CMD_RLT_START, board.token, 1.0f, kNone, 1) == MAV_RESULT_ACCEPTED);
  CHECK(board.application.state() == RLT_STATE_PAUSED);
  REQUIRE(board.resume(kNone) == MAV_RESULT_ACCEPTED);
  board.train_to_rest();
  REQUIRE(board.result().step == step + 10);
  // Its acknowledgement was lost, or the link has delayed a copy of it.
  for (const std::uint8_t confirmation : {0, 1}) {
    CHECK(board.command(MAV_CMD_RLT_RESUME, board.token, 1.0f, kNone, confirmation) ==
          MAV_RESULT_ACCEPTED);
    CHECK(board.application.state() == RLT_STATE_PAUSED);
  }
  // A lost result is asked for again.
  CHECK(board.command(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_RLT_RESULT) == MAV_RESULT_ACCEPTED);
  CHECK(board.result().is_best == 1);
  REQUIRE(board.resume(kNone) == MAV_RESULT_ACCEPTED);
  CHECK(board.application.state() == RLT_STATE_TRAINING);
}

TEST_CASE("a pause and a rest are one, and other pauses are no rests") {
  Resting board;
  board.run.training.hyperparameters.n_eval_episodes = 50;
  REQUIRE(board.start() == MAV_RESULT_ACCEPTED);
  SUBCASE("during an evaluation") {
    while (steps_done(board.run.training) < 10) board.application.poll();
    CHECK(board.command(MAV_CMD_RLT_PAUSE, 0.0f) == MAV_RESULT_ACCEPTED);
    CHECK(board.result().is_best == 0);
    REQUIRE(board.resume(kNone) == MAV_RESULT_ACCEPTED);
    board.train_to_rest();
    CHECK(board.results().size() == 2);
    CHECK(board.result().is_best == 1);
    CHECK(board.result().step == 10);
    // Steps later the policy is another one.
    REQUIRE(board.resume(kNone) == MAV_RESULT_ACCEPTED);
    board.application.poll();
    CHECK(board.command(MAV_CMD_RLT_PAUSE, 0.0f) == MAV_RESULT_ACCEPTED);
    CHECK(board.results().size() == 3);
    CHECK(board.result().is_best == 0);
  }
  SUBCASE("when it rests already") {
    board.train_to_rest();
    CHECK(board.command(MAV_CMD_RLT_PAUSE, 0.0f) == MAV_RESULT_ACCEPTED);
    CHECK(board.results().size() == 2);
    CHECK(board.result().is_best == 1);
    // The counter of both is that of the rest.
    CHECK(board.results()[0].counter == board.results()[1].counter);
  }
}
