// Test: scripted_board
// The train application's states, commands, hyperparameters and reports (docs/protocol.md), on a
// board that is memory.
#include "file_client.h"
#include "training_result.h"

#include <cmath>
#include <limits>
#include <random>

using namespace scripted;

namespace {

// Places in a progress message, as td3.h lists its metrics.
constexpr int kCritic1 = 0, kCritic2 = 1, kActor = 2;

}  // namespace

TEST_CASE("a board says who it is, and that it lives") {
  Board board;
  board.turns(1);
  const auto heartbeats = board.all(MAVLINK_MSG_ID_HEARTBEAT, mavlink_msg_heartbeat_decode);
  REQUIRE(heartbeats.size() == 1);
  CHECK(heartbeats[0].autopilot == MAV_AUTOPILOT_INVALID);
  CHECK(heartbeats[0].type == MAV_TYPE_ONBOARD_CONTROLLER);
  CHECK(idle_calls == 1);
  board.received.clear();
  counter_us += 1'000'000;
  board.turns(2);
  CHECK(board.all(MAVLINK_MSG_ID_HEARTBEAT, mavlink_msg_heartbeat_decode).size() == 1);

  const mavlink_rlt_identity_t identity = board.identity();
  CHECK(identity.fingerprint == fingerprint(board.run.training));
  CHECK(identity.learner_bytes == sizeof(Learner<TinyTd3>));
  CHECK(identity.replay_bytes == sizeof(Replay<TinyTd3>));
  CHECK(identity.scratch_bytes == sizeof(Scratch<TinyTd3>));
  CHECK(identity.protocol_version == 3);
  CHECK(identity.state == RLT_STATE_IDLE);
  CHECK(identity.counter == RLT_COUNTER_MICROSECONDS);
  CHECK(std::string(identity.experiment) == "tiny-td3");
  CHECK(std::string(identity.board) == "scripted");
  CHECK(std::string(identity.device) == "Generic");
  CHECK(std::string(identity.revision) == "test");
  CHECK(identity.unique_id[15] == 15);
}

TEST_CASE("ground control programs are told of files and bytewise parameters") {
  Board board;
  CHECK(board.command(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_AUTOPILOT_VERSION) ==
        MAV_RESULT_ACCEPTED);
  const auto versions =
      board.all(MAVLINK_MSG_ID_AUTOPILOT_VERSION, mavlink_msg_autopilot_version_decode);
  REQUIRE(versions.size() == 1);
  CHECK(versions[0].capabilities ==
        (MAV_PROTOCOL_CAPABILITY_MAVLINK2 | MAV_PROTOCOL_CAPABILITY_FTP |
         MAV_PROTOCOL_CAPABILITY_PARAM_ENCODE_BYTEWISE));
  CHECK(versions[0].uid2[15] == 15);
}

TEST_CASE("a run: reports fall due, and watching it changes nothing") {
  Board board;
  board.set_short_run(63);
  CHECK(board.command(MAV_CMD_RLT_START) == MAV_RESULT_ACCEPTED);
  board.train_to_rest();
  CHECK(board.application.state() == RLT_STATE_FINISHED);

  const auto progress = progress_in(board);
  std::vector<std::uint32_t> steps;
  std::uint64_t counter = 0;
  for (const auto& report : progress) {
    steps.push_back(report.step);
    CHECK(report.steps == 63);
    CHECK(report.updates == report.step - 10);
    CHECK(report.episodes == report.step / 20);
    CHECK(std::isnan(report.last_return) == (report.episodes == 0));
    CHECK(std::isnan(report.metrics[kCritic1]) == (report.updates == 0));
    CHECK(report.counter > counter);
    counter = report.counter;
  }
  CHECK(steps == std::vector<std::uint32_t>{10, 20, 30, 40, 50, 60, 63});

  const auto evaluations = evaluations_in(board);
  REQUIRE(evaluations.size() == 3);
  CHECK(evaluations[0].step == 25);
  CHECK(evaluations[1].step == 50);
  CHECK(evaluations[2].step == 63);
  CHECK(evaluations[2].episodes == 2);
  CHECK(evaluations[2].return_min <= evaluations[2].return_mean);

  const auto result = result_in(board);
  CHECK(result.state == RLT_STATE_FINISHED);
  CHECK(result.step == 63);
  CHECK(result.checkpoint_bytes == 64 + state_bytes(board.run.training));
  CHECK(result.policy_bytes == kPolicyImageBytes<TinyTd3>);
  CHECK(hash_of(result.state_sha256) == expected_sha256(63));
}

