// Test: scripted_board
// The file server (docs/protocol.md, "Files"): operations, errors, bursts; sessions of several
// clients, requests that come twice or several at once.
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

TEST_CASE("the directory lists the files with their sizes") {
  Board board;
  Client client(board);
  const FileMessage reply = client.request(FileOperation::list_directory, "/");
  CHECK(reply.operation == FileOperation::ack);
  const std::string expected = "Fcheckpoint.rltc\t" +
                               std::to_string(64 + state_bytes(board.run.training)) + '\0' +
                               "Fpolicy.rltp\t" + std::to_string(kPolicyImageBytes<TinyTd3>) +
                               '\0' + "Fbest.rltp\t0" + '\0';  // no policy was evaluated yet
  CHECK(std::string(reinterpret_cast<const char*>(reply.data), reply.size) == expected);
  const FileMessage rest = client.request(FileOperation::list_directory, 0, 1, {'/', 0});
  CHECK(std::string(reinterpret_cast<const char*>(rest.data), 13) == "Fpolicy.rltp\t");
  check_error(client.request(FileOperation::list_directory, 0, 3, {'/'}), FileError::end_of_file);
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
  const FileMessage upload = client.request(O::create_file, "/checkpoint.rltc");
  const auto end = static_cast<std::uint32_t>(64 + state_bytes(board.run.training));
  check_error(client.request(O::write_file, upload.session, end, {1}),
              FileError::invalid_data_size);
  check_error(client.request(O::write_file, upload.session, end - 1, {1, 2}),
              FileError::invalid_data_size);
  CHECK(client.request(O::reset_sessions).operation == O::ack);

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

// -- sessions -------------------------------------------------------------------------------------

TEST_CASE_FIXTURE(Paused, "a file that is open when training goes on is closed") {
  const FileMessage opened = client.request(FileOperation::open_file_ro, "/checkpoint.rltc");
  client.send(client.read(FileOperation::burst_read_file, opened.session, 0, 80));
  CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_ACCEPTED);
  check_error(client.request(client.read(FileOperation::read_file, opened.session, 0, 80)),
              FileError::invalid_session);
}

TEST_CASE_FIXTURE(Paused,
                  "a file that is refused leaves the session that is open, and its upload") {
  const FileMessage opened = client.request(FileOperation::create_file, "/checkpoint.rltc");
  for (std::uint32_t offset = 0; offset < checkpoint.size(); offset += 200) {
    REQUIRE(client.acks(write_at(opened.session, offset)));
    check_error(client.request(FileOperation::create_file, "/policy.rltp"),
                FileError::file_protected);
    check_error(client.request(FileOperation::open_file_ro, "/nothing"), FileError::file_not_found);
    if (offset > 0) {  // the state is being overwritten
      check_error(client.request(FileOperation::open_file_ro, "/policy.rltp"),
                  FileError::fail_errno);
    }
  }
  CHECK(client.acks(FileOperation::terminate_session, opened.session));
  CHECK(board.state() == RLT_STATE_PAUSED);
  CHECK(board.texts().empty());
}

TEST_CASE_FIXTURE(Paused, "an upload that has not begun when training goes on is closed too") {
  const FileMessage opened = client.request(FileOperation::create_file, "/checkpoint.rltc");
  CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_ACCEPTED);
  check_error(client.request(write_at(opened.session, 0)), FileError::invalid_session);
  CHECK(board.application.state() == RLT_STATE_TRAINING);
}

TEST_CASE_FIXTURE(Paused, "a request that comes twice is carried out once, and answered the same") {
  const FileMessage open =
      client.make(FileOperation::create_file, 0, 0, bytes_of("/checkpoint.rltc"));
  const FileMessage opened = client.request(open);
  CHECK(client.request(open).session == opened.session);  // not "no sessions available"
  for (std::uint32_t offset = 0; offset < checkpoint.size(); offset += 200) {
    const FileMessage write = write_at(opened.session, offset);
    CHECK(client.acks(write));
    CHECK(client.acks(write));
  }
  CHECK(board.application.state() == RLT_STATE_IDLE);  // until the session is closed
  const FileMessage close = client.make(FileOperation::terminate_session, opened.session);
  CHECK(client.acks(close));
  CHECK(client.acks(close));  // not "invalid session"
  CHECK(board.application.state() == RLT_STATE_PAUSED);
}

namespace {

FileMessage open_request(Client& client, const char* path, std::uint8_t session) {
  return client.make(FileOperation::open_file_ro, session, 0, bytes_of(path));
}

}  // namespace

