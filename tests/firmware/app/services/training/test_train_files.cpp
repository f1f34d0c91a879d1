// Test: scripted_board
// The train application's files over MAVLink FTP (docs/protocol.md, "Files" and "Checkpoint"):
// transfers in both directions, refusals by name, requests that come twice.
#include "file_client.h"

#include <limits>
#include <random>

#include "app/services/training/checkpoint.h"
#include "rltools/policy/runtime.h"
#include "training_result.h"

using namespace scripted;

namespace {

using State = RLT_STATE;

CheckpointHeader header_of(const Bytes& checkpoint) {
  CheckpointHeader header;
  std::memcpy(&header, checkpoint.data(), sizeof(header));
  return header;
}

// Of what follows the header.
void set_sha256(CheckpointHeader& header, const Bytes& checkpoint) {
  const auto digest = sha256_of({checkpoint.begin() + 64, checkpoint.end()});
  std::memcpy(header.sha256, digest.bytes, sizeof(digest.bytes));
}

void set_header(Bytes& checkpoint, CheckpointHeader header) {
  header.crc32 = header_checksum(header);
  std::memcpy(checkpoint.data(), &header, sizeof(header));
}

}  // namespace

TEST_CASE_FIXTURE(Paused, "a paused board's checkpoint is its state, behind a header") {
  const Bytes state = board.run.state();
  REQUIRE(checkpoint.size() == 64 + state.size());
  CHECK(Bytes(checkpoint.begin() + 64, checkpoint.end()) == state);
  const CheckpointHeader header = header_of(checkpoint);
  CHECK(std::memcmp(header.magic, "RLTC", 4) == 0);
  CHECK(header.version == 1);
  CHECK(header.header_bytes == 64);
  CHECK(header.fingerprint == fingerprint(board.run.training));
  CHECK(header.payload_bytes == state.size());
  CHECK(header.step == 31);
  CHECK(header.reserved == 0);
  CHECK(header.end == 0);
  CHECK(header.crc32 == crc32(checkpoint.data(), 56));
  CHECK(std::memcmp(header.sha256, sha256_of(state).bytes, 32) == 0);
}

TEST_CASE("the best policy is that of the first evaluation that none excels, as of a rest there") {
  for (const std::uint32_t seed : {7u, 8u, 9u, 10u}) {
    CAPTURE(seed);
    Board board;
    board.set_short_run(120);
    board.set("eval_freq", 10);
    board.set("seed", seed);
    CHECK(board.command(MAV_CMD_RLT_START, 1.0f) == MAV_RESULT_ACCEPTED);
    board.train_to_rest(4000);
    const auto evaluations = evaluations_in(board);
    REQUIRE(evaluations.size() == 12);
    mavlink_rlt_evaluation_t best = evaluations[0];
    for (const auto& evaluation : evaluations) {
      if (evaluation.return_mean > best.return_mean) best = evaluation;
    }
    const Bytes image = Client(board).download("/best.rltp");
    REQUIRE(image.size() == kPolicyImageBytes<TinyTd3>);

    Board other;  // pauses after that evaluation, in which its policy is the last one
    other.set_short_run(120);
    other.set("eval_freq", 10);
    other.set("seed", seed);
    CHECK(other.command(MAV_CMD_RLT_START, 1.0f) == MAV_RESULT_ACCEPTED);
    other.train_until(best.step);
    other.received.clear();
    for (int i = 0; i < 1000 && evaluations_in(other).empty(); i++) other.turns(1);
    CHECK(other.command(MAV_CMD_RLT_PAUSE) == MAV_RESULT_ACCEPTED);
    REQUIRE(steps_done(other.run.training) == best.step);
    Client client(other);
    CHECK(client.download("/policy.rltp") == image);
    CHECK(client.download("/best.rltp") == image);
  }
}

