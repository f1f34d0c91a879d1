// Test: scripted_board
// The file server (docs/protocol.md, "Files"): operations, errors, bursts.
#include "file_client.h"

using namespace scripted;

TEST_CASE_FIXTURE(Paused, "a burst brings the rest of the file, its last packet marked") {
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
      CHECK(packet.burst_complete == (first + content.size() == checkpoint.size() ? 1 : 0));
    }
    CHECK(content == Bytes(checkpoint.begin() + first, checkpoint.end()));
  }
  const auto at_the_end =
      client.send(client.read(FileOperation::burst_read_file, opened.session,
                              static_cast<std::uint32_t>(checkpoint.size()), 239));
  REQUIRE(at_the_end.size() == 1);
  check_error(at_the_end[0], FileError::end_of_file);
}

TEST_CASE_FIXTURE(Paused, "any other request ends a burst") {
  const FileMessage opened = client.request(FileOperation::open_file_ro, "/checkpoint.rltc");
  const auto first =
      client.send(client.read(FileOperation::burst_read_file, opened.session, 0, 80));
  CHECK(first.size() >= 1);
  CHECK(first.back().burst_complete == 0);
  CHECK(client.acks(FileOperation::list_directory, "/"));
  board.received.clear();
  board.turns(10);
  CHECK(board.received.empty());
  // The session goes on, and so does another burst, until that is closed.
  CHECK(client.send(client.read(FileOperation::burst_read_file, opened.session, 0, 80)).size() >=
        1);
  CHECK(client.acks(FileOperation::terminate_session, opened.session));
  board.received.clear();
  board.turns(10);
  CHECK(board.received.empty());
}

TEST_CASE_FIXTURE(Paused, "the checksum is that of the whole file") {
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
  train_and_pause(board, 31);
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
  check_error(client.request(O::open_file_ro, "/policy.rltp", opened.session + 1),
              FileError::no_sessions_available);
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
  CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_ACCEPTED);
  check_error(client.request(O::open_file_ro, "/policy.rltp"), FileError::fail_errno);
  check_error(client.request(O::create_file, "/checkpoint.rltc"), FileError::fail_errno);
  CHECK(board.application.state() == RLT_STATE_TRAINING);
}

namespace {

struct LongFile {
  static constexpr int kFileCount = 1;
  const char* name(int) const { return "long"; }
  std::uint32_t size(int) const { return 10'000; }
  FileError may_read(int) const { return FileError::none; }
  FileError may_write(int) const { return FileError::file_protected; }
  FileError open_to_write(int) { return FileError::fail; }
  void read(int, std::uint32_t offset, std::uint8_t* destination, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; i++) {
      destination[i] = static_cast<std::uint8_t>((offset + i) * 31);
    }
  }
  FileError write(int, std::uint32_t, const std::uint8_t*, std::uint32_t) {
    return FileError::fail;
  }
  void close_written(int, bool) {}
};

// All packets that the server sends.
std::vector<FileMessage> packets_of(FileServer<LongFile>& server, const FileMessage& request) {
  mavlink_file_transfer_protocol_t content{};
  std::memcpy(content.payload, &request, kFileMessageBytes);
  mavlink_message_t message;
  mavlink_msg_file_transfer_protocol_encode(kHost.system, kHost.component, &message, &content);
  from_board.clear();
  server.receive(message);
  while (server.poll()) continue;
  std::vector<FileMessage> packets;
  mavlink_status_t status{};
  mavlink_message_t partial{};
  for (const std::uint8_t byte : from_board) {
    if (mavlink_frame_char_buffer(&partial, &status, byte, &message, nullptr) ==
        MAVLINK_FRAMING_OK) {
      mavlink_msg_file_transfer_protocol_decode(&message, &content);
      packets.emplace_back();
      std::memcpy(&packets.back(), content.payload, kFileMessageBytes);
    }
  }
  return packets;
}

}  // namespace

TEST_CASE("a burst has 4,096 packets at most; the next one goes on") {
  LongFile files;
  link::MessageSender sender({read, write}, kSelf);
  FileServer<LongFile> server(files, sender);
  FileMessage open{};
  open.operation = FileOperation::open_file_ro;
  open.size = 4;
  std::memcpy(open.data, "long", 4);
  REQUIRE(packets_of(server, open).size() == 1);
  FileMessage burst{};
  burst.operation = FileOperation::burst_read_file;
  burst.size = 1;
  std::vector<std::size_t> lengths;
  while (burst.offset < files.size(0)) {
    const auto packets = packets_of(server, burst);
    REQUIRE(!packets.empty());
    lengths.push_back(packets.size());
    for (const FileMessage& packet : packets) {
      CHECK(packet.offset == burst.offset);
      CHECK(packet.data[0] == static_cast<std::uint8_t>(burst.offset * 31));
      burst.offset++;
      CHECK(packet.burst_complete == (&packet == &packets.back() ? 1 : 0));
    }
  }
  CHECK(lengths == std::vector<std::size_t>{4096, 4096, 10'000 - 2 * 4096});
}