TEST_CASE_FIXTURE(ShortRun,
                  "a run ends with the same bits, whatever comes over the link meanwhile") {
  std::mt19937 random(1);
  CHECK(board.command(MAV_CMD_RLT_START) == MAV_RESULT_ACCEPTED);
  while (board.application.state() == RLT_STATE_TRAINING) {
    for (int i = static_cast<int>(random() % 400); i > 0; i--) {
      to_board.push_back(random() % 4 == 0 ? 0xfd : static_cast<std::uint8_t>(random()));
    }
    board.put(mavlink_msg_command_long_encode,
              Board::command_of(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_RLT_IDENTITY));
    board.turns(1);
  }
  CHECK(hash_of(result_in(board).state_sha256) == expected_sha256(60));
}

TEST_CASE_FIXTURE(ShortRun,
                  "pause and resume: the state rests in between, and the end is the same") {
  CHECK(board.command(MAV_CMD_RLT_PAUSE) == MAV_RESULT_DENIED);
  CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_DENIED);
  CHECK(board.command(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_RLT_RESULT) == MAV_RESULT_DENIED);
  board.start_and_train(31);
  CHECK(board.command(MAV_CMD_RLT_PAUSE) == MAV_RESULT_ACCEPTED);
  const auto result = result_in(board);
  CHECK(result.state == RLT_STATE_PAUSED);
  CHECK(result.step == 31);
  CHECK(hash_of(result.state_sha256) == expected_sha256(31));

  counter_us += 123456789;
  board.turns(5);
  CHECK(steps_done(board.run.training) == 31);
  // Again: the same answer.
  CHECK(board.command(MAV_CMD_RLT_PAUSE, 0, 1) == MAV_RESULT_ACCEPTED);
  CHECK(result_in(board).counter == result.counter);
  CHECK(board.command(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_RLT_RESULT) == MAV_RESULT_ACCEPTED);
  CHECK(result_in(board).step == 31);

  CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_ACCEPTED);
  CHECK(board.command(MAV_CMD_RLT_RESUME, 0, 1) == MAV_RESULT_ACCEPTED);
  board.train_to_rest();
  const auto end = result_in(board);
  CHECK(end.state == RLT_STATE_FINISHED);
  CHECK(hash_of(end.state_sha256) == expected_sha256(60));
  CHECK(end.counter < 123456789);  // a pause does not count

  // Nothing left to do; more steps give more to do.
  CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_ACCEPTED);
  CHECK(result_in(board).state == RLT_STATE_FINISHED);
  board.set("steps", 70);
  CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_ACCEPTED);
  board.train_to_rest();
  CHECK(hash_of(result_in(board).state_sha256) == expected_sha256(70));
}

TEST_CASE_FIXTURE(ShortRun, "an evaluation leaves the board time for messages and heartbeats") {
  board.set("n_eval_episodes", 50);  // of 20 steps
  board.start_and_train(25);
  board.received.clear();
  int turns = 0;
  for (; evaluations_in(board).empty() && turns < 1000; turns++) {
    counter_us += 1'000'000;
    board.turns(1);
  }
  CHECK(turns >= 50);
  CHECK(evaluations_in(board)[0].step == 25);
  CHECK(evaluations_in(board)[0].episodes == 50);
  CHECK(board.all(MAVLINK_MSG_ID_HEARTBEAT, mavlink_msg_heartbeat_decode).size() >= 50);
  board.train_to_rest();
  CHECK(hash_of(result_in(board).state_sha256) == expected_sha256(60));
}

TEST_CASE_FIXTURE(ShortRun,
                  "a pause does not wait for an evaluation, which goes on when it is resumed") {
  board.set("n_eval_episodes", 50);
  std::uint32_t step = 25;
  SUBCASE("on the way") {}
  SUBCASE("at the end") { step = 60; }
  board.start_and_train(step);
  board.turns(20);
  CHECK(board.command(MAV_CMD_RLT_PAUSE) == MAV_RESULT_ACCEPTED);
  const auto result = result_in(board);
  CHECK(result.state == RLT_STATE_PAUSED);
  CHECK(result.step == step);
  CHECK(hash_of(result.state_sha256) == expected_sha256(step));
  CHECK(evaluations_in(board).empty());
  CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_ACCEPTED);
  CHECK(board.application.state() == RLT_STATE_TRAINING);
  board.train_to_rest(5000);
  CHECK(result_in(board).state == RLT_STATE_FINISHED);
  ShortRun never_paused;
  never_paused.board.set("n_eval_episodes", 50);
  never_paused.board.start_and_train(step);
  never_paused.board.train_to_rest(5000);
  const auto evaluations = evaluations_in(board), expected = evaluations_in(never_paused.board);
  REQUIRE(evaluations.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); i++) {
    CHECK(evaluations[i].step == expected[i].step);
    CHECK(evaluations[i].return_mean == expected[i].return_mean);
  }
}

