#include "file_client.h"

#include <algorithm>

namespace scripted {

FileMessage Client::make(FileOperation operation, std::uint8_t session, std::uint32_t offset,
                         const Bytes& data) {
  return file_request(sequence_ += 2, session, operation, offset, data);
}

std::vector<FileMessage> Client::send(const std::vector<FileMessage>& requests, int turns) {
  board_.host = self_;
  board_.received.clear();
  for (const FileMessage& request : requests) {
    board_.put(mavlink_msg_file_transfer_protocol_encode, addressed_to(kSelf, content_of(request)));
  }
  board_.take_all(turns);
  std::vector<FileMessage> replies;
  for (const auto& reply : board_.all(MAVLINK_MSG_ID_FILE_TRANSFER_PROTOCOL,
                                      mavlink_msg_file_transfer_protocol_decode)) {
    CHECK(reply.target_system == self_.system);
    CHECK(reply.target_component == self_.component);
    replies.emplace_back();
    std::memcpy(&replies.back(), reply.payload, kFileMessageBytes);
  }
  return replies;
}

FileMessage Client::request(const FileMessage& message) {
  const auto replies = send(message);
  REQUIRE(replies.size() == 1);
  CHECK(replies[0].sequence == static_cast<std::uint16_t>(message.sequence + 1));
  CHECK(replies[0].request == message.operation);
  CHECK(replies[0].offset == message.offset);
  return replies[0];
}

FileMessage Client::read(FileOperation operation, std::uint8_t session, std::uint32_t offset,
                         std::uint8_t count) {
  FileMessage message = make(operation, session, offset);
  message.size = count;
  return message;
}

Bytes Client::download(const char* path) {
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
  CHECK(request(FileOperation::terminate_session, opened.session).operation == FileOperation::ack);
  return content;
}

FileMessage Client::upload(const Bytes& content, std::uint32_t part) {
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
  CHECK(request(FileOperation::terminate_session, opened.session).operation == FileOperation::ack);
  for (const std::string& text : board_.texts()) texts.push_back(text);
  return reply;
}

std::uint32_t Client::number(const FileMessage& message) {
  CHECK(message.size == 4);
  std::uint32_t value;
  std::memcpy(&value, message.data, 4);
  return value;
}

void check_error(const FileMessage& reply, FileError error) {
  CHECK(reply.operation == FileOperation::nak);
  CHECK(reply.data[0] == static_cast<int>(error));
  CHECK(reply.size == (error == FileError::fail_errno ? 2 : 1));
  if (error == FileError::fail_errno) CHECK(reply.data[1] == 16);
}

void train_and_pause(Board& board, std::uint32_t step) {
  board.set_short_run(60);
  board.start_and_train(step);
  REQUIRE(board.command(MAV_CMD_RLT_PAUSE) == MAV_RESULT_ACCEPTED);
}

Bytes checkpoint_of(Board& board) { return Client(board).download("/checkpoint.rltc"); }

Paused::Paused() {
  train_and_pause(board, 31);
  checkpoint = checkpoint_of(board);
}

FileMessage Paused::write_at(std::uint8_t session, std::uint32_t offset, std::uint32_t count) {
  const auto end = std::min<std::size_t>(offset + count, checkpoint.size());
  return client.make(FileOperation::write_file, session, offset,
                     Bytes(&checkpoint[offset], checkpoint.data() + end));
}

void Paused::write_rest(std::uint8_t session, std::uint32_t offset) {
  for (; offset < checkpoint.size(); offset += 200) {
    CHECK(client.request(write_at(session, offset)).operation == FileOperation::ack);
  }
}

}  // namespace scripted
