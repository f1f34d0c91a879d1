// The infer application (docs/protocol.md, "Policies"): commands that come once, twice and while
// the board is armed; trials, files, observations in parts, measurements.
#include "infer_board.h"

#include <limits>

using namespace infer_board;

namespace {

using Texts = std::vector<std::string>;
constexpr int kEmpty = RLT_SLOT_USE_EMPTY, kActive = RLT_SLOT_USE_ACTIVE;
constexpr int kStaged = RLT_SLOT_USE_STAGED, kTrial = RLT_SLOT_USE_TRIAL;
constexpr int kPrevious = RLT_SLOT_USE_PREVIOUS;
using Uses = std::vector<int>;

std::vector<float> some_observation() {
  std::vector<float> values;
  for (int i = 0; i < Contract::kObservationDim; i++) {
    values.push_back(static_cast<float>(i % 7) / 7.0f - 0.4f);
  }
  return values;
}

}  // namespace

TEST_CASE_FIXTURE(Fresh, "the contract is a file whose checksum is the fingerprint") {
  const Bytes content = board.download("/contract.bin");
  REQUIRE(content.size() == 102 * sizeof(PolicyImageChannel) + 8);
  CHECK(crc32(content.data(), content.size() - 4) == contract_crc32(policy_contract<Contract>()));
  PolicyImageChannel last;
  std::memcpy(&last, &content[101 * sizeof(last)], sizeof(last));
  CHECK(std::string(last.name) == "right");
  CHECK(std::string(last.unit) == "N");
  CHECK(last.minimum == 0.0f);
  const Bytes tail(content.end() - 8, content.end());
  CHECK(tail == Bytes{0xd0, 0x07, 0, 0, 100, 0, 2, 0});
  CHECK(board.error_of(board.open(FileOperation::create_file, "/contract.bin")) ==
        FileError::file_protected);
}

TEST_CASE_FIXTURE(Fresh, "a policy is staged, tried and confirmed; the slots say so at each step") {
  CHECK(board.uses() == Uses{kEmpty, kEmpty});
  CHECK(board.download("/policy.rltp").empty());
  CHECK(board.download("/candidate.rltp").empty());
  REQUIRE(board.stage(first) == FileError::none);
  CHECK(board.uses() == Uses{kStaged, kEmpty});
  const auto staged = board.slot(0);
  CHECK(staged.slots == 2);
  CHECK(staged.slot_bytes == kSlotBytes);
  CHECK(staged.image_bytes == first.size());
  CHECK(staged.step == 400);
  CHECK(staged.seed == 7);
  CHECK(std::string(staged.experiment) == "pushed");
  CHECK(std::string(staged.environment) == "somewhere");
  CHECK(std::memcmp(staged.state_sha256, kStateSha256, 32) == 0);
  CHECK(staged.sha256[0] * 65536 + staged.sha256[1] * 256 + staged.sha256[2] ==
        static_cast<int>(one));
  CHECK(staged.trial_left_ms == 0);
  CHECK(board.download("/candidate.rltp") == first);
  CHECK(board.download("/policy.rltp").empty());
  REQUIRE(board.accepts(MAV_CMD_RLT_TRY, 10.0f, one));
  CHECK(board.uses() == Uses{kTrial, kEmpty});
  const std::uint32_t left = board.slot(0).trial_left_ms;
  CHECK(left > 9900);
  CHECK(left < 10000);
  REQUIRE(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, one));
  CHECK(board.uses() == Uses{kActive, kEmpty});
  CHECK(board.download("/policy.rltp") == first);
  CHECK(board.slot(1).image_bytes == 0);
  CHECK(board.slot(1).experiment[0] == '\0');
}

TEST_CASE_FIXTURE(Fresh, "the second policy keeps the first as the previous one") {
  board.activate(first);
  board.activate(second);
  CHECK(board.uses() == Uses{kPrevious, kActive});
  CHECK(board.download("/policy.rltp") == second);
  CHECK(board.download("/candidate.rltp") == first);
  REQUIRE(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, two));
  CHECK(board.uses() == Uses{kActive, kEmpty});
  CHECK(board.slot(0).last_drop == static_cast<int>(DropReason::rolled_back));
  CHECK(board.download("/policy.rltp") == first);
}