TEST_CASE_FIXTURE(Paused, "a repeated request is known by all of its bytes, not by its number") {
  FileMessage open = open_request(client, "/checkpoint.rltc", 9);
  CHECK(Client::number(client.request(open)) == 64 + state_bytes(board.run.training));
  // The first request of another program has the same number.
  const std::uint16_t sequence = open.sequence;
  open = open_request(client, "/policy.rltp", 9);
  open.sequence = sequence;
  CHECK(Client::number(client.request(open)) == kPolicyImageBytes<TinyTd3>);
}

TEST_CASE_FIXTURE(Paused, "a repeated request is known by its client, too") {
  const FileMessage open = open_request(client, "/policy.rltp", 9);
  CHECK(client.acks(open));
  check_error(other.request(open), FileError::no_sessions_available);
}

TEST_CASE_FIXTURE(Paused, "a repeated request is known after others have asked") {
  const FileMessage open =
      client.make(FileOperation::create_file, 5, 0, bytes_of("/checkpoint.rltc"));
  CHECK(client.acks(open));
  CHECK(other.acks(FileOperation::list_directory));
  counter_us += 2'000'000;
  board.texts();
  CHECK(client.acks(open));
  CHECK(board.texts().empty());  // no upload was broken off
  write_rest(5);
  const FileMessage close = client.make(FileOperation::terminate_session, 5);
  CHECK(client.acks(close));
  CHECK(other.acks(FileOperation::list_directory));
  CHECK(client.acks(close));  // the upload was taken
  CHECK(other.acks(FileOperation::open_file_ro, "/policy.rltp", 5));
  CHECK(client.acks(close));
  CHECK(other.acks(other.read(FileOperation::read_file, 5, 0, 1)));  // whose session is open still
  // Of the two who have closed a session the last one is known.
  CHECK(other.acks(FileOperation::terminate_session, 5));
  check_error(client.request(close), FileError::invalid_session);
  CHECK(third.acks(FileOperation::open_file_ro, "/policy.rltp", 5));
}

TEST_CASE_FIXTURE(
    Paused, "a late copy of the request that opened the session does not begin the upload anew") {
  const FileMessage open =
      client.make(FileOperation::create_file, 5, 0, bytes_of("/checkpoint.rltc"));
  CHECK(client.acks(open));
  CHECK(client.acks(write_at(5, 0)));
  counter_us += 900'000;
  CHECK(client.acks(open));
  write_rest(5, 200);
  CHECK(client.acks(FileOperation::terminate_session, 5));
  CHECK(board.application.state() == RLT_STATE_PAUSED);
  CHECK(checkpoint_of(board) == checkpoint);
}

TEST_CASE_FIXTURE(Paused,
                  "a program that was started again opens with the same bytes, and begins anew") {
  const FileMessage open =
      client.make(FileOperation::create_file, 5, 0, bytes_of("/checkpoint.rltc"));
  const FileMessage close = client.make(FileOperation::terminate_session, 5);
  checkpoint[20] ^= 1;
  CHECK(client.acks(open));
  check_error(client.request(write_at(5, 0)), FileError::fail);  // and the program ends
  checkpoint[20] ^= 1;
  counter_us += 1'100'000;
  for (int again = 0; again < 2; again++) {
    CHECK(client.acks(open));
    write_rest(5);
    CHECK(board.application.state() == RLT_STATE_IDLE);
    // The same file again is closed by the bytes that have closed it before.
    CHECK(client.acks(close));
    CHECK(board.application.state() == RLT_STATE_PAUSED);
  }
}

TEST_CASE_FIXTURE(Paused, "what was refused is tried again when it is asked for again") {
  CHECK(client.acks(FileOperation::open_file_ro, "/policy.rltp"));
  const FileMessage open = open_request(other, "/policy.rltp", 9);
  check_error(other.request(open), FileError::no_sessions_available);
  counter_us += 5'000'000;
  CHECK(other.acks(open));
}

TEST_CASE_FIXTURE(Paused, "an answer is not kept over a start of training") {
  const FileMessage open = open_request(client, "/policy.rltp", 9);
  CHECK(client.acks(open));
  CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_ACCEPTED);
  check_error(client.request(open), FileError::fail_errno);
}

TEST_CASE_FIXTURE(Paused, "a session has the number that its client asks for") {
  for (const int number : {0, 1, 77, 255}) {
    const auto session = static_cast<std::uint8_t>(number);
    const FileMessage opened = client.request(FileOperation::open_file_ro, "/policy.rltp", session);
    CHECK(opened.operation == FileOperation::ack);
    CHECK(opened.session == session);
    const FileMessage part = client.request(client.read(FileOperation::read_file, session, 0, 10));
    CHECK(part.operation == FileOperation::ack);
    CHECK(part.session == session);
    CHECK(client.acks(FileOperation::terminate_session, session));
  }
}