TEST_CASE_FIXTURE(ShortRun, "a pause that a new start overtakes is none of the new run's") {
  board.set("n_eval_episodes", 50);
  board.start_and_train(25);
  CHECK(board.command(MAV_CMD_RLT_PAUSE) == MAV_RESULT_ACCEPTED);  // within the evaluation
  REQUIRE(board.application.state() == RLT_STATE_PAUSED);
  CHECK(board.command(MAV_CMD_RLT_START) == MAV_RESULT_ACCEPTED);
  board.turns(1);
  CHECK(steps_done(board.run.training) < 25);
  board.train_to_rest(5000);
  CHECK(board.application.state() == RLT_STATE_FINISHED);
}

TEST_CASE("commands that are not for this application") {
  Board board;
  constexpr std::uint16_t kTakeOff = 22, kAttitude = 30;  // MAV_CMD_NAV_TAKEOFF, ATTITUDE
  CHECK(board.command(kTakeOff) == MAV_RESULT_UNSUPPORTED);
  CHECK(board.command(MAV_CMD_REQUEST_MESSAGE, kAttitude) == MAV_RESULT_UNSUPPORTED);
  CHECK(board.command(MAV_CMD_REQUEST_MESSAGE, std::nanf("")) == MAV_RESULT_UNSUPPORTED);
  auto for_another = Board::command_of(MAV_CMD_RLT_START);
  for_another.target_system = kSelf.system + 1;
  board.exchange(mavlink_msg_command_long_encode, for_another);
  CHECK(board.received.empty());
  CHECK(board.state() == RLT_STATE_IDLE);
  mavlink_command_int_t as_integers{};
  as_integers.command = MAV_CMD_RLT_START;
  as_integers.target_system = kSelf.system;
  board.exchange(mavlink_msg_command_int_encode, as_integers);
  const auto answers = board.all(MAVLINK_MSG_ID_COMMAND_ACK, mavlink_msg_command_ack_decode);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].result == MAV_RESULT_COMMAND_LONG_ONLY);
  CHECK(board.state() == RLT_STATE_IDLE);
}

TEST_CASE("a value that is not finite stops training with a named reason") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Board board;
  board.set_short_run(1000);
  CHECK(board.command(MAV_CMD_RLT_START) == MAV_RESULT_ACCEPTED);
  board.turns(20);
  SUBCASE("a loss") {
    board.run.learner->critic_1.values[3] = nan;
    board.train_to_rest(3);
    CHECK(board.texts() == std::vector<std::string>{"training stopped: a loss is not finite"});
    const auto progress = progress_in(board);
    REQUIRE(progress.size() == 1);
    CHECK(progress[0].step == steps_done(board.run.training));  // where it happened
    CHECK(std::isnan(progress[0].metrics[kCritic1]));
  }
  SUBCASE("a moment, found before an evaluation") {
    board.train_until(24);
    board.run.learner->actor_optimizer.second_moment.values[0] =
        std::numeric_limits<float>::infinity();
    board.train_to_rest();
    CHECK(board.texts() == std::vector<std::string>{"training stopped: a weight is not finite"});
    CHECK(evaluations_in(board).empty());
    CHECK(steps_done(board.run.training) == 25);
  }
  SUBCASE("a moment that does not show in a loss yet") {
    board.run.learner->actor_optimizer.second_moment.values[0] =
        std::numeric_limits<float>::infinity();
    CHECK(board.command(MAV_CMD_RLT_PAUSE) == MAV_RESULT_ACCEPTED);
    CHECK(board.texts() == std::vector<std::string>{"training stopped: a weight is not finite"});
    CHECK(board.all(MAVLINK_MSG_ID_RLT_RESULT, mavlink_msg_rlt_result_decode).empty());
  }
  SUBCASE("a number of the replay buffer that no loss has shown yet") {
    board.run.replay->reward[3] = nan;
    CHECK(board.command(MAV_CMD_RLT_PAUSE) == MAV_RESULT_ACCEPTED);
    CHECK(board.texts() == std::vector<std::string>{"training stopped: a number is not finite"});
    CHECK(board.all(MAVLINK_MSG_ID_RLT_RESULT, mavlink_msg_rlt_result_decode).empty());
  }
  SUBCASE("a step of the environment: from which state, by which action") {
    auto& state = board.run.learner->environments.state[0];
    state.velocity_rad_s = -8.0f;
    state.angle_rad = 1e38f;  // finite; its square is not
    board.train_to_rest(1);
    CHECK(board.run.training.learner.environments.state[0].angle_rad == 1e38f);  // as before
    const auto texts = board.texts();
    REQUIRE(texts.size() == 3);  // pieces of 50 characters
    const std::string whole = texts[0] + texts[1] + texts[2];
    const std::string begins =
        "training stopped: a reward is not finite; state angle_rad 1e38, velocity_rad_s -8; "
        "action torque ";
    REQUIRE(whole.substr(0, begins.size()) == begins);
    const float torque = std::stof(whole.substr(begins.size()));
    CHECK(torque == doctest::Approx(board.run.replay->action[board.run.replay->position - 1]));
    CHECK(progress_in(board).size() == 1);
  }
  CHECK(board.state() == RLT_STATE_FAULT);
  CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_DENIED);
  CHECK(board.command(MAV_CMD_RLT_PAUSE) == MAV_RESULT_DENIED);
  CHECK(board.command(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_RLT_RESULT) == MAV_RESULT_DENIED);
  // A new run is the way out.
  board.set("steps", 60);
  CHECK(board.command(MAV_CMD_RLT_START) == MAV_RESULT_ACCEPTED);
  board.train_to_rest();
  CHECK(hash_of(result_in(board).state_sha256) == expected_sha256(60));
}