TEST_CASE("there is no best policy before an evaluation, nor after a start or an upload") {
  Board board;
  train_and_pause(board, 31);
  Client client(board);
  CHECK(!client.download("/best.rltp").empty());
  const Bytes checkpoint = checkpoint_of(board);
  CHECK(client.upload(checkpoint, 239).operation == FileOperation::ack);
  check_error(client.request(FileOperation::open_file_ro, "/best.rltp"), FileError::file_not_found);
  check_error(client.request(FileOperation::calc_file_crc32, "/best.rltp"),
              FileError::file_not_found);
  check_error(client.request(FileOperation::create_file, "/best.rltp"), FileError::file_protected);
  CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_ACCEPTED);
  board.train_until(45);
  CHECK(client.request(FileOperation::open_file_ro, "/best.rltp").data[0] == 2);  // FailErrno
  board.train_to_rest();
  CHECK(!client.download("/best.rltp").empty());
  board.set("eval_freq", 1000);
  CHECK(board.command(MAV_CMD_RLT_START, 2.0f) == MAV_RESULT_ACCEPTED);
  board.train_until(31);
  CHECK(board.command(MAV_CMD_RLT_PAUSE) == MAV_RESULT_ACCEPTED);
  board.train_to_rest();
  check_error(client.request(FileOperation::open_file_ro, "/best.rltp"), FileError::file_not_found);
}

TEST_CASE("a checkpoint goes to another board, which goes on to the same bits") {
  Bytes checkpoint;
  std::string expected;
  {
    Board board;
    train_and_pause(board, 31);
    checkpoint = checkpoint_of(board);
    CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_ACCEPTED);
    board.train_to_rest();
    expected = board.run.state_sha256();
  }
  for (const std::uint32_t part : {1u, 7u, 64u, 65u, 239u}) {
    Board board;
    board.set_short_run(60);
    CHECK(Client(board).upload(checkpoint, part).operation == FileOperation::ack);
    CHECK(board.state() == RLT_STATE_PAUSED);
    CHECK(board.command(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_RLT_RESULT) == MAV_RESULT_ACCEPTED);
    const auto result = result_in(board);
    CHECK(result.step == 31);
    CHECK(std::memcmp(result.state_sha256, header_of(checkpoint).sha256, 32) == 0);
    CHECK(checkpoint_of(board) == checkpoint);
    CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_ACCEPTED);
    board.train_to_rest();
    CHECK(board.run.state_sha256() == expected);
  }
}

TEST_CASE("a checkpoint from within an evaluation is evaluated first, where the host asks for it") {
  for (const bool asks : {true, false}) {
    for (const std::uint32_t step : {31u, 60u}) {
      CAPTURE(step);
      Bytes checkpoint;
      {
        Board board;
        train_and_pause(board, step);
        checkpoint = checkpoint_of(board);
      }
      Board board;
      board.set_short_run(60);
      CHECK(Client(board).upload(checkpoint).operation == FileOperation::ack);
      auto command = Board::command_of(MAV_CMD_RLT_RESUME);
      command.param4 = asks ? 1.0f : 0.0f;
      board.put(mavlink_msg_command_long_encode, command);
      for (int i = 0; i < 1000 && board.application.state() != RLT_STATE_FINISHED; i++) {
        board.turns(1);
      }
      REQUIRE(board.application.state() == RLT_STATE_FINISHED);
      const auto evaluations = evaluations_in(board);
      const bool is_first = !evaluations.empty() && evaluations[0].step == step;
      CHECK(is_first == asks);
    }
  }
}

