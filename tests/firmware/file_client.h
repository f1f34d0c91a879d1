// A client of the boards' file transfer protocol, written from its description
// (docs/protocol.md, "Files").
#pragma once

#include "scripted_board.h"

namespace scripted {

// A client that speaks the file transfer protocol from its description.
class Client {
 public:
  explicit Client(Board& board, link::Address self = kHost) : board_(board), self_(self) {}

  FileMessage make(FileOperation operation, std::uint8_t session = 0, std::uint32_t offset = 0,
                   const Bytes& data = {});

  // Sends requests at once; returns the replies.
  std::vector<FileMessage> send(const std::vector<FileMessage>& requests, int turns = 1);
  std::vector<FileMessage> send(const FileMessage& request, int turns = 1) {
    return send(std::vector<FileMessage>{request}, turns);
  }

  FileMessage request(const FileMessage& message);
  FileMessage request(FileOperation operation, std::uint8_t session = 0, std::uint32_t offset = 0,
                      const Bytes& data = {}) {
    return request(make(operation, session, offset, data));
  }
  FileMessage request(FileOperation operation, const char* path, std::uint8_t session = 0) {
    return request(operation, session, 0, bytes_of(path));
  }
  // Whether a request is acknowledged.
  template <class... Words>
  bool acks(const Words&... words) {
    return request(words...).operation == FileOperation::ack;
  }
  // Asks for `count` bytes; such a request carries no data.
  FileMessage read(FileOperation operation, std::uint8_t session, std::uint32_t offset,
                   std::uint8_t count);

  Bytes download(const char* path);

  // Until a write is refused; then closes the session. Returns the last reply but one.
  FileMessage upload(const Bytes& content, std::uint32_t part = 239);

  std::vector<std::string> texts;  // of the last upload

  static std::uint32_t number(const FileMessage& message);

 private:
  Board& board_;
  const link::Address self_;
  std::uint16_t sequence_ = 100;
};

void check_error(const FileMessage& reply, FileError error);

// A board at rest at this step of a short run.
void train_and_pause(Board& board, std::uint32_t step);

Bytes checkpoint_of(Board& board);

// A board that is paused, its checkpoint, and three programs that are its clients.
struct Paused {
  Board board;
  Client client{board}, other{board, {255, 230}}, third{board, {1, 190}};
  Bytes checkpoint;

  Paused();
  // A request to write the checkpoint's bytes from there on, or as far as there are any.
  FileMessage write_at(std::uint8_t session, std::uint32_t offset, std::uint32_t count = 200);
  // All of them from there on; each is acknowledged.
  void write_rest(std::uint8_t session, std::uint32_t offset = 0);
};

}  // namespace scripted
