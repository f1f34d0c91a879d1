// Test: scripted_board
// The file server's sessions (docs/protocol.md, "Files"): several clients, requests that come twice
// or several at once.
#include "file_client.h"

using namespace scripted;

TEST_CASE("a file that is open when training goes on is closed") {
  Board board;
  train_and_pause(board, 31);
  Client client(board);
  const FileMessage opened = client.request(FileOperation::open_file_ro, "/checkpoint.rltc");
  client.send(client.read(FileOperation::burst_read_file, opened.session, 0, 80));
  CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_ACCEPTED);
  check_error(client.request(client.read(FileOperation::read_file, opened.session, 0, 80)),
              FileError::invalid_session);
}

TEST_CASE("a file that is refused leaves the session that is open, and its upload") {
  Board board;
  train_and_pause(board, 31);
  const Bytes good = checkpoint_of(board);
  Client client(board);
  const FileMessage opened = client.request(FileOperation::create_file, "/checkpoint.rltc");
  for (std::size_t offset = 0; offset < good.size(); offset += 239) {
    const std::size_t end = offset + 239 < good.size() ? offset + 239 : good.size();
    REQUIRE(client
                .request(FileOperation::write_file, opened.session,
                         static_cast<std::uint32_t>(offset), Bytes(&good[offset], &good[0] + end))
                .operation == FileOperation::ack);
    check_error(client.request(FileOperation::create_file, "/policy.rltp"),
                FileError::file_protected);
    check_error(client.request(FileOperation::open_file_ro, "/nothing"), FileError::file_not_found);
    if (offset > 0) {  // the state is being overwritten
      check_error(client.request(FileOperation::open_file_ro, "/policy.rltp"),
                  FileError::fail_errno);
    }
  }
  CHECK(client.request(FileOperation::terminate_session, opened.session).operation ==
        FileOperation::ack);
  CHECK(board.state() == RLT_STATE_PAUSED);
  CHECK(board.texts().empty());
}

TEST_CASE("an upload that has not begun when training goes on is closed too") {
  Board board;
  train_and_pause(board, 31);
  const Bytes good = checkpoint_of(board);
  Client client(board);
  const FileMessage opened = client.request(FileOperation::create_file, "/checkpoint.rltc");
  CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_ACCEPTED);
  check_error(
      client.request(FileOperation::write_file, opened.session, 0, Bytes(&good[0], &good[239])),
      FileError::invalid_session);
  CHECK(board.application.state() == RLT_STATE_TRAINING);
}