TEST_CASE_FIXTURE(Paused, "a header that does not fit is refused by name, nothing is overwritten") {
  const std::string before = board.run.state_sha256();
  const struct {
    const char* reason;
    void (*change)(CheckpointHeader&);
    std::size_t bytes = 0;  // of what is sent, where that is not all
    bool is_sealed = true;  // with the header's checksum
  } cases[] = {
      {"checkpoint refused: it does not begin as one", [](auto& h) { h.magic[0] = 'X'; }},
      {"checkpoint refused: its header is damaged", [](auto& h) { h.sha256[6] ^= 1; }, 0, false},
      {"checkpoint refused: unknown format version", [](auto& h) { h.version = 2; }},
      {"checkpoint refused: unknown format version", [](auto& h) { h.header_bytes = 60; }},
      {"checkpoint refused: of another experiment", [](auto& h) { h.fingerprint ^= 1; }},
      {"checkpoint refused: of another size", [](auto& h) { h.payload_bytes--; }},
      {"checkpoint refused: it was not sent whole", [](auto&) {}, 40},
      {"checkpoint refused: it was not sent whole", [](auto&) {}, 64},
  };
  for (const auto& c : cases) {
    CAPTURE(&c - cases);
    Bytes bad = checkpoint;
    CheckpointHeader header = header_of(checkpoint);
    c.change(header);
    if (c.is_sealed) header.crc32 = header_checksum(header);
    std::memcpy(bad.data(), &header, sizeof(header));
    if (c.bytes != 0) bad.resize(c.bytes);
    for (const std::uint32_t part : {10u, 239u}) {
      const FileMessage last = client.upload(bad, part);
      if (bad.size() > 64) check_error(last, FileError::fail);
      CHECK(client.texts == std::vector<std::string>{c.reason});
      CHECK(board.state() == RLT_STATE_PAUSED);
      CHECK(board.run.state_sha256() == before);
    }
  }
  CHECK(checkpoint_of(board) == checkpoint);
}

TEST_CASE_FIXTURE(Paused,
                  "a payload that does not fit is refused by name, and the board has no state") {
  Bytes bad = checkpoint;
  CheckpointHeader header = header_of(bad);
  const char* reason = "checkpoint refused: its SHA-256 does not match";
  SUBCASE("one bit") { bad[bad.size() / 2] ^= 4; }
  SUBCASE("cut short") {
    bad.resize(bad.size() - 1);
    bad[100] ^= 1;
  }
  SUBCASE("the header's step") {
    header.step++;
    set_header(bad, header);
    reason = "checkpoint refused: its step does not match";
  }
  SUBCASE("a weight is not finite") {
    const std::uint32_t nan = 0x7fc00000;
    std::memcpy(&bad[64], &nan, 4);
    set_sha256(header, bad);
    set_header(bad, header);
    reason = "checkpoint refused: a number is not finite";
  }
  SUBCASE("the environment's state is not finite") {
    std::size_t offset = 64;
    bool found = false;
    for_each_state_tensor(board.run.training, [&](const TensorInfo& info, void*) {
      found = found || std::strcmp(info.name, "environment_state") == 0;
      if (!found) offset += info.bytes();
    });
    REQUIRE(found);
    const std::uint32_t infinity = 0x7f800000;
    std::memcpy(&bad[offset], &infinity, 4);
    set_sha256(header, bad);
    set_header(bad, header);
    reason = "checkpoint refused: a number is not finite";
  }
  SUBCASE("a replay buffer that cannot be") {
    SUBCASE("its position lies beyond its slots") {
      const std::uint32_t beyond = 0x00ffffff;
      std::memcpy(&bad[bad.size() - 8], &beyond, 4);
    }
    SUBCASE("it claims more slots than were written") {
      std::uint32_t size;
      std::memcpy(&size, &bad[bad.size() - 4], 4);
      size++;
      std::memcpy(&bad[bad.size() - 4], &size, 4);
    }
    set_sha256(header, bad);
    set_header(bad, header);
    reason = "checkpoint refused: its replay is inconsistent";
  }
  CHECK(client.upload(bad).operation == FileOperation::ack);
  CHECK(client.texts == std::vector<std::string>{reason});
  CHECK(board.state() == RLT_STATE_IDLE);
  CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_DENIED);
  check_error(client.request(FileOperation::open_file_ro, "/checkpoint.rltc"),
              FileError::fail_errno);
}

TEST_CASE_FIXTURE(Paused, "a checkpoint leads out of a fault") {
  CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_ACCEPTED);
  board.run.learner->critic_1.values[3] = std::numeric_limits<float>::quiet_NaN();
  board.train_to_rest();
  REQUIRE(board.application.state() == RLT_STATE_FAULT);
  check_error(client.request(FileOperation::open_file_ro, "/checkpoint.rltc"),
              FileError::fail_errno);
  CHECK(client.upload(checkpoint).operation == FileOperation::ack);
  CHECK(board.state() == RLT_STATE_PAUSED);
  CHECK(checkpoint_of(board) == checkpoint);
}

