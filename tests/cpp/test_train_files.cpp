// The train application's files over MAVLink FTP (docs/protocol.md, "Files" and "Checkpoint"):
// transfers in both directions, refusals by name, requests that come twice.
#include "scripted_board.h"

#include <algorithm>
#include <random>

#include "app/train/checkpoint.h"
#include "rltools/policy/runtime.h"

using namespace scripted;
using link::FileError;
using link::FileMessage;
using link::FileOperation;

namespace {

using State = RLT_STATE;

// A client that speaks the file transfer protocol from its description.
class Client {
 public:
  explicit Client(Board& board) : board_(board) {}

  FileMessage make(FileOperation operation, std::uint8_t session = 0, std::uint32_t offset = 0,
                   const Bytes& data = {}) {
    FileMessage request{};
    request.sequence = sequence_ += 2;
    request.session = session;
    request.operation = operation;
    request.offset = offset;
    request.size = static_cast<std::uint8_t>(data.size());
    std::copy(data.begin(), data.end(), request.data);
    return request;
  }

  std::vector<FileMessage> send(const FileMessage& request, int turns = 1) {
    mavlink_file_transfer_protocol_t content{};
    content.target_system = 1;
    content.target_component = 1;
    std::memcpy(content.payload, &request, link::kFileMessageBytes);
    board_.exchange(mavlink_msg_file_transfer_protocol_encode, content, turns);
    std::vector<FileMessage> replies;
    for (const auto& reply : board_.all(MAVLINK_MSG_ID_FILE_TRANSFER_PROTOCOL,
                                        mavlink_msg_file_transfer_protocol_decode)) {
      CHECK(reply.target_system == kHostSystem);
      CHECK(reply.target_component == kHostComponent);
      replies.emplace_back();
      std::memcpy(&replies.back(), reply.payload, link::kFileMessageBytes);
    }
    return replies;
  }

  FileMessage request(const FileMessage& message) {
    const auto replies = send(message);
    REQUIRE(replies.size() == 1);
    CHECK(replies[0].sequence == static_cast<std::uint16_t>(message.sequence + 1));
    CHECK(replies[0].request == message.operation);
    CHECK(replies[0].offset == message.offset);
    return replies[0];
  }
  FileMessage request(FileOperation operation, std::uint8_t session = 0, std::uint32_t offset = 0,
                      const Bytes& data = {}) {
    return request(make(operation, session, offset, data));
  }
  FileMessage request(FileOperation operation, const char* path) {
    return request(operation, 0, 0, Bytes(path, path + std::strlen(path)));
  }
  // Asks for `count` bytes; such a request carries no data.
  FileMessage read(FileOperation operation, std::uint8_t session, std::uint32_t offset,
                   std::uint8_t count) {
    FileMessage message = make(operation, session, offset);
    message.size = count;
    return message;
  }

  Bytes download(const char* path) {
    const FileMessage opened = request(FileOperation::open_file_ro, path);
    REQUIRE(opened.operation == FileOperation::ack);
    const std::uint32_t bytes = number(opened);
    Bytes content;
    while (content.size() < bytes) {
      const FileMessage reply = request(read(FileOperation::read_file, opened.session,
                                             static_cast<std::uint32_t>(content.size()), 239));
      REQUIRE(reply.operation == FileOperation::ack);
      REQUIRE(reply.size > 0);
      content.insert(content.end(), reply.data, reply.data + reply.size);
    }
    CHECK(content.size() == bytes);
    CHECK(request(read(FileOperation::read_file, opened.session, bytes, 239)).data[0] ==
          static_cast<int>(FileError::end_of_file));
    CHECK(request(FileOperation::terminate_session, opened.session).operation ==
          FileOperation::ack);
    return content;
  }

  // Until a write is refused; then closes the session. Returns the last reply but one.
  FileMessage upload(const Bytes& content, std::uint32_t part = 239) {
    const FileMessage opened = request(FileOperation::create_file, "/checkpoint.rltc");
    REQUIRE(opened.operation == FileOperation::ack);
    FileMessage reply{};
    for (std::uint32_t offset = 0; offset < content.size(); offset += part) {
      const std::size_t count = std::min<std::size_t>(part, content.size() - offset);
      reply = request(FileOperation::write_file, opened.session, offset,
                      Bytes(&content[offset], &content[offset] + count));
      if (reply.operation == FileOperation::nak) break;
    }
    texts = board_.texts();
    CHECK(request(FileOperation::terminate_session, opened.session).operation ==
          FileOperation::ack);
    for (const std::string& text : board_.texts()) texts.push_back(text);
    return reply;
  }

