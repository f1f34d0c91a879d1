// Test: scripted_board
// The file server's sessions (docs/protocol.md, "Files"): several clients, requests that come twice
// or several at once.
#include "file_client.h"

using namespace scripted;

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