TEST_CASE_FIXTURE(Paused, "an upload that is broken off leaves no state behind") {
  const FileMessage opened = client.request(FileOperation::create_file, "/checkpoint.rltc");
  CHECK(board.state() == RLT_STATE_PAUSED);  // nothing written yet
  client.request(write_at(opened.session, 0));
  CHECK(board.state() == RLT_STATE_IDLE);
  SUBCASE("by the client") { client.request(FileOperation::reset_sessions); }
  SUBCASE("by a new run") { CHECK(board.command(MAV_CMD_RLT_START) == MAV_RESULT_ACCEPTED); }
  CHECK(board.texts() == std::vector<std::string>{"checkpoint refused: it was not sent whole"});
  if (board.application.state() == RLT_STATE_TRAINING) {
    board.train_to_rest();
    CHECK(board.application.state() == RLT_STATE_FINISHED);
  }
  // The next upload is not disturbed by the first.
  CHECK(client.upload(checkpoint).operation == FileOperation::ack);
  CHECK(board.state() == RLT_STATE_PAUSED);
}

TEST_CASE_FIXTURE(Paused, "a second header is read as the first: all of its bytes are waited for") {
  for (int round = 0; round < 2; round++) {
    const FileMessage opened = client.request(FileOperation::create_file, "/checkpoint.rltc");
    // Bytes behind the header before it is whole are not answered.
    CHECK(client.send(write_at(opened.session, 64, 16)).empty());
    CHECK(client.acks(write_at(opened.session, 0, 63)));
    CHECK(client.send(write_at(opened.session, 64, 16)).empty());
    CHECK(client.acks(write_at(opened.session, 63, 1)));
    CHECK(board.state() == RLT_STATE_PAUSED);
    client.request(FileOperation::reset_sessions);
  }
}

TEST_CASE("writes outside the file, or before the header, are refused") {
  Board board;
  Client client(board);
  const std::uint32_t bytes = 64 + state_bytes(board.run.training);
  const FileMessage opened = client.request(FileOperation::open_file_wo, "/checkpoint.rltc");
  const auto write = [&](std::uint32_t offset, std::size_t count) {
    return client.request(FileOperation::write_file, opened.session, offset, Bytes(count, 1));
  };
  const std::string before = board.run.state_sha256();
  check_error(write(0, 0), FileError::invalid_data_size);
  check_error(write(bytes, 1), FileError::invalid_data_size);
  check_error(write(bytes - 5, 6), FileError::invalid_data_size);
  check_error(write(0xffffffffu, 2), FileError::invalid_data_size);
  CHECK(board.run.state_sha256() == before);
}

TEST_CASE_FIXTURE(Paused, "random requests do no harm") {
  std::mt19937 random(5);
  const std::uint8_t sessions[] = {0, 1, 2, 3, 255};
  const std::uint32_t offsets[] = {0, 1, 63, 64, 65, 1000, 0x7fffffff, 0xffffffff};
  for (int i = 0; i < 20000; i++) {
    FileMessage message = client.make(static_cast<FileOperation>(random() % 18),
                                      sessions[random() % 5], offsets[random() % 8]);
    message.size = static_cast<std::uint8_t>(random());
    for (auto& byte : message.data) byte = static_cast<std::uint8_t>(random());
    if (random() % 2) std::memcpy(message.data, "/checkpoint.rltc", 17);
    if (random() % 2) message.size = 16;
    for (const FileMessage& reply : client.send(message)) {
      CHECK((reply.operation == FileOperation::ack || reply.operation == FileOperation::nak));
      CHECK(reply.size <= 239);
    }
  }
  // Checkpoints of random bytes are never accepted, so the state is that of before.
  client.request(FileOperation::reset_sessions);
  CHECK(board.application.state() == RLT_STATE_PAUSED);
}