  std::vector<std::string> texts;  // of the last upload

  static std::uint32_t number(const FileMessage& message) {
    CHECK(message.size == 4);
    std::uint32_t value;
    std::memcpy(&value, message.data, 4);
    return value;
  }

 private:
  Board& board_;
  std::uint16_t sequence_ = 100;
};

void check_error(const FileMessage& reply, FileError error) {
  CHECK(reply.operation == FileOperation::nak);
  CHECK(reply.data[0] == static_cast<int>(error));
  CHECK(reply.size == (error == FileError::fail_errno ? 2 : 1));
  if (error == FileError::fail_errno) CHECK(reply.data[1] == 16);
}

// A board at rest after `turns` turns of a short run.
void train_and_pause(Board& board, int turns) {
  board.set_short_run(60);
  REQUIRE(board.command(MAV_CMD_RLT_START) == MAV_RESULT_ACCEPTED);
  board.turns(turns);
  REQUIRE(board.command(MAV_CMD_RLT_PAUSE) == MAV_RESULT_ACCEPTED);
}

Bytes checkpoint_of(Board& board) { return Client(board).download("/checkpoint.rltc"); }

CheckpointHeader header_of(const Bytes& checkpoint) {
  CheckpointHeader header;
  std::memcpy(&header, checkpoint.data(), sizeof(header));
  return header;
}

void set_header(Bytes& checkpoint, CheckpointHeader header) {
  header.crc32 = header_checksum(header);
  std::memcpy(checkpoint.data(), &header, sizeof(header));
}

}  // namespace

TEST_CASE("a paused board's checkpoint is its state, behind a header") {
  Board board;
  train_and_pause(board, 30);
  const Bytes state = board.run.state();
  const Bytes checkpoint = checkpoint_of(board);
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
  Sha256 hash;
  hash.update(state.data(), state.size());
  std::uint8_t sha256[32];
  hash.finish(sha256);
  CHECK(std::memcmp(header.sha256, sha256, 32) == 0);
}

TEST_CASE("the policy image is one that a runtime accepts") {
  Board board;
  train_and_pause(board, 30);
  Client client(board);
  const Bytes image = client.download("policy.rltp");  // the slash may be left out
  alignas(4) std::uint8_t aligned[kPolicyImageBytes<TinyTd3>];
  REQUIRE(image.size() == sizeof(aligned));
  std::memcpy(aligned, image.data(), image.size());
  CHECK(policy_image_crc32(aligned, sizeof(aligned)) ==
        reinterpret_cast<const PolicyImageHeader*>(aligned)->crc32);
  CHECK(reinterpret_cast<const PolicyImageHeader*>(aligned)->step == 31);
}

TEST_CASE("a burst brings the rest of the file, its last packet marked") {
  Board board;
  train_and_pause(board, 30);
  Client client(board);
  const Bytes expected = checkpoint_of(board);
  const FileMessage opened = client.request(FileOperation::open_file_ro, "/checkpoint.rltc");
  for (const std::uint8_t size : {0, 80, 239}) {
    const std::uint32_t first = 1000;
    const FileMessage request =
        client.read(FileOperation::burst_read_file, opened.session, first, size);
    const auto packets = client.send(request, 100);
    Bytes content;
    std::uint16_t sequence = request.sequence;
    for (const FileMessage& packet : packets) {
      CHECK(packet.operation == FileOperation::ack);
      CHECK(packet.request == FileOperation::burst_read_file);
      CHECK(packet.sequence == ++sequence);
      CHECK(packet.session == opened.session);
      CHECK(packet.offset == first + content.size());
      content.insert(content.end(), packet.data, packet.data + packet.size);
      CHECK(packet.burst_complete == (first + content.size() == expected.size() ? 1 : 0));
    }
    CHECK(content == Bytes(expected.begin() + first, expected.end()));
  }
  const auto at_the_end =
      client.send(client.read(FileOperation::burst_read_file, opened.session,
                              static_cast<std::uint32_t>(expected.size()), 239));
  REQUIRE(at_the_end.size() == 1);
  check_error(at_the_end[0], FileError::end_of_file);
}