TEST_CASE("reported losses are means since the last report") {
  Board board;
  board.set_short_run(30);
  CHECK(board.command(MAV_CMD_RLT_START) == MAV_RESULT_ACCEPTED);
  board.train_to_rest();
  const auto progress = progress_in(board);
  REQUIRE(progress.size() == 3);
  training_run::Run<TinyTd3> run(7);
  run.training.hyperparameters.learning_starts = 10;
  initialize(Generic{}, run.training);
  for (std::size_t report = 0; report < 3; report++) {
    double critic_1 = 0, critic_2 = 0, actor = 0;
    int updates = 0, actor_updates = 0;
    for (int i = 0; i < 10; i++) {
      const auto step = run.step(Generic{});
      if (is_known(step.metrics.critic_1_loss))
        critic_1 += step.metrics.critic_1_loss, critic_2 += step.metrics.critic_2_loss, updates++;
      if (is_known(step.metrics.actor_loss)) actor += step.metrics.actor_loss, actor_updates++;
    }
    if (updates == 0) continue;
    CHECK(progress[report].metrics[kCritic1] == doctest::Approx(critic_1 / updates).epsilon(1e-5));
    CHECK(progress[report].metrics[kCritic2] == doctest::Approx(critic_2 / updates).epsilon(1e-5));
    CHECK(progress[report].metrics[kActor] == doctest::Approx(actor / actor_updates).epsilon(1e-5));
  }
}

TEST_CASE_FIXTURE(ShortRun, "the counter counts training only, from the start of the run") {
  CHECK(board.command(MAV_CMD_RLT_START) == MAV_RESULT_ACCEPTED);
  board.turns(10);
  CHECK(board.command(MAV_CMD_RLT_PAUSE) == MAV_RESULT_ACCEPTED);
  const std::uint64_t first = result_in(board).counter;
  counter_us += 1'000'000'000;
  CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_ACCEPTED);
  board.turns(1);
  CHECK(board.command(MAV_CMD_RLT_PAUSE) == MAV_RESULT_ACCEPTED);
  const std::uint64_t second = result_in(board).counter;
  CHECK(second > first);
  CHECK(second - first < 1000);
  CHECK(board.command(MAV_CMD_RLT_START) == MAV_RESULT_ACCEPTED);
  CHECK(board.command(MAV_CMD_RLT_PAUSE) == MAV_RESULT_ACCEPTED);
  CHECK(result_in(board).counter < first);
}

// -- when it starts, and when it does not ---------------------------------------------------------

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

// -- hyperparameters ------------------------------------------------------------------------------