TEST_CASE_FIXTURE(Fresh, "commands that are repeated are acknowledged, and done once") {
  board.activate(first);
  board.begin_trial(second);
  const std::uint32_t left = board.slot(1).trial_left_ms;
  CHECK(board.accepts(MAV_CMD_RLT_TRY, 10.0f, two, 1));
  CHECK(board.slot(1).trial_left_ms <= left);                  // it does not begin anew
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_TRY, 10.0f, two));     // not a repetition
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_TRY, 10.0f, one, 1));  // of another image
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, one));
  REQUIRE(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, two));
  CHECK(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, two, 1));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, two));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, one, 1));
  REQUIRE(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, two));
  CHECK(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, two, 1));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, two));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, one));  // nothing is before it
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, one, 1));
  CHECK(board.uses() == Uses{kActive, kEmpty});
}

TEST_CASE_FIXTURE(Fresh,
                  "commands of an earlier trial change nothing in a later one, or after it") {
  const auto check_that_the_earlier_trial_is_refused = [&] {
    for (const std::uint8_t confirmation : {0, 1}) {
      CHECK_FALSE(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, two, confirmation, 11.0f));
      CHECK_FALSE(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, two, confirmation, 11.0f));
    }
  };
  board.activate(first);
  board.begin_trial(second, 11.0f);
  REQUIRE(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, two, 0, 11.0f));
  REQUIRE(board.stage(second) == FileError::none);
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, two, 0, 11.0f));
  REQUIRE(board.accepts(MAV_CMD_RLT_TRY, 10.0f, two, 0, 12.0f));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_TRY, 10.0f, two, 1, 11.0f));
  check_that_the_earlier_trial_is_refused();
  CHECK(board.uses() == Uses{kActive, kTrial});
  CHECK(board.accepts(MAV_CMD_RLT_TRY, 10.0f, two, 1, 12.0f));
  REQUIRE(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, two, 0, 12.0f));
  check_that_the_earlier_trial_is_refused();
  CHECK(board.uses() == Uses{kPrevious, kActive});
  CHECK(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, two, 1, 12.0f));
  CHECK(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, two, 0, 12.0f));
  CHECK(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, two, 1, 12.0f));
  CHECK(board.uses() == Uses{kActive, kEmpty});
}

TEST_CASE_FIXTURE(Fresh, "a command that names no trial means any") {
  board.activate(first);
  board.begin_trial(second, 11.0f);
  CHECK(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, two));
  CHECK(board.uses() == Uses{kPrevious, kActive});
  CHECK(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, two));
  CHECK(board.uses() == Uses{kActive, kEmpty});
}

TEST_CASE_FIXTURE(Fresh,
                  "a repeated roll-back does not take away the same image in the other slot") {
  board.activate(first);
  board.activate(first);
  board.activate(first);
  CHECK(board.uses() == Uses{kActive, kPrevious});
  REQUIRE(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, one));
  CHECK(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, one, 1));
  CHECK(board.uses() == Uses{kEmpty, kActive});
}

TEST_CASE_FIXTURE(
    Fresh, "a roll-back of which only the repetition arrives is carried out, after another trial") {
  board.activate(first);
  board.activate(second);
  REQUIRE(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, two));
  board.activate(second);
  CHECK(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, two, 1));
  CHECK(board.download("/policy.rltp") == first);
}

TEST_CASE_FIXTURE(Fresh, "a trial takes the image that is meant, and a time that there is") {
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_TRY, 10.0f, 0.0f));  // there is none
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, 0.0f));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, 0.0f));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, 0.0f, 1));
  REQUIRE(board.stage(first) == FileError::none);
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_TRY, 10.0f, one + 1.0f));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_TRY, 0.0f, one));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_TRY, -1.0f, one));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_TRY, 2148.0f, one));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_TRY, __builtin_nanf(""), one));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, one));
  CHECK(board.uses() == Uses{kStaged, kEmpty});
  CHECK(board.accepts(MAV_CMD_RLT_TRY, 2147.0f, one));
  CHECK(board.slot(0).trial_left_ms > 2146000);
}