TEST_CASE("any other request ends a burst") {
  Board board;
  train_and_pause(board, 30);
  Client client(board);
  const FileMessage opened = client.request(FileOperation::open_file_ro, "/checkpoint.rltc");
  const auto first =
      client.send(client.read(FileOperation::burst_read_file, opened.session, 0, 80));
  CHECK(first.size() >= 1);
  CHECK(first.back().burst_complete == 0);
  CHECK(client.request(FileOperation::terminate_session, opened.session).operation ==
        FileOperation::ack);
  board.received.clear();
  board.turns(10);
  CHECK(board.received.empty());
}

TEST_CASE("the checksum is that of the whole file") {
  Board board;
  train_and_pause(board, 30);
  Client client(board);
  for (const char* path : {"/checkpoint.rltc", "/policy.rltp"}) {
    const Bytes content = client.download(path);
    const FileMessage reply = client.request(FileOperation::calc_file_crc32, path);
    CHECK(reply.operation == FileOperation::ack);
    // MAVLink's developer guide, "MAVLink CRC": starts at 0, without the final inversion
    CHECK(Client::number(reply) == (crc32(content.data(), content.size(), ~0u) ^ ~0u));
  }
}

TEST_CASE("the directory lists two files with their sizes") {
  Board board;
  Client client(board);
  const FileMessage reply = client.request(FileOperation::list_directory, "/");
  CHECK(reply.operation == FileOperation::ack);
  const std::string expected = "Fcheckpoint.rltc\t" +
                               std::to_string(64 + state_bytes(board.run.training)) + '\0' +
                               "Fpolicy.rltp\t" + std::to_string(kPolicyImageBytes<TinyTd3>) + '\0';
  CHECK(std::string(reinterpret_cast<const char*>(reply.data), reply.size) == expected);
  const FileMessage rest = client.request(FileOperation::list_directory, 0, 1, {'/', 0});
  CHECK(std::string(reinterpret_cast<const char*>(rest.data), 13) == "Fpolicy.rltp\t");
  check_error(client.request(FileOperation::list_directory, 0, 2, {'/'}), FileError::end_of_file);
  check_error(client.request(FileOperation::list_directory, "/etc"), FileError::file_not_found);
}

TEST_CASE("what cannot be done is refused by its own error") {
  Board board;
  Client client(board);
  using O = FileOperation;
  check_error(client.request(O::open_file_ro, "/checkpoint.rltc"), FileError::fail_errno);
  check_error(client.request(O::calc_file_crc32, "/policy.rltp"), FileError::fail_errno);
  train_and_pause(board, 30);
  for (const char* path : {"", "/", "/checkpoint", "/checkpoint.rltc2", "/../policy.rltp"}) {
    check_error(client.request(O::open_file_ro, path), FileError::file_not_found);
  }
  check_error(client.request(O::open_file_wo, "/policy.rltp"), FileError::file_protected);
  check_error(client.request(O::create_file, "/other"), FileError::file_not_found);
  check_error(client.request(O::read_file, 3), FileError::invalid_session);
  check_error(client.request(O::write_file, 3, 0, {1}), FileError::invalid_session);
  check_error(client.request(O::terminate_session, 3), FileError::invalid_session);
  for (const int operation :
       {8, 9, 10, 12, 13, 16, 127, 130, 255}) {  // remove, rename, unknown ...
    check_error(client.request(static_cast<O>(operation)), FileError::unknown_command);
  }
  const FileMessage opened = client.request(O::open_file_ro, "/policy.rltp");
  CHECK(opened.operation == O::ack);
  check_error(client.request(O::open_file_ro, "/policy.rltp"), FileError::no_sessions_available);
  check_error(client.request(O::write_file, opened.session, 0, {1}), FileError::invalid_session);
  check_error(client.request(client.read(O::read_file, opened.session, 0, 0)),
              FileError::invalid_data_size);
  check_error(client.request(client.read(O::read_file, opened.session, 0, 240)),
              FileError::invalid_data_size);
  check_error(client.request(client.read(O::read_file, opened.session, 0xffffffffu, 239)),
              FileError::end_of_file);
  CHECK(client.request(O::reset_sessions).operation == O::ack);
  check_error(client.request(client.read(O::read_file, opened.session, 0, 1)),
              FileError::invalid_session);

  board.set("steps", 1000);
  CHECK(board.command(MAV_CMD_RLT_CONTINUE) == MAV_RESULT_ACCEPTED);
  check_error(client.request(O::open_file_ro, "/policy.rltp"), FileError::fail_errno);
  check_error(client.request(O::create_file, "/checkpoint.rltc"), FileError::fail_errno);
  CHECK(board.application.state() == RLT_STATE_TRAINING);
}

