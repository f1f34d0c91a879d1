// Test: scripted_board
// The train application with many environments, which take a step each in one turn, and with one
// that another program plays: where that is lost, the state is saved as at a pause, and a
// checkpoint goes on with new episodes.
#include <string>
#include <vector>

#include "run_checkpoint.h"
#include "scripted_environment.h"
#include "training_result.h"

using namespace scripted;

namespace {

constexpr std::uint32_t kEnvironments = 4;

struct FourTd3 : TinyTd3 {
  static constexpr const char* kName = "four-td3";
  static constexpr int kEnvironments = 4;
};

// A board that trains it, from hyperparameters that are set to its memory.
struct FourBoard : BoardOf<FourTd3> {
  void train(std::uint32_t steps, std::uint32_t report_every, std::uint32_t eval_freq) {
    auto& hyper = run.training.hyperparameters;
    hyper.steps = steps;
    hyper.learning_starts = 10;
    hyper.report_every = report_every;
    hyper.eval_freq = eval_freq;
    hyper.n_eval_episodes = 1;
    put(mavlink_msg_command_long_encode, Board::command_of(MAV_CMD_RLT_START));
    for (int i = 0; i < 1000 && application.state() != RLT_STATE_FINISHED; i++) application.poll();
    REQUIRE(application.state() == RLT_STATE_FINISHED);
    parse();
  }
};

using Steps = std::vector<std::uint32_t>;
template <class Reports>
Steps steps_of(const Reports& reports) {
  Steps steps;
  for (const auto& report : reports) steps.push_back(report.step);
  return steps;
}

}  // namespace

TEST_CASE("a run of many environments ends with the bits of one that nobody watched") {
  FourBoard board;
  board.train(102, 10, 15);
  const auto result = result_in(board);
  CHECK(result.step == 104);
  training_run::Run<FourTd3> run(7);
  run.training.hyperparameters.learning_starts = 10;
  initialize(Generic{}, run.training);
  run.train(Generic{}, 104 / kEnvironments);
  CHECK(hash_of(result.state_sha256) == run.state_sha256());
  const auto progress = progress_in(board);
  // Reports fall due where a multiple is crossed.
  CHECK(steps_of(progress) == Steps{12, 20, 32, 40, 52, 60, 72, 80, 92, 100, 104});
  CHECK(progress.back().updates == run.learner->progress.updates);
  CHECK(progress.back().episodes == kEnvironments);  // each has taken 26 steps, of episodes of 20
  // A report has the episodes that have ended since the last one, and their true length.
  for (const auto& report : progress) {
    CAPTURE(report.step);
    CHECK(report.episodes_ended == (report.step == 80 ? kEnvironments : 0));
    CHECK(report.episode_length == (report.step == 80 ? 20.0f : 0.0f));
  }
}

// -- an environment elsewhere ---------------------------------------------------------------------

namespace {

struct ElsewhereTd3 : TinyTd3 {
  static constexpr const char* kName = "elsewhere-td3";
  using Environment = Scripted;
  using Actor = Mlp<float, Dimensions<2, 4, 1>, Activation::relu, Activation::tanh>;
  using Critic = Mlp<float, Dimensions<3, 4, 1>, Activation::relu, Activation::identity>;
};

struct ElsewhereBoard : BoardOf<ElsewhereTd3> {
  ElsewhereBoard() {
    script = {};
    auto& hyper = run.training.hyperparameters;
    hyper.steps = 100;
    hyper.learning_starts = 10;
    hyper.eval_freq = 50;
    hyper.n_eval_episodes = 2;
  }