TEST_CASE_FIXTURE(Fresh, "a command that is refused breaks no upload off") {
  const auto refuse_all = [&](float number) {
    CHECK_FALSE(board.accepts(MAV_CMD_RLT_TRY, 10.0f, number));
    CHECK_FALSE(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, number));
    CHECK_FALSE(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, number));
    CHECK_FALSE(board.accepts(MAV_CMD_RLT_MEASURE, 3.0f, 20.0f));
  };
  REQUIRE(board.write_candidate(first) == FileError::none);
  refuse_all(0.0f);  // the number of no image, and there is none
  REQUIRE(board.error_of(board.request(FileOperation::terminate_session)) == FileError::none);
  CHECK(board.uses() == Uses{kStaged, kEmpty});
  refuse_all(0.0f);
  REQUIRE(board.accepts(MAV_CMD_RLT_TRY, 10.0f, one));
  REQUIRE(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, one));
  REQUIRE(board.write_candidate(second) == FileError::none);
  refuse_all(0.0f);
  refuse_all(one);  // it acts, and there is none before it
  REQUIRE(board.error_of(board.request(FileOperation::terminate_session)) == FileError::none);
  CHECK(board.uses() == Uses{kActive, kStaged});
}

TEST_CASE_FIXTURE(Fresh,
                  "a trial that is refused is none: commands of the last one are known still") {
  board.activate(first);
  board.begin_trial(second, 11.0f);
  REQUIRE(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, two, 0, 11.0f));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_TRY, 10.0f, one, 0, 12.0f));  // it is the previous one
  CHECK(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, two, 1, 11.0f));
  REQUIRE(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, two, 0, 11.0f));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_TRY, 10.0f, 0.0f, 0, 12.0f));  // there is none
  CHECK(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, two, 1, 11.0f));
  REQUIRE(board.stage(second) == FileError::none);
  storage.fails = true;
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_TRY, 10.0f, two, 0, 12.0f));
  CHECK(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, two, 1, 11.0f));
  storage.fails = false;
  CHECK(board.accepts(MAV_CMD_RLT_TRY, 10.0f, two, 0, 12.0f));
}

TEST_CASE_FIXTURE(Fresh,
                  "a storage that fails: the host is told, and the policy that acts goes on") {
  board.activate(first);
  board.activate(second);
  storage.fails = true;
  const auto check_said = [&] {
    CHECK(board.slot(0).refused_error == static_cast<int>(SlotError::storage_failed));
  };
  // The record that the slot has no candidate any more.
  CHECK(board.stage(image_of(3)) == FileError::fail);
  check_said();
  CHECK(board.uses() == Uses{kPrevious, kActive});
  storage.fails = false;
  REQUIRE(board.error_of(board.open(FileOperation::create_file, "/candidate.rltp")) ==
          FileError::none);
  storage.fails = true;  // the image's bytes
  const Bytes part(first.begin(), first.begin() + 239);
  CHECK(board.error_of(board.request(FileOperation::write_file, 0, part)) == FileError::fail);
  check_said();
  storage.fails = false;
  REQUIRE(board.write_candidate(first) == FileError::none);
  storage.fails = true;  // the record that it is staged
  CHECK(board.error_of(board.request(FileOperation::terminate_session)) == FileError::none);
  CHECK(board.texts() == Texts{"policy refused"});
  check_said();
  CHECK(board.uses() == Uses{kEmpty, kActive});
  CHECK(board.download("/policy.rltp") == second);
  storage.fails = false;
  CHECK(board.stage(first) == FileError::none);
  CHECK(board.slot(0).refused_error == 0);
}

TEST_CASE_FIXTURE(Fresh,
                  "a trial that is not confirmed in time is dropped, and the board says so once") {
  board.activate(first);
  REQUIRE(board.stage(second) == FileError::none);
  REQUIRE(board.accepts(MAV_CMD_RLT_TRY, 0.5f, two));
  const Texts dropped{"policy dropped: it was not confirmed in time"};
  counter_us += 500'000;
  board.received.clear();
  SUBCASE("in a turn") {
    board.turns(2);
    CHECK(board.texts() == dropped);
    CHECK_FALSE(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, two));
    CHECK(board.texts().empty());
  }
  SUBCASE("when the confirmation comes") {
    CHECK_FALSE(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, two));
    CHECK(board.texts() == dropped);
  }
  CHECK(board.uses() == Uses{kActive, kEmpty});
  CHECK(board.slot(1).last_drop == static_cast<int>(DropReason::deadline));
  CHECK(board.download("/policy.rltp") == first);
}

