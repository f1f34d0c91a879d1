// Test: scripted_board
// The train application with many environments, which take a step each in one turn.
#include <string>
#include <vector>

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
  void train(std::uint32_t steps, std::uint32_t report_every, std::uint32_t eval_every) {
    auto& hyper = run.training.hyperparameters;
    hyper.steps = steps;
    hyper.learning_starts = 10;
    hyper.report_every = report_every;
    hyper.eval_every = eval_every;
    hyper.eval_episodes = 1;
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