TEST_CASE("a request that comes twice is carried out once, and answered the same") {
  Board board;
  train_and_pause(board, 31);
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

namespace {

FileMessage open_request(Client& client, const char* path, std::uint8_t session) {
  return client.make(FileOperation::open_file_ro, session, 0, bytes_of(path));
}

}  // namespace

TEST_CASE("a repeated request is known by all of its bytes, not by its number") {
  Board board;
  train_and_pause(board, 31);
  Client client(board);
  FileMessage open = open_request(client, "/checkpoint.rltc", 9);
  CHECK(Client::number(client.request(open)) == 64 + state_bytes(board.run.training));
  // The first request of another program has the same number.
  const std::uint16_t sequence = open.sequence;
  open = open_request(client, "/policy.rltp", 9);
  open.sequence = sequence;
  CHECK(Client::number(client.request(open)) == kPolicyImageBytes<TinyTd3>);
}

TEST_CASE("a repeated request is known by its client, too") {
  Board board;
  train_and_pause(board, 31);
  Client first(board), second(board, {255, 230});
  const FileMessage open = open_request(first, "/policy.rltp", 9);
  CHECK(first.request(open).operation == FileOperation::ack);
  check_error(second.request(open), FileError::no_sessions_available);
}

TEST_CASE("a repeated request is known after others have asked") {
  Board board;
  train_and_pause(board, 31);
  const Bytes checkpoint = checkpoint_of(board);
  Client owner(board), other(board, {255, 230}), third(board, {1, 190});
  const FileMessage open =
      owner.make(FileOperation::create_file, 5, 0, bytes_of("/checkpoint.rltc"));
  CHECK(owner.request(open).operation == FileOperation::ack);
  CHECK(other.request(FileOperation::list_directory).operation == FileOperation::ack);
  counter_us += 2'000'000;
  board.texts();
  CHECK(owner.request(open).operation == FileOperation::ack);
  CHECK(board.texts().empty());  // no upload was broken off
  for (std::uint32_t offset = 0; offset < checkpoint.size(); offset += 200) {
    const std::size_t count = std::min<std::size_t>(200, checkpoint.size() - offset);
    owner.request(FileOperation::write_file, 5, offset,
                  Bytes(&checkpoint[offset], &checkpoint[offset] + count));
  }
  const FileMessage close = owner.make(FileOperation::terminate_session, 5);
  CHECK(owner.request(close).operation == FileOperation::ack);
  CHECK(other.request(FileOperation::list_directory).operation == FileOperation::ack);
  CHECK(owner.request(close).operation == FileOperation::ack);  // the upload was taken
  CHECK(other.request(FileOperation::open_file_ro, "/policy.rltp", 5).operation ==
        FileOperation::ack);
  CHECK(owner.request(close).operation == FileOperation::ack);
  CHECK(other.request(other.read(FileOperation::read_file, 5, 0, 1)).operation ==
        FileOperation::ack);  // whose session is open still
  // Of the two who have closed a session the last one is known.
  CHECK(other.request(FileOperation::terminate_session, 5).operation == FileOperation::ack);
  check_error(owner.request(close), FileError::invalid_session);
  CHECK(third.request(FileOperation::open_file_ro, "/policy.rltp", 5).operation ==
        FileOperation::ack);
}

TEST_CASE("a late copy of the request that opened the session does not begin the upload anew") {
  Board board;
  train_and_pause(board, 31);
  const Bytes checkpoint = checkpoint_of(board);
  Client client(board);
  const FileMessage open =
      client.make(FileOperation::create_file, 5, 0, bytes_of("/checkpoint.rltc"));
  const auto write = [&](std::uint32_t offset) {
    const std::size_t count = std::min<std::size_t>(200, checkpoint.size() - offset);
    return client.make(FileOperation::write_file, 5, offset,
                       Bytes(&checkpoint[offset], &checkpoint[offset] + count));
  };
  CHECK(client.request(open).operation == FileOperation::ack);
  CHECK(client.request(write(0)).operation == FileOperation::ack);
  counter_us += 900'000;
  CHECK(client.request(open).operation == FileOperation::ack);
  for (std::uint32_t offset = 200; offset < checkpoint.size(); offset += 200) {
    CHECK(client.request(write(offset)).operation == FileOperation::ack);
  }
  CHECK(client.request(FileOperation::terminate_session, 5).operation == FileOperation::ack);
  CHECK(board.application.state() == RLT_STATE_PAUSED);
  CHECK(checkpoint_of(board) == checkpoint);
}

TEST_CASE("a program that was started again opens with the same bytes, and begins anew") {
  Board board;
  train_and_pause(board, 31);
  const Bytes checkpoint = checkpoint_of(board);
  Client client(board);
  const FileMessage open =
      client.make(FileOperation::create_file, 5, 0, bytes_of("/checkpoint.rltc"));
  const FileMessage close = client.make(FileOperation::terminate_session, 5);
  const auto upload = [&](const Bytes& content, std::uint32_t most) {
    CHECK(client.request(open).operation == FileOperation::ack);
    FileMessage reply{};
    for (std::uint32_t offset = 0; offset < most; offset += 200) {
      const std::size_t count = std::min<std::size_t>(200, content.size() - offset);
      reply = client.request(FileOperation::write_file, 5, offset,
                             Bytes(&content[offset], &content[offset] + count));
    }
    return reply;
  };
  const auto size = static_cast<std::uint32_t>(checkpoint.size());
  Bytes damaged = checkpoint;
  damaged[20] ^= 1;
  check_error(upload(damaged, 200), FileError::fail);  // and the program ends
  counter_us += 1'100'000;
  CHECK(upload(checkpoint, size).operation == FileOperation::ack);
  CHECK(client.request(close).operation == FileOperation::ack);
  CHECK(board.application.state() == RLT_STATE_PAUSED);
  // Again, the same file: it is closed by the bytes that have closed it before.
  CHECK(upload(checkpoint, size).operation == FileOperation::ack);
  CHECK(board.application.state() == RLT_STATE_IDLE);
  CHECK(client.request(close).operation == FileOperation::ack);
  CHECK(board.application.state() == RLT_STATE_PAUSED);
}

TEST_CASE("what was refused is tried again when it is asked for again") {
  Board board;
  train_and_pause(board, 31);
  Client first(board), second(board, {255, 230});
  CHECK(first.request(FileOperation::open_file_ro, "/policy.rltp").operation == FileOperation::ack);
  const FileMessage open = open_request(second, "/policy.rltp", 9);
  check_error(second.request(open), FileError::no_sessions_available);
  counter_us += 5'000'000;
  CHECK(second.request(open).operation == FileOperation::ack);
}

TEST_CASE("an answer is not kept over a start of training") {
  Board board;
  train_and_pause(board, 31);
  Client client(board);
  const FileMessage open = open_request(client, "/policy.rltp", 9);
  CHECK(client.request(open).operation == FileOperation::ack);
  CHECK(board.command(MAV_CMD_RLT_RESUME) == MAV_RESULT_ACCEPTED);
  check_error(client.request(open), FileError::fail_errno);
}

TEST_CASE("a session has the number that its client asks for") {
  Board board;
  train_and_pause(board, 31);
  Client client(board);
  for (const int number : {0, 1, 77, 255}) {
    const auto session = static_cast<std::uint8_t>(number);
    const FileMessage opened = client.request(FileOperation::open_file_ro, "/policy.rltp", session);
    CHECK(opened.operation == FileOperation::ack);
    CHECK(opened.session == session);
    const FileMessage part = client.request(client.read(FileOperation::read_file, session, 0, 10));
    CHECK(part.operation == FileOperation::ack);
    CHECK(part.session == session);
    CHECK(client.request(FileOperation::terminate_session, session).operation ==
          FileOperation::ack);
  }
}

TEST_CASE("a session is its client's: others neither read, close nor reset it") {
  Board board;
  train_and_pause(board, 31);
  Client owner(board), other(board, {255, 230}), third(board, {1, 190});
  CHECK(owner.request(FileOperation::open_file_ro, "/policy.rltp", 5).operation ==
        FileOperation::ack);
  for (Client* client : {&other, &third}) {
    check_error(client->request(client->read(FileOperation::read_file, 5, 0, 1)),
                FileError::invalid_session);
    check_error(client->request(client->read(FileOperation::burst_read_file, 5, 0, 1)),
                FileError::invalid_session);
    check_error(client->request(FileOperation::terminate_session, 5), FileError::invalid_session);
    check_error(client->request(FileOperation::open_file_ro, "/policy.rltp", 5),
                FileError::no_sessions_available);
    CHECK(client->request(FileOperation::reset_sessions).operation == FileOperation::ack);
  }
  // Nor does its owner close it by another number.
  check_error(owner.request(FileOperation::terminate_session, 6), FileError::invalid_session);
  CHECK(owner.request(owner.read(FileOperation::read_file, 5, 0, 1)).operation ==
        FileOperation::ack);
  CHECK(owner.request(FileOperation::terminate_session, 5).operation == FileOperation::ack);
  CHECK(other.request(FileOperation::open_file_ro, "/policy.rltp", 5).operation ==
        FileOperation::ack);
}

TEST_CASE("a session gives way to its own client at once, to another after 5 s of silence") {
  Board board;
  train_and_pause(board, 31);
  Client owner(board), other(board, {255, 230});
  const auto owner_reads = [&] {
    return owner.request(owner.read(FileOperation::read_file, 5, 0, 1));
  };
  CHECK(owner.request(FileOperation::open_file_ro, "/policy.rltp", 5).operation ==
        FileOperation::ack);
  // A program that was ended and started again.
  const FileMessage again = owner.request(FileOperation::open_file_ro, "/checkpoint.rltc", 5);
  CHECK(Client::number(again) == 64 + state_bytes(board.run.training));

  counter_us += 4'900'000;
  CHECK(owner_reads().operation == FileOperation::ack);
  counter_us += 4'900'000;
  check_error(other.request(FileOperation::open_file_ro, "/policy.rltp", 8),
              FileError::no_sessions_available);
  counter_us += 4'900'000;
  CHECK(owner_reads().operation == FileOperation::ack);  // it lasts as long as nobody else asks
  counter_us += 5'000'000;
  CHECK(other.request(FileOperation::open_file_ro, "/policy.rltp", 8).operation ==
        FileOperation::ack);
  check_error(owner_reads(), FileError::invalid_session);
}

TEST_CASE("an upload that falls silent gives way, and is broken off") {
  Board board;
  train_and_pause(board, 31);
  const Bytes checkpoint = checkpoint_of(board);
  Client owner(board), other(board, {255, 230});
  const FileMessage opened = owner.request(FileOperation::create_file, "/checkpoint.rltc", 3);
  owner.request(FileOperation::write_file, opened.session, 0,
                Bytes(&checkpoint[0], &checkpoint[200]));
  CHECK(board.application.state() == RLT_STATE_IDLE);
  counter_us += 5'000'000;
  CHECK(other.upload(checkpoint).operation == FileOperation::ack);
  CHECK(board.state() == RLT_STATE_PAUSED);
}

TEST_CASE("writes that come several at once are each answered, in their order") {
  Board board;
  train_and_pause(board, 31);
  const Bytes checkpoint = checkpoint_of(board);
  Client client(board);
  const FileMessage opened = client.request(FileOperation::create_file, "/checkpoint.rltc", 200);
  for (std::uint32_t offset = 0; offset < checkpoint.size();) {
    std::vector<FileMessage> writes;
    for (; writes.size() < 5 && offset < checkpoint.size(); offset += 80) {
      const std::size_t count = std::min<std::size_t>(80, checkpoint.size() - offset);
      writes.push_back(client.make(FileOperation::write_file, opened.session, offset,
                                   Bytes(&checkpoint[offset], &checkpoint[offset] + count)));
    }
    const auto replies = client.send(writes);
    REQUIRE(replies.size() == writes.size());
    for (std::size_t i = 0; i < writes.size(); i++) {
      CHECK(replies[i].operation == FileOperation::ack);
      CHECK(replies[i].sequence == static_cast<std::uint16_t>(writes[i].sequence + 1));
      CHECK(replies[i].offset == writes[i].offset);
    }
  }
  CHECK(client.request(FileOperation::terminate_session, opened.session).operation ==
        FileOperation::ack);
  CHECK(board.application.state() == RLT_STATE_PAUSED);
  CHECK(checkpoint_of(board) == checkpoint);
}

TEST_CASE("of several writes the first is lost: what comes before the header is not answered") {
  Board board;
  train_and_pause(board, 31);
  const Bytes checkpoint = checkpoint_of(board);
  Client client(board);
  const std::string before = board.run.state_sha256();
  const FileMessage opened = client.request(FileOperation::create_file, "/checkpoint.rltc", 200);
  const auto write = [&](std::uint32_t offset, std::uint32_t count) {
    return client.make(FileOperation::write_file, opened.session, offset,
                       Bytes(&checkpoint[offset], &checkpoint[offset] + count));
  };
  CHECK(client.send({write(80, 80), write(160, 80), write(10, 10)}).empty());
  CHECK(board.run.state_sha256() == before);
  CHECK(client.send({write(0, 80), write(80, 80), write(160, 80)}).size() == 3);
}