TEST_CASE_FIXTURE(Fresh, "armed: nothing that changes policies, until it is disarmed") {
  board.activate(first);
  board.activate(second);
  REQUIRE(board.accepts(MAV_CMD_COMPONENT_ARM_DISARM, 1.0f));
  CHECK(board.executor().armed == 1);
  counter_us += 1'000'000;
  board.received.clear();
  board.turns(1);
  const auto heartbeats = board.all(MAVLINK_MSG_ID_HEARTBEAT, mavlink_msg_heartbeat_decode);
  REQUIRE(heartbeats.size() == 1);
  CHECK((heartbeats[0].base_mode & MAV_MODE_FLAG_SAFETY_ARMED) != 0);
  const FileMessage opened = board.open(FileOperation::create_file, "/candidate.rltp");
  CHECK(board.error_of(opened) == FileError::fail_errno);
  CHECK(opened.data[1] == 16);
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, two));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_MEASURE, RLT_MEASURED_FORWARD, 10.0f));
  CHECK(board.download("/policy.rltp") == second);  // reading changes nothing
  CHECK(board.uses() == Uses{kPrevious, kActive});
  REQUIRE(board.accepts(MAV_CMD_COMPONENT_ARM_DISARM, 0.0f));
  CHECK(board.executor().armed == 0);
  CHECK(board.stage(first) == FileError::none);
  REQUIRE(board.accepts(MAV_CMD_COMPONENT_ARM_DISARM, 1.0f));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_TRY, 10.0f, one));
  CHECK(board.uses() == Uses{kStaged, kActive});
}

TEST_CASE_FIXTURE(Fresh, "arming breaks an upload off, and the image is not checked") {
  REQUIRE(board.write_candidate(first) == FileError::none);
  REQUIRE(board.accepts(MAV_CMD_COMPONENT_ARM_DISARM, 1.0f));
  CHECK(board.error_of(board.request(FileOperation::terminate_session)) ==
        FileError::invalid_session);
  CHECK(board.uses() == Uses{kEmpty, kEmpty});
}

TEST_CASE_FIXTURE(Fresh, "a trial that is armed can be confirmed") {
  board.begin_trial(first);
  REQUIRE(board.accepts(MAV_CMD_COMPONENT_ARM_DISARM, 1.0f));
  CHECK(board.accepts(MAV_CMD_RLT_CONFIRM, 0.0f, one));
  CHECK(board.uses() == Uses{kActive, kEmpty});
}

TEST_CASE_FIXTURE(Fresh,
                  "files: what is not the candidate is protected, and in a trial that is as well") {
  CHECK(board.error_of(board.open(FileOperation::create_file, "/policy.rltp")) ==
        FileError::file_protected);
  CHECK(board.error_of(board.open(FileOperation::create_file, "/samples.u32")) ==
        FileError::file_protected);
  CHECK(board.error_of(board.open(FileOperation::open_file_ro, "/samples.u32")) ==
        FileError::file_not_found);
  board.begin_trial(first);
  CHECK(board.error_of(board.open(FileOperation::create_file, "/candidate.rltp")) ==
        FileError::fail_errno);
  CHECK(board.download("/candidate.rltp") == first);
}