TEST_CASE("a file that is open when training goes on is closed") {
  Board board;
  train_and_pause(board, 30);
  Client client(board);
  const FileMessage opened = client.request(FileOperation::open_file_ro, "/checkpoint.rltc");
  client.send(client.read(FileOperation::burst_read_file, opened.session, 0, 80));
  CHECK(board.command(MAV_CMD_RLT_CONTINUE) == MAV_RESULT_ACCEPTED);
  check_error(client.request(client.read(FileOperation::read_file, opened.session, 0, 80)),
              FileError::invalid_session);
}

TEST_CASE("a request that comes twice is carried out once, and answered the same") {
  Board board;
  train_and_pause(board, 30);
  Client client(board);
  const Bytes checkpoint = checkpoint_of(board);
  const FileMessage open =
      client.make(FileOperation::create_file, 0, 0,
                  {'/', 'c', 'h', 'e', 'c', 'k', 'p', 'o', 'i', 'n', 't', '.', 'r', 'l', 't', 'c'});
  const FileMessage opened = client.request(open);
  CHECK(client.request(open).session == opened.session);  // not "no sessions available"
  for (std::uint32_t offset = 0; offset < checkpoint.size(); offset += 200) {
    const std::size_t count = std::min<std::size_t>(200, checkpoint.size() - offset);
    const FileMessage write = client.make(FileOperation::write_file, opened.session, offset,
                                          Bytes(&checkpoint[offset], &checkpoint[offset] + count));
    CHECK(client.request(write).operation == FileOperation::ack);
    CHECK(client.request(write).operation == FileOperation::ack);
  }
  CHECK(board.application.state() == RLT_STATE_IDLE);  // until the session is closed
  const FileMessage close = client.make(FileOperation::terminate_session, opened.session);
  CHECK(client.request(close).operation == FileOperation::ack);
  CHECK(client.request(close).operation == FileOperation::ack);  // not "invalid session"
  CHECK(board.application.state() == RLT_STATE_PAUSED);
}

TEST_CASE("a checkpoint goes to another board, which goes on to the same bits") {
  Bytes checkpoint;
  std::string expected;
  {
    Board board;
    train_and_pause(board, 30);
    checkpoint = checkpoint_of(board);
    CHECK(board.command(MAV_CMD_RLT_CONTINUE) == MAV_RESULT_ACCEPTED);
    board.train_to_rest();
    expected = board.run.state_sha256();
  }
  for (const std::uint32_t part : {1u, 7u, 64u, 65u, 239u}) {
    Board board;
    board.set_short_run(60);
    CHECK(Client(board).upload(checkpoint, part).operation == FileOperation::ack);
    CHECK(board.state() == RLT_STATE_PAUSED);
    CHECK(board.command(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_RLT_RESULT) == MAV_RESULT_ACCEPTED);
    const auto results = board.all(MAVLINK_MSG_ID_RLT_RESULT, mavlink_msg_rlt_result_decode);
    REQUIRE(results.size() == 1);
    CHECK(results[0].step == 31);
    CHECK(std::memcmp(results[0].state_sha256, header_of(checkpoint).sha256, 32) == 0);
    CHECK(checkpoint_of(board) == checkpoint);
    CHECK(board.command(MAV_CMD_RLT_CONTINUE) == MAV_RESULT_ACCEPTED);
    board.train_to_rest();
    CHECK(board.run.state_sha256() == expected);
  }
}