TEST_CASE_FIXTURE(Paused, "a session is its client's: others neither read, close nor reset it") {
  CHECK(client.acks(FileOperation::open_file_ro, "/policy.rltp", 5));
  for (Client* client : {&other, &third}) {
    check_error(client->request(client->read(FileOperation::read_file, 5, 0, 1)),
                FileError::invalid_session);
    check_error(client->request(client->read(FileOperation::burst_read_file, 5, 0, 1)),
                FileError::invalid_session);
    check_error(client->request(FileOperation::terminate_session, 5), FileError::invalid_session);
    check_error(client->request(FileOperation::open_file_ro, "/policy.rltp", 5),
                FileError::no_sessions_available);
    CHECK(client->acks(FileOperation::reset_sessions));
  }
  // Nor does its owner close it by another number.
  check_error(client.request(FileOperation::terminate_session, 6), FileError::invalid_session);
  CHECK(client.acks(client.read(FileOperation::read_file, 5, 0, 1)));
  CHECK(client.acks(FileOperation::terminate_session, 5));
  CHECK(other.acks(FileOperation::open_file_ro, "/policy.rltp", 5));
}

TEST_CASE_FIXTURE(
    Paused, "a session gives way to its own client at once, to another after 5 s of silence") {
  const auto owner_reads = [&] {
    return client.request(client.read(FileOperation::read_file, 5, 0, 1));
  };
  CHECK(client.acks(FileOperation::open_file_ro, "/policy.rltp", 5));
  // A program that was ended and started again.
  const FileMessage again = client.request(FileOperation::open_file_ro, "/checkpoint.rltc", 5);
  CHECK(Client::number(again) == 64 + state_bytes(board.run.training));

  counter_us += 4'900'000;
  CHECK(owner_reads().operation == FileOperation::ack);
  counter_us += 4'900'000;
  check_error(other.request(FileOperation::open_file_ro, "/policy.rltp", 8),
              FileError::no_sessions_available);
  counter_us += 4'900'000;
  CHECK(owner_reads().operation == FileOperation::ack);  // it lasts as long as nobody else asks
  counter_us += 5'000'000;
  CHECK(other.acks(FileOperation::open_file_ro, "/policy.rltp", 8));
  check_error(owner_reads(), FileError::invalid_session);
}

TEST_CASE_FIXTURE(Paused, "an upload that falls silent gives way, and is broken off") {
  const FileMessage opened = client.request(FileOperation::create_file, "/checkpoint.rltc", 3);
  client.request(write_at(opened.session, 0));
  CHECK(board.application.state() == RLT_STATE_IDLE);
  counter_us += 5'000'000;
  CHECK(other.upload(checkpoint).operation == FileOperation::ack);
  CHECK(board.state() == RLT_STATE_PAUSED);
}

TEST_CASE_FIXTURE(Paused, "writes that come several at once are each answered, in their order") {
  const FileMessage opened = client.request(FileOperation::create_file, "/checkpoint.rltc", 200);
  for (std::uint32_t offset = 0; offset < checkpoint.size();) {
    std::vector<FileMessage> writes;
    for (; writes.size() < 5 && offset < checkpoint.size(); offset += 80) {
      writes.push_back(write_at(opened.session, offset, 80));
    }
    const auto replies = client.send(writes);
    REQUIRE(replies.size() == writes.size());
    for (std::size_t i = 0; i < writes.size(); i++) {
      CHECK(replies[i].operation == FileOperation::ack);
      CHECK(replies[i].sequence == static_cast<std::uint16_t>(writes[i].sequence + 1));
      CHECK(replies[i].offset == writes[i].offset);
    }
  }
  CHECK(client.acks(FileOperation::terminate_session, opened.session));
  CHECK(board.application.state() == RLT_STATE_PAUSED);
  CHECK(checkpoint_of(board) == checkpoint);
}

TEST_CASE_FIXTURE(
    Paused, "of several writes the first is lost: what comes before the header is not answered") {
  const std::string before = board.run.state_sha256();
  const FileMessage opened = client.request(FileOperation::create_file, "/checkpoint.rltc", 200);
  const auto write = [&](std::uint32_t offset, std::uint32_t count) {
    return write_at(opened.session, offset, count);
  };
  CHECK(client.send({write(80, 80), write(160, 80), write(10, 10)}).empty());
  CHECK(board.run.state_sha256() == before);
  CHECK(client.send({write(0, 80), write(80, 80), write(160, 80)}).size() == 3);
}