TEST_CASE_FIXTURE(Fresh, "files: a damaged, cut or broken-off image is not staged") {
  Bytes image = first;
  PolicyReason reason = PolicyReason::accepted;
  SUBCASE("a byte differs") {
    image[200] ^= 1;
    reason = PolicyReason::wrong_crc;
  }
  SUBCASE("its end is missing") {
    image.resize(image.size() - 100);
    reason = PolicyReason::wrong_size;
  }
  SUBCASE("it is no image") {
    image.assign(300, 1);
    reason = PolicyReason::bad_magic;
  }
  REQUIRE(board.stage(image) == FileError::none);  // it is acknowledged either way
  CHECK(board.texts() == Texts{"policy refused"});
  CHECK(board.slot(0).refused_reason == static_cast<int>(reason));
  CHECK(board.slot(0).refused_error == 0);
  CHECK(board.uses() == Uses{kEmpty, kEmpty});
  // A good one takes its place, and the refusal back.
  REQUIRE(board.stage(first) == FileError::none);
  CHECK(board.slot(0).refused_reason == 0);
  CHECK(board.uses() == Uses{kStaged, kEmpty});
}

TEST_CASE_FIXTURE(
    Fresh, "files: an upload that is broken off leaves the active policy, and no candidate") {
  board.activate(first);
  REQUIRE(board.write_candidate(second) == FileError::none);
  CHECK(board.error_of(board.request(FileOperation::reset_sessions)) == FileError::none);
  CHECK(board.uses() == Uses{kActive, kEmpty});
  CHECK(board.texts().empty());
  CHECK(board.download("/policy.rltp") == first);
}

TEST_CASE_FIXTURE(Fresh, "files: parts out of order are not answered, parts that come twice are") {
  REQUIRE(board.open(FileOperation::create_file, "/candidate.rltp").operation ==
          FileOperation::ack);
  const Bytes part(first.begin(), first.begin() + 239);
  const Bytes next(first.begin() + 239, first.begin() + 478);
  CHECK(board.request(FileOperation::write_file, 239, next).operation == FileOperation::none);
  CHECK(board.request(FileOperation::write_file, 0, part).operation == FileOperation::ack);
  CHECK(board.request(FileOperation::write_file, 0, part).operation == FileOperation::ack);
  CHECK(board.request(FileOperation::write_file, 239, next).operation == FileOperation::ack);
}

TEST_CASE_FIXTURE(Fresh, "observations: the network's bits, by parts, with each layer's checksum") {
  const std::vector<float> observation = some_observation();
  const auto none = board.observe(observation);
  CHECK(none.status == static_cast<int>(ExecutorStatus::no_policy));
  CHECK(none.action[0] == 0.5f);  // the safe one
  CHECK(none.action[1] == 0.25f);
  board.activate(first);
  static Net network;
  static MlpBuffer<Net, 1> buffer;
  initialize_kaiming(Generic{}, network, 1, 0);
  Matrix<float, 1, Contract::kObservationDim> input;
  Matrix<float, 1, Contract::kActionDim> output;
  for (int i = 0; i < Contract::kObservationDim; i++) {
    input.values[i] = observation[static_cast<std::size_t>(i)];
  }
  forward(Generic{}, network, input, output, buffer);
  const auto action = board.observe(observation);
  CHECK(action.status == static_cast<int>(ExecutorStatus::acted));
  CHECK(action.action[0] == physical_action(output.values[0], -1.0f, 1.0f));
  CHECK(action.action[1] == physical_action(output.values[1], 0.0f, 1.0f));
  REQUIRE(action.layer_count == 3);
  CHECK(action.layers[0] == crc32(buffer.hidden, 5 * sizeof(float)));
  CHECK(action.layers[1] == crc32(buffer.hidden + 5, 4 * sizeof(float)));
  CHECK(action.layers[2] == crc32(output.values, 2 * sizeof(float)));
  CHECK(board.executor().ticks == 0);  // nothing has acted
}

TEST_CASE_FIXTURE(Fresh, "observations: a missing part makes the whole count for nothing") {
  board.activate(first);
  const std::vector<float> observation = some_observation();
  const auto whole = board.observe(observation);
  const int mode = RLT_OBSERVE_FORWARD;
  board.observe_part(observation, 0, 50, mode, 0);
  CHECK(board.actions().empty());
  board.observe_part(observation, 96, 50, mode, 0);  // the middle is missing
  CHECK(board.actions().empty());
  const std::vector<float> other(Contract::kObservationDim, 0.9f);
  board.observe_part(other, 48, 51, mode, 0);
  CHECK(board.actions().empty());
  board.observe_part(observation, 48, 50, mode, 0);
  CHECK(board.actions().empty());
  board.observe_part(observation, 96, 50, mode, 0);
  REQUIRE(board.actions().size() == 1);
  CHECK(board.actions()[0].action[0] == whole.action[0]);
  for (const int first : {0, 48, 96}) {  // another dimension
    board.observe_part(std::vector<float>(99, 0.0f), first, 60, mode, 0);
    CHECK(board.actions().empty());
  }
  board.observe_part(observation, 60000, 50, mode, 0);
  CHECK(board.actions().empty());
}

