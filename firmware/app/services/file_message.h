// The payload of a FILE_TRANSFER_PROTOCOL message (https://mavlink.io/en/services/ftp.html), and
// answers to one.
#pragma once

#include "app/link/mavlink_protocol.h"

namespace rlt {

enum class FileOperation : std::uint8_t {
  none = 0,
  terminate_session = 1,
  reset_sessions = 2,
  list_directory = 3,
  open_file_ro = 4,
  read_file = 5,
  create_file = 6,
  write_file = 7,
  open_file_wo = 11,
  calc_file_crc32 = 14,
  burst_read_file = 15,
  ack = 128,
  nak = 129,
};

enum class FileError : std::uint8_t {
  none = 0,
  fail = 1,
  fail_errno = 2,  // followed by an errno; here always EBUSY
  invalid_data_size = 3,
  invalid_session = 4,
  no_sessions_available = 5,
  end_of_file = 6,
  unknown_command = 7,
  file_protected = 9,
  file_not_found = 10,
  unanswered = 255,  // not on the link: the request gets no answer, and the client repeats it
};

constexpr std::uint8_t kErrnoBusy = 16;
constexpr std::uint32_t kFileDataBytes = 239;

struct FileMessage {
  std::uint16_t sequence;
  std::uint8_t session;
  FileOperation operation;
  std::uint8_t size;
  FileOperation request;
  std::uint8_t burst_complete;
  std::uint8_t padding;
  std::uint32_t offset;
  std::uint8_t data[kFileDataBytes];
  std::uint8_t unused;  // alignment; not transferred
};
constexpr std::size_t kFileMessageBytes = 251;
static_assert(offsetof(FileMessage, data) == 12 &&
                  offsetof(FileMessage, unused) == kFileMessageBytes,
              "the protocol gives the payload's bytes");

// Return an acknowledgement without data.
inline FileMessage acknowledge(const FileMessage& request) {
  FileMessage answer{};
  answer.sequence = static_cast<std::uint16_t>(request.sequence + 1);
  answer.session = request.session;
  answer.operation = FileOperation::ack;
  answer.request = request.operation;
  answer.offset = request.offset;
  return answer;
}

inline FileMessage acknowledge(const FileMessage& request, std::uint32_t number) {
  FileMessage answer = acknowledge(request);
  answer.size = sizeof(number);
  __builtin_memcpy(answer.data, &number, sizeof(number));
  return answer;
}

inline FileMessage refuse(const FileMessage& request, FileError error) {
  FileMessage answer = acknowledge(request);
  answer.operation = FileOperation::nak;
  answer.data[0] = static_cast<std::uint8_t>(error);
  answer.data[1] = error == FileError::fail_errno ? kErrnoBusy : 0;
  answer.size = error == FileError::fail_errno ? 2 : 1;
  return answer;
}

// The answer to a request that gets none at once.
constexpr FileMessage kNoAnswer{};

}  // namespace rlt