TEST_CASE("hyperparameters: listed, read by name and by index") {
  Board board;
  mavlink_param_request_list_t everything{};
  everything.target_system = kSelf.system;
  board.exchange(mavlink_msg_param_request_list_encode, everything);
  const auto values = board.all(MAVLINK_MSG_ID_PARAM_VALUE, mavlink_msg_param_value_decode);
  REQUIRE(values.size() == static_cast<std::size_t>(Td3Hyperparameters::kCount));
  for (int i = 0; i < Td3Hyperparameters::kCount; i++) {
    const auto& value = values[static_cast<std::size_t>(i)];
    const ParameterInfo& info = Td3Hyperparameters::info(i);
    CHECK(std::string(value.param_id, strnlen(value.param_id, 16)) ==
          std::string(info.name).substr(0, 16));
    CHECK(value.param_index == i);
    CHECK(value.param_count == Td3Hyperparameters::kCount);
    CHECK(value.param_type ==
          (info.type == DataType::u32 ? MAV_PARAM_TYPE_UINT32 : MAV_PARAM_TYPE_REAL32));
    std::uint32_t bits;
    std::memcpy(&bits, &value.param_value, 4);
    CHECK(bits == board.run.training.hyperparameters.get_bits(i));
  }

  mavlink_param_request_read_t by_name{};
  by_name.param_index = -1;
  by_name.target_system = kSelf.system;
  std::memcpy(by_name.param_id, "gamma", 5);
  board.exchange(mavlink_msg_param_request_read_encode, by_name);
  auto answers = board.all(MAVLINK_MSG_ID_PARAM_VALUE, mavlink_msg_param_value_decode);
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].param_value == 0.99f);

  mavlink_param_request_read_t by_index{};
  by_index.param_index = 1;
  by_index.target_system = kSelf.system;
  board.exchange(mavlink_msg_param_request_read_encode, by_index);
  answers = board.all(MAVLINK_MSG_ID_PARAM_VALUE, mavlink_msg_param_value_decode);
  REQUIRE(answers.size() == 1);
  CHECK(std::string(answers[0].param_id) == "steps");

  by_index.param_index = Td3Hyperparameters::kCount;
  board.exchange(mavlink_msg_param_request_read_encode, by_index);
  CHECK(board.all(MAVLINK_MSG_ID_PARAM_VALUE, mavlink_msg_param_value_decode).empty());
  CHECK(board.texts() == std::vector<std::string>{"there is no such hyperparameter"});
}

TEST_CASE("hyperparameters: every bit of an integer arrives, also those of a signaling NaN") {
  Board board;
  for (const std::uint32_t seed : {0u, 1u, 0x7fa00001u, 0xffa00001u, 0x80000000u, 0xffffffffu}) {
    board.set("seed", seed);
    CHECK(board.run.training.hyperparameters.seed == seed);
  }
}

TEST_CASE("hyperparameters: what is not allowed is refused with the old value and the reason") {
  Board board;
  const auto refused = [&](const char* name, std::uint32_t bits, std::uint8_t type,
                           const char* reason) {
    const auto before = board.run.training.hyperparameters;
    const auto answer = board.set_bits(name, bits, type);
    CHECK(board.texts() == std::vector<std::string>{reason});
    for (int i = 0; i < Td3Hyperparameters::kCount; i++) {
      CHECK(board.run.training.hyperparameters.get_bits(i) == before.get_bits(i));
      if (std::string(name) != Td3Hyperparameters::info(i).name) continue;
      std::uint32_t answered;
      std::memcpy(&answered, &answer.param_value, 4);
      CHECK(answered == before.get_bits(i));
    }
  };
  const char* bounds = "hyperparameter refused: out of bounds";
  refused("steps", 0, MAV_PARAM_TYPE_UINT32, bounds);
  refused("gamma", 0x3f800001u, MAV_PARAM_TYPE_REAL32, bounds);          // 1 + epsilon
  refused("gamma", 0x7fc00000u, MAV_PARAM_TYPE_REAL32, bounds);          // NaN
  refused("learning_rate", 0x7f800000u, MAV_PARAM_TYPE_REAL32, bounds);  // infinity
  refused("gamma", 0, MAV_PARAM_TYPE_UINT32, "hyperparameter refused: it is of another type");
  board.set_short_run(1000);
  CHECK(board.command(MAV_CMD_RLT_START) == MAV_RESULT_ACCEPTED);
  refused("steps", 5, MAV_PARAM_TYPE_UINT32, "hyperparameter refused: pause training first");
  // A repeated request for the value that holds is no error.
  board.set_bits("steps", 1000, MAV_PARAM_TYPE_UINT32);
  CHECK(board.texts().empty());
}