TEST_CASE_FIXTURE(Fresh, "observations: steps go through the executor, and are counted") {
  board.activate(first);
  std::vector<float> observation = some_observation();
  const auto forward = board.observe(observation);
  const auto first = board.observe(observation, RLT_OBSERVE_BEGIN, 1000);
  CHECK(first.status == static_cast<int>(ExecutorStatus::acted));
  CHECK(first.action[0] == forward.action[0]);
  CHECK(first.layer_count == 0);
  CHECK(board.observe(observation, RLT_OBSERVE_STEP, 1100).status ==
        static_cast<int>(ExecutorStatus::held));
  CHECK(board.observe(observation, RLT_OBSERVE_STEP, 3000).status ==
        static_cast<int>(ExecutorStatus::acted));
  observation[99] = 5.0f;
  const auto refused = board.observe(observation, RLT_OBSERVE_STEP, 5000);
  CHECK(refused.status == static_cast<int>(ExecutorStatus::observation_out_of_range));
  CHECK(refused.action[0] == 0.5f);
  const auto counts = board.executor();
  CHECK(counts.ticks == 3);
  CHECK(counts.early == 1);
  CHECK(counts.statuses[static_cast<int>(ExecutorStatus::acted)] == 2);
  CHECK(counts.statuses[static_cast<int>(ExecutorStatus::held)] == 1);
  CHECK(counts.statuses[static_cast<int>(ExecutorStatus::observation_out_of_range)] == 1);
}

TEST_CASE_FIXTURE(
    Fresh, "a policy in trial whose output is not finite is dropped, and the board says so") {
  const Bytes bad = overflowing_image();
  board.activate(first);
  std::vector<float> observation = some_observation();
  const auto before = board.observe(observation);
  board.begin_trial(bad);
  std::vector<float> ones(Contract::kObservationDim, 1.0f);
  // The forward pass alone does not act, and drops nothing.
  CHECK(board.observe(ones).status == static_cast<int>(ExecutorStatus::output_not_finite));
  CHECK(board.uses() == Uses{kActive, kTrial});
  const auto action = board.observe(ones, RLT_OBSERVE_BEGIN, 0);
  CHECK(action.status == static_cast<int>(ExecutorStatus::output_not_finite));
  CHECK(action.action[0] == 0.5f);
  CHECK(board.texts() == Texts{"policy dropped: its output is not finite"});
  CHECK(board.uses() == Uses{kActive, kEmpty});
  CHECK(board.slot(0).last_drop == static_cast<int>(DropReason::fault));
  CHECK(board.observe(observation).action[0] == before.action[0]);
}

