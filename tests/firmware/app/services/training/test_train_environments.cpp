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

TEST_CASE("reports fall due when a multiple is crossed, once for each turn") {
  FourBoard board;
  board.train(42, 10, 15);
  CHECK(steps_of(progress_in(board)) == Steps{12, 20, 32, 40, 44});
  CHECK(steps_of(evaluations_in(board)) == Steps{16, 32, 44});
  FourBoard often;
  often.train(12, 1, 3);
  CHECK(steps_of(progress_in(often)) == Steps{4, 8, 12});
  CHECK(steps_of(evaluations_in(often)) == Steps{4, 8, 12});
}

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
  CHECK(progress.back().updates == run.learner->progress.updates);
  CHECK(progress.back().episodes == kEnvironments);  // each has taken 26 steps, of episodes of 20
}

// -- an environment that only evaluations break -----------------------------------------------

namespace {

// Sound in training; step `kSoundSteps` of an evaluation's second episode is not.
struct LatePendulum : TinyPendulum {
  static constexpr std::uint32_t kSoundSteps = 7;
  static inline bool breaks_reward = false;
};
StepResult<float> step(Generic device, const LatePendulum&,
                       const LatePendulum::Parameters& parameters, LatePendulum::State& state,
                       const float* action, RandomStream random) {
  const TinyPendulum sound{};
  auto result = step(device, sound, parameters, state, action, random);
  const bool is_late = random.purpose == Purpose::evaluation_step && random.substream == 1 &&
                       random.step == LatePendulum::kSoundSteps;
  if (!is_late) return result;
  (LatePendulum::breaks_reward ? result.reward : state.velocity_rad_s) = math::kQuietNan;
  return result;
}

struct LateTd3 : TinyTd3 {
  static constexpr const char* kName = "late-td3";
  using Environment = LatePendulum;
};

struct LateBoard : BoardOf<LateTd3> {
  void train_to_fault() {
    put(mavlink_msg_command_long_encode, Board::command_of(MAV_CMD_RLT_START));
    for (int i = 0; i < 1000 && application.state() != RLT_STATE_FAULT; i++) application.poll();
    REQUIRE(application.state() == RLT_STATE_FAULT);
    parse();
  }
};

}  // namespace

TEST_CASE("a step that is not finite in an evaluation alone stops training, and is named") {
  LatePendulum::breaks_reward = false;
  std::string what = "an observation";
  SUBCASE("an observation") {}
  SUBCASE("a reward") {
    LatePendulum::breaks_reward = true;
    what = "a reward";
  }
  LateBoard board;
  auto& hyper = board.run.training.hyperparameters;
  hyper.steps = 100;
  hyper.eval_freq = 30;
  hyper.n_eval_episodes = 3;
  board.train_to_fault();
  CHECK(steps_done(board.run.training) == 30);
  CHECK(evaluations_in(board).empty());
  std::string text;
  for (const std::string& piece : board.texts()) text += piece;

  // The state before that step, by an episode that nobody watches.
  Evaluation<TinyTd3> sound;
  training_run::Run<TinyTd3> run(7);
  run.training.hyperparameters = hyper;
  initialize(Generic{}, run.training);
  run.train(Generic{}, 30);
  begin_evaluation(Generic{}, run.training, sound);
  while (sound.episode != 1 || sound.episode_step != LatePendulum::kSoundSteps) {
    REQUIRE(evaluate_step(Generic{}, run.training, sound));
  }
  const auto written = [](float value) { return std::string(NumberText(value).text()); };
  const auto& state = sound.environment_state;
  const std::string begins = "training stopped: " + what +
                             " of an evaluation is not finite; state angle_rad " +
                             written(state.angle_rad) + ", velocity_rad_s " +
                             written(state.velocity_rad_s) + "; action torque ";
  CHECK(text.substr(0, begins.size()) == begins);
  evaluate_step(Generic{}, run.training, sound);
  CHECK(text.substr(begins.size()) == written(sound.non_finite.action[0]));
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

TEST_CASE("a board does not start without its environment") {
  ElsewhereBoard board;
  script.unavailable = "it was never there";
  board.command(MAV_CMD_RLT_START);
  CHECK(board.application.state() == RLT_STATE_IDLE);
}

TEST_CASE("a pause keeps an episode, as whoever plays it is still there") {
  ElsewhereBoard board;
  board.command(MAV_CMD_RLT_START);
  board.poll_until_step(3);
  board.command(MAV_CMD_RLT_PAUSE);
  const auto state = board.run.state();
  board.command(MAV_CMD_RLT_RESUME);
  board.command(MAV_CMD_RLT_PAUSE);
  CHECK(board.run.learner->environments.episodes[0] == 0);
  CHECK(board.run.state().size() == state.size());
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