TEST_CASE("a header that does not fit is refused by name, and nothing is overwritten") {
  Board board;
  train_and_pause(board, 30);
  const Bytes good = checkpoint_of(board);
  const std::string before = board.run.state_sha256();
  Bytes bad = good;
  CheckpointHeader header = header_of(good);
  const char* reason = nullptr;
  SUBCASE("no checkpoint at all") {
    header.magic[0] = 'X';
    set_header(bad, header);
    reason = "checkpoint refused: it does not begin as one";
  }
  SUBCASE("damaged") {
    bad[30] ^= 1;
    reason = "checkpoint refused: its header is damaged";
  }
  SUBCASE("another version") {
    header.version = 2;
    set_header(bad, header);
    reason = "checkpoint refused: unknown format version";
  }
  SUBCASE("another experiment") {
    header.fingerprint ^= 1;
    set_header(bad, header);
    reason = "checkpoint refused: of another experiment";
  }
  SUBCASE("another size") {
    header.payload_bytes--;
    set_header(bad, header);
    reason = "checkpoint refused: of another size";
  }
  SUBCASE("only a part of the header") {
    bad.resize(40);
    reason = "checkpoint refused: it was not sent whole";
  }
  SUBCASE("only the header") {
    bad.resize(64);
    reason = "checkpoint refused: it was not sent whole";
  }
  for (const std::uint32_t part : {10u, 239u}) {
    Client client(board);
    const FileMessage last = client.upload(bad, part);
    if (bad.size() > 64) check_error(last, FileError::fail);
    CHECK(client.texts == std::vector<std::string>{reason});
    CHECK(board.state() == RLT_STATE_PAUSED);
    CHECK(board.run.state_sha256() == before);
  }
  CHECK(checkpoint_of(board) == good);
}

TEST_CASE("a payload that does not fit is refused by name, and the board has no state") {
  Board board;
  train_and_pause(board, 30);
  Bytes bad = checkpoint_of(board);
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
    Sha256 hash;
    hash.update(&bad[64], bad.size() - 64);
    hash.finish(header.sha256);
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
    Sha256 hash;
    hash.update(&bad[64], bad.size() - 64);
    hash.finish(header.sha256);
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
    Sha256 hash;
    hash.update(&bad[64], bad.size() - 64);
    hash.finish(header.sha256);
    set_header(bad, header);
    reason = "checkpoint refused: its replay is inconsistent";
  }
  Client client(board);
  CHECK(client.upload(bad).operation == FileOperation::ack);
  CHECK(client.texts == std::vector<std::string>{reason});
  CHECK(board.state() == RLT_STATE_IDLE);
  CHECK(board.command(MAV_CMD_RLT_CONTINUE) == MAV_RESULT_DENIED);
  check_error(client.request(FileOperation::open_file_ro, "/checkpoint.rltc"),
              FileError::fail_errno);
}

TEST_CASE("an upload that is broken off leaves no state behind") {
  Board board;
  train_and_pause(board, 30);
  const Bytes good = checkpoint_of(board);
  Client client(board);
  const FileMessage opened = client.request(FileOperation::create_file, "/checkpoint.rltc");
  CHECK(board.state() == RLT_STATE_PAUSED);  // nothing written yet
  client.request(FileOperation::write_file, opened.session, 0, Bytes(&good[0], &good[239]));
  CHECK(board.state() == RLT_STATE_IDLE);
  SUBCASE("by the client") { client.request(FileOperation::reset_sessions); }
  SUBCASE("by a new run") { CHECK(board.command(MAV_CMD_RLT_START) == MAV_RESULT_ACCEPTED); }
  CHECK(board.texts() == std::vector<std::string>{"checkpoint refused: it was not sent whole"});
  if (board.application.state() == RLT_STATE_TRAINING) {
    board.train_to_rest();
    CHECK(board.application.state() == RLT_STATE_FINISHED);
  }
  // The next upload is not disturbed by the first.
  CHECK(Client(board).upload(good).operation == FileOperation::ack);
  CHECK(board.state() == RLT_STATE_PAUSED);
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
  check_error(write(64, 10), FileError::fail);
  check_error(write(10, 10), FileError::fail);
  check_error(write(0, 0), FileError::invalid_data_size);
  check_error(write(bytes, 1), FileError::invalid_data_size);
  check_error(write(bytes - 5, 6), FileError::invalid_data_size);
  check_error(write(0xffffffffu, 2), FileError::invalid_data_size);
  CHECK(board.run.state_sha256() == before);
}

TEST_CASE("random requests do no harm") {
  std::mt19937 random(5);
  Board board;
  train_and_pause(board, 30);
  Client client(board);
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