TEST_CASE_FIXTURE(Fresh, "a measurement gives the samples that were asked for, as a file") {
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_MEASURE, RLT_MEASURED_FORWARD, 20.0f));  // no policy
  board.activate(first);
  CHECK_FALSE(board.accepts(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_RLT_MEASUREMENT));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_MEASURE, 3.0f, 20.0f));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_MEASURE, -1.0f, 20.0f));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_MEASURE, RLT_MEASURED_TICK, 0.0f));
  CHECK_FALSE(board.accepts(MAV_CMD_RLT_MEASURE, RLT_MEASURED_TICK, 1025.0f));
  CHECK(board.accepts(MAV_CMD_RLT_MEASURE, RLT_MEASURED_TICK, 1024.0f));  // the most
  board.turns(3);  // and another one before it has ended
  for (const int what : {RLT_MEASURED_NOTHING, RLT_MEASURED_FORWARD, RLT_MEASURED_TICK}) {
    REQUIRE(board.accepts(MAV_CMD_RLT_MEASURE, static_cast<float>(what), 20.0f));
    CHECK(board.error_of(board.open(FileOperation::open_file_ro, "/samples.u32")) ==
          FileError::file_not_found);  // not before it has ended
    board.turns(4);
    const auto ended =
        board.all(MAVLINK_MSG_ID_RLT_MEASUREMENT, mavlink_msg_rlt_measurement_decode);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].samples == 20);
    CHECK(ended[0].measured == what);
    const Bytes samples = board.download("/samples.u32");
    REQUIRE(samples.size() == 80);
    for (std::size_t i = 0; i < 20; i++) {
      std::uint32_t sample;
      std::memcpy(&sample, &samples[4 * i], sizeof(sample));
      CHECK(sample == 10);  // this board's counter counts its own calls
    }
  }
  CHECK(board.accepts(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_RLT_MEASUREMENT));
  CHECK(board.executor().ticks == 0);  // the executor that acts has seen nothing
}

TEST_CASE_FIXTURE(Fresh, "another program's requests are answered to it, and change nothing") {
  REQUIRE(board.write_candidate(first) == FileError::none);
  board.host = kOther;
  mavlink_param_request_list_t list{};
  board.send(mavlink_msg_param_request_list_encode, list);
  CHECK(board.all(MAVLINK_MSG_ID_PARAM_VALUE, mavlink_msg_param_value_decode).empty());
  CHECK(board.error_of(board.request(FileOperation::terminate_session)) ==
        FileError::invalid_session);
  CHECK(board.error_of(board.open(FileOperation::create_file, "/candidate.rltp")) ==
        FileError::no_sessions_available);
  board.host = kHost;
  CHECK(board.error_of(board.request(FileOperation::terminate_session)) == FileError::none);
  CHECK(board.uses() == Uses{kStaged, kEmpty});
}

// -- a policy that sees its own last actions ------------------------------------------------------
// The host gives a network alone all that it takes, and the executor the contract's observation.

namespace {

constexpr int kAsked = 3, kInput = Contract::kObservationDim + kAsked;
using Remembering =
    Mlp<float, Dimensions<kInput, 5, Contract::kActionDim>, Activation::relu, Activation::tanh>;

const Remembering& network() {
  static Remembering network;
  initialize_kaiming(Generic{}, network, 4, 0);
  return network;
}

Bytes image_with_past_actions() {
  static Channel channels[kInput];
  for (int i = 0; i < Contract::kObservationDim; i++) channels[i] = Contract::kObservations[i];
  const char* const names[kAsked] = {"left_t-1", "right_t-1", "left_t-3"};
  for (int i = 0; i < kAsked; i++) {
    channels[Contract::kObservationDim + i] = {names[i], "1", -1.0f, 1.0f};
  }
  PolicyContract contract = policy_contract<Contract>();
  contract.observation_dim = kInput;
  contract.observations = channels;
  Bytes image(policy_image_bytes<Remembering>());
  write_policy_image(Generic{}, network(), contract, {nullptr, nullptr}, kOrigin, image.data());
  return image;
}

struct Outputs {
  float values[Contract::kActionDim];
};

// What the network gives for these observations and past actions.
Outputs output_of(const std::vector<float>& observation, const std::vector<float>& past) {
  Matrix<float, 1, kInput> input;
  Matrix<float, 1, Contract::kActionDim> output;
  MlpBuffer<Remembering, 1> buffer;
  int i = 0;
  for (const float value : observation) input.values[i++] = value;
  for (const float value : past) input.values[i++] = value;
  forward(Generic{}, network(), input, output, buffer);
  return {{output.values[0], output.values[1]}};
}

void check(const mavlink_rlt_action_t& action, const Outputs& expected) {
  CHECK(action.status == static_cast<int>(ExecutorStatus::acted));
  CHECK(action.action[0] == physical_action(expected.values[0], -1.0f, 1.0f));
  CHECK(action.action[1] == physical_action(expected.values[1], 0.0f, 1.0f));
}

std::vector<float> observation_of(float value) {
  std::vector<float> values(Contract::kObservationDim, value);
  values[7] = -0.5f;
  return values;
}

}  // namespace