  FileError file(FileOperation operation, std::uint32_t offset, const Bytes& data) {
    received.clear();
    put(mavlink_msg_file_transfer_protocol_encode,
        addressed_to(kSelf, content_of(file_request(sequence_ += 2, 0, operation, offset, data))));
    while (!to_board.empty()) application.poll();
    parse();
    const auto replies =
        all(MAVLINK_MSG_ID_FILE_TRANSFER_PROTOCOL, mavlink_msg_file_transfer_protocol_decode);
    REQUIRE(replies.size() == 1);
    FileMessage reply;
    std::memcpy(&reply, replies[0].payload, kFileMessageBytes);
    return reply.operation == FileOperation::ack ? FileError::none
                                                 : static_cast<FileError>(reply.data[0]);
  }
  void upload(const Bytes& content) {
    REQUIRE(file(FileOperation::create_file, 0, bytes_of("/checkpoint.rltc")) == FileError::none);
    for (std::size_t i = 0; i < content.size(); i += 239) {
      const std::size_t end = i + 239 < content.size() ? i + 239 : content.size();
      REQUIRE(file(FileOperation::write_file, static_cast<std::uint32_t>(i),
                   Bytes(&content[i], &content[0] + end)) == FileError::none);
    }
    REQUIRE(file(FileOperation::terminate_session, 0, {}) == FileError::none);
    REQUIRE(application.state() == RLT_STATE_PAUSED);
  }
  std::uint32_t episodes() const { return run.learner->environments.episodes[0]; }

  void command(int number) {
    put(mavlink_msg_command_long_encode, Board::command_of(static_cast<std::uint16_t>(number)));
    application.poll();
  }
  void poll_until_step(std::uint32_t step) {
    for (int i = 0; i < 1000 && steps_done(run.training) < step; i++) application.poll();
  }
  void poll_to_rest() {
    for (int i = 0; i < 1000 && application.state() == RLT_STATE_TRAINING; i++) application.poll();
    parse();
  }

 private:
  std::uint16_t sequence_ = 100;
};

}  // namespace

TEST_CASE("a board whose environment is lost is paused, with its state") {
  ElsewhereBoard board;
  board.command(MAV_CMD_RLT_START);
  board.poll_until_step(30);
  script.unavailable = "it has ended";
  board.poll_to_rest();
  CHECK(board.application.state() == RLT_STATE_PAUSED);
  const auto result = result_in(board);
  CHECK(result.step == 31);
  CHECK(hash_of(result.state_sha256) == board.run.state_sha256());
  CHECK(state_is_consistent(board.run.training));
  CHECK(state_is_finite(board.run.training));
  board.command(MAV_CMD_RLT_RESUME);  // refused as long as it is not there
  CHECK(board.application.state() == RLT_STATE_PAUSED);
  script.unavailable = nullptr;
  board.command(MAV_CMD_RLT_RESUME);
  board.poll_to_rest();
  CHECK(board.application.state() == RLT_STATE_FINISHED);
}

TEST_CASE("an evaluation whose environment is lost has no result") {
  ElsewhereBoard board;
  board.command(MAV_CMD_RLT_START);
  board.poll_until_step(50);
  script.unavailable = "it has ended";
  board.poll_to_rest();
  CHECK(board.application.state() == RLT_STATE_PAUSED);
  CHECK(evaluations_in(board).empty());
}

TEST_CASE("episodes of a checkpoint are begun anew at the first resume, and never again") {
  ElsewhereBoard board;
  board.command(MAV_CMD_RLT_START);
  board.poll_until_step(3);
  board.command(MAV_CMD_RLT_PAUSE);
  const Bytes checkpoint = run_checkpoint::checkpoint_of(board.run);
  REQUIRE(board.episodes() == 0);
  board.upload(checkpoint);
  SUBCASE("resumed again") {
    board.command(MAV_CMD_RLT_RESUME);
    CHECK(board.episodes() == 1);
    board.command(MAV_CMD_RLT_PAUSE);
    board.command(MAV_CMD_RLT_RESUME);
    CHECK(board.episodes() == 1);
  }
  SUBCASE("after a new start there is nothing of the checkpoint") {
    board.command(MAV_CMD_RLT_START);
    board.command(MAV_CMD_RLT_PAUSE);
    board.command(MAV_CMD_RLT_RESUME);
    CHECK(board.episodes() == 0);
  }
  SUBCASE("a resume that is refused leaves it for the next one") {
    script.unavailable = "it is not there yet";
    board.command(MAV_CMD_RLT_RESUME);
    CHECK(board.episodes() == 0);
    script.unavailable = nullptr;
    board.command(MAV_CMD_RLT_RESUME);
    CHECK(board.episodes() == 1);
  }
}
