// Test: scripted_board
// When the train application starts, and when it does not (docs/protocol.md, "Messages").
#include "file_client.h"
#include "training_result.h"

using namespace scripted;

TEST_CASE_FIXTURE(ShortRun, "start: refused while training, unless it is the same command again") {
  CHECK(board.command(MAV_CMD_RLT_START) == MAV_RESULT_ACCEPTED);
  board.turns(20);
  CHECK(board.command(MAV_CMD_RLT_START) == MAV_RESULT_DENIED);
  CHECK(board.command(MAV_CMD_RLT_START, 0, 1) == MAV_RESULT_ACCEPTED);
  CHECK(steps_done(board.run.training) > 20);
  board.train_to_rest();
  CHECK(hash_of(result_in(board).state_sha256) == expected_sha256(60));
  // A second run starts from the beginning.
  CHECK(board.command(MAV_CMD_RLT_START) == MAV_RESULT_ACCEPTED);
  CHECK(board.application.state() == RLT_STATE_TRAINING);
  board.train_to_rest();
  CHECK(hash_of(result_in(board).state_sha256) == expected_sha256(60));
}

TEST_CASE_FIXTURE(ShortRun, "start: repeated with its token it has no effect, even after the end") {
  REQUIRE(board.command(MAV_CMD_RLT_START, 7.0f) == MAV_RESULT_ACCEPTED);
  board.train_to_rest();
  REQUIRE(board.application.state() == RLT_STATE_FINISHED);
  CHECK(board.command(MAV_CMD_RLT_START, 7.0f, 1) == MAV_RESULT_ACCEPTED);
  CHECK(board.application.state() == RLT_STATE_FINISHED);
  // A new start of which only the repetition arrives.
  CHECK(board.command(MAV_CMD_RLT_START, 8.0f, 1) == MAV_RESULT_ACCEPTED);
  CHECK(board.application.state() == RLT_STATE_TRAINING);
}

TEST_CASE_FIXTURE(ShortRun, "start: without a token, or without a repetition, it is a new start") {
  float token = 0.0f;
  std::uint8_t confirmation = 1;
  SUBCASE("token 0 is none") {}
  SUBCASE("not a repetition") {
    token = 7.0f;
    confirmation = 0;
  }
  REQUIRE(board.command(MAV_CMD_RLT_START, token) == MAV_RESULT_ACCEPTED);
  board.train_to_rest();
  CHECK(board.command(MAV_CMD_RLT_START, token, confirmation) == MAV_RESULT_ACCEPTED);
  CHECK(board.application.state() == RLT_STATE_TRAINING);
}

TEST_CASE("a board whose arithmetic has a fault says so and does not train") {
  for (int number = 1; number <= static_cast<int>(ArithmeticFault::double_precision); number++) {
    Board board(static_cast<ArithmeticFault>(number));
    CHECK(board.command(MAV_CMD_RLT_START) == MAV_RESULT_DENIED);
    const auto texts = board.texts();
    REQUIRE(texts.size() == 1);
    CHECK(texts[0].rfind("training refused: ", 0) == 0);
    CHECK(texts[0] != "training refused: arithmetic fails");
    CHECK(board.state() == RLT_STATE_IDLE);
  }
}

TEST_CASE("a board whose arithmetic has a fault does not resume, either") {
  Board sound;
  sound.set_short_run(60);
  sound.start_and_train(31);
  REQUIRE(sound.command(MAV_CMD_RLT_PAUSE) == MAV_RESULT_ACCEPTED);
  const Bytes checkpoint = Client(sound).download("/checkpoint.rltc");
  Board board(ArithmeticFault::division);
  CHECK(Client(board).upload(checkpoint).operation == FileOperation::ack);
  REQUIRE(board.state() == RLT_STATE_PAUSED);
  CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_DENIED);
  CHECK(board.texts() == std::vector<std::string>{"training refused: division is not exact"});
  CHECK(board.state() == RLT_STATE_PAUSED);
}

TEST_CASE("without its environment's simulator a board does not train") {
  Board board;
  TinyPendulum::missing = "the pendulum has been taken away";
  CHECK(board.command(MAV_CMD_RLT_START) == MAV_RESULT_DENIED);
  CHECK(board.texts() == std::vector<std::string>{"training refused: its simulator is not there"});
  CHECK(board.state() == RLT_STATE_IDLE);
  TinyPendulum::missing = nullptr;
  CHECK(board.command(MAV_CMD_RLT_START) == MAV_RESULT_ACCEPTED);
}