TEST_CASE_FIXTURE(Fresh, "a network alone is given all that it takes") {
  board.activate(image_with_past_actions());
  std::vector<float> values = observation_of(0.25f);
  const std::vector<float> past = {0.5f, -1.0f, 0.125f};
  const Outputs expected = output_of(values, past);
  values.insert(values.end(), past.begin(), past.end());
  check(board.observe(values), expected);
  values.back() = std::numeric_limits<float>::infinity();
  CHECK(board.observe(values).status == static_cast<int>(ExecutorStatus::observation_not_finite));
  // An observation of the contract is too short for it.
  for (const int first : {0, 48, 96}) {
    board.observe_part(observation_of(0.25f), first, 90, RLT_OBSERVE_FORWARD, 0);
    CHECK(board.actions().empty());
  }
}

TEST_CASE_FIXTURE(Fresh, "the executor gives it its last actions") {
  board.activate(image_with_past_actions());
  for (int turn = 0; turn < 2; turn++) {  // BEGIN forgets
    const Outputs first = output_of(observation_of(0.25f), {0.0f, 0.0f, 0.0f});
    check(board.observe(observation_of(0.25f), RLT_OBSERVE_BEGIN, 1000), first);
    const Outputs second =
        output_of(observation_of(0.5f), {first.values[0], first.values[1], 0.0f});
    check(board.observe(observation_of(0.5f), RLT_OBSERVE_STEP, 3000), second);
    // A safe action: 0.5 of [-1, 1], and 0.25 of [0, 1].
    CHECK(board.observe(observation_of(2.0f), RLT_OBSERVE_STEP, 5000).status ==
          static_cast<int>(ExecutorStatus::observation_out_of_range));
    const Outputs fourth = output_of(observation_of(0.5f), {0.5f, -0.5f, first.values[0]});
    check(board.observe(observation_of(0.5f), RLT_OBSERVE_STEP, 7000), fourth);
    // Between them a network alone changes nothing.
    std::vector<float> whole(kInput, 0.125f);
    board.observe(whole);
    const Outputs fifth =
        output_of(observation_of(0.25f), {fourth.values[0], fourth.values[1], second.values[0]});
    check(board.observe(observation_of(0.25f), RLT_OBSERVE_STEP, 9000), fifth);
  }
  for (const int first : {0, 48, 96}) {  // its own last actions are no observation
    board.observe_part(std::vector<float>(kInput, 0.0f), first, 91, RLT_OBSERVE_STEP, 11000);
    CHECK(board.actions().empty());
  }
}

TEST_CASE_FIXTURE(Fresh, "a policy that is dropped while it is measured ends the measurement") {
  const Bytes image = image_with_past_actions();
  board.begin_trial(image);
  REQUIRE(board.accepts(MAV_CMD_RLT_MEASURE, RLT_MEASURED_TICK, 1000.0f));
  board.turns(1);
  REQUIRE(board.accepts(MAV_CMD_RLT_ROLL_BACK, 0.0f, number_of(image)));
  board.turns(1);
  CHECK(board.accepts(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_RLT_MEASUREMENT));
  const Bytes samples = board.download("/samples.u32");
  CHECK(samples.size() > 0);
  CHECK(samples.size() < 1000);
}

TEST_CASE_FIXTURE(Fresh, "it is measured beside what acts") {
  board.activate(image_with_past_actions());
  const Outputs first = output_of(observation_of(0.25f), {0.0f, 0.0f, 0.0f});
  check(board.observe(observation_of(0.25f), RLT_OBSERVE_BEGIN, 1000), first);
  for (const int what : {RLT_MEASURED_FORWARD, RLT_MEASURED_TICK}) {
    REQUIRE(board.accepts(MAV_CMD_RLT_MEASURE, static_cast<float>(what), 20.0f));
    board.turns(10);
    CHECK(board.download("/samples.u32").size() == 80);
  }
  const Outputs second = output_of(observation_of(0.5f), {first.values[0], first.values[1], 0.0f});
  check(board.observe(observation_of(0.5f), RLT_OBSERVE_STEP, 3000), second);
}
