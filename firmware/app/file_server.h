// A server of the MAVLink file transfer protocol (https://mavlink.io/en/services/ftp.html) for a
// few files that live in memory. Which operations it knows, and how it answers: docs/protocol.md,
// "Files".
#pragma once

#include "app/message_sender.h"
#include "rltools/core/crc32.h"

namespace rlt::link {

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
};

constexpr std::uint8_t kErrnoBusy = 16;
constexpr std::uint32_t kFileDataBytes = 239;

// The payload of a FILE_TRANSFER_PROTOCOL message.
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

// Files must provide, for files 0 to kFileCount - 1 of the one directory "/":
//   const char* name(file)                   without the slash
//   std::uint32_t bytes(file)
//   FileError open_to_read(file)
//   FileError open_to_write(file)
//   void read(file, offset, destination, count)         within the file
//   FileError write(file, offset, source, count)        within the file
//   void close_written(file, finished)                  finished: by the client, not broken off
template <class Files>
class FileServer {
 public:
  FileServer(Files& files, MessageSender& sender) : files_(files), sender_(sender) {}

  // Answers a request; `payload` has kFileMessageBytes. A request that comes again, because its
  // answer was lost, gets the same answer and is not carried out twice.
  void handle(const std::uint8_t* payload, Address client) {
    FileMessage request{};
    __builtin_memcpy(&request, payload, kFileMessageBytes);
    const std::uint32_t checksum = crc32(payload, kFileMessageBytes);
    const bool repeated = answered_ && checksum == answered_checksum_ &&
                          request.operation != FileOperation::burst_read_file;
    if (!repeated) {
      answer_ = {};
      answer_.sequence = static_cast<std::uint16_t>(request.sequence + 1);
      answer_.session = request.session;
      answer_.request = request.operation;
      answer_.offset = request.offset;
      client_ = client;
      carry_out(request);
      answered_ = true;
      answered_checksum_ = checksum;
    }
    if (!burst_.active || repeated) send(answer_);
  }

  // Sends the next packets of a burst; true where there was one.
  bool go_on() {
    if (!burst_.active) return false;
    for (int i = 0; i < kBurstPacketsAtOnce && burst_.active; i++) {
      send_burst_packet();
    }
    return true;
  }

  // Ends the session, as files are about to change. An upload is broken off.
  void reset() {
    if (session_.mode == Mode::write) files_.close_written(session_.file, false);
    session_.mode = Mode::closed;
    burst_.active = false;
    answered_ = false;
  }

 private:
  enum class Mode : std::uint8_t { closed, read, write };
  struct Session {
    Mode mode = Mode::closed;
    std::uint8_t id = 0;
    int file = 0;
  };
  struct Burst {
    bool active = false;
    std::uint16_t sequence = 0;
    std::uint32_t offset = 0, packet_bytes = 0;
  };
  static constexpr int kBurstPacketsAtOnce = 4;

  void carry_out(const FileMessage& request) {
    burst_.active = false;  // any request ends a burst
    FileError error = FileError::none;
    if (request.size > kFileDataBytes) {
      error = FileError::invalid_data_size;
    } else {
      error = dispatch(request);
    }
    answer_.operation = error == FileError::none ? FileOperation::ack : FileOperation::nak;
    if (error == FileError::none) return;
    answer_.data[0] = static_cast<std::uint8_t>(error);
    answer_.data[1] = error == FileError::fail_errno ? kErrnoBusy : 0;
    answer_.size = error == FileError::fail_errno ? 2 : 1;
  }

  FileError dispatch(const FileMessage& request) {
    switch (request.operation) {
      case FileOperation::none: return FileError::none;
      case FileOperation::terminate_session: return terminate(request);
      case FileOperation::reset_sessions: reset(); return FileError::none;
      case FileOperation::list_directory: return list(request);
      case FileOperation::open_file_ro: return open(request, Mode::read);
      case FileOperation::create_file:
      case FileOperation::open_file_wo: return open(request, Mode::write);
      case FileOperation::read_file: return read(request);
      case FileOperation::burst_read_file: return begin_burst(request);
      case FileOperation::write_file: return write(request);
      case FileOperation::calc_file_crc32: return checksum(request);
      default: return FileError::unknown_command;
    }
  }

  bool is_open(const FileMessage& request, Mode mode) const {
    return session_.mode == mode && session_.id == request.session;
  }

  FileError terminate(const FileMessage& request) {
    if (session_.mode == Mode::closed || session_.id != request.session) {
      return FileError::invalid_session;
    }
    const Mode mode = session_.mode;
    session_.mode = Mode::closed;
    if (mode == Mode::write) files_.close_written(session_.file, true);
    return FileError::none;
  }

  FileError open(const FileMessage& request, Mode mode) {
    if (session_.mode != Mode::closed) return FileError::no_sessions_available;
    const int file = find(request);
    if (file < 0) return FileError::file_not_found;
    const FileError error =
        mode == Mode::read ? files_.open_to_read(file) : files_.open_to_write(file);
    if (error != FileError::none) return error;
    session_ = {mode, static_cast<std::uint8_t>(session_.id + 1), file};
    answer_.session = session_.id;
    answer_number(files_.bytes(file));
    return FileError::none;
  }

  FileError read(const FileMessage& request) {
    if (!is_open(request, Mode::read)) return FileError::invalid_session;
    if (request.size == 0) return FileError::invalid_data_size;
    const std::uint32_t bytes = files_.bytes(session_.file);
    if (request.offset >= bytes) return FileError::end_of_file;
    const std::uint32_t left = bytes - request.offset;
    answer_.size = left < request.size ? static_cast<std::uint8_t>(left) : request.size;
    files_.read(session_.file, request.offset, answer_.data, answer_.size);
    return FileError::none;
  }

  FileError begin_burst(const FileMessage& request) {
    if (!is_open(request, Mode::read)) return FileError::invalid_session;
    if (request.offset >= files_.bytes(session_.file)) return FileError::end_of_file;
    burst_ = {true, answer_.sequence, request.offset,
              request.size == 0 ? kFileDataBytes : request.size};
    return FileError::none;
  }

  void send_burst_packet() {
    const std::uint32_t left = files_.bytes(session_.file) - burst_.offset;
    const std::uint32_t count = left < burst_.packet_bytes ? left : burst_.packet_bytes;
    burst_.active = count < left;
    answer_.sequence = burst_.sequence++;
    answer_.size = static_cast<std::uint8_t>(count);
    answer_.burst_complete = burst_.active ? 0 : 1;
    answer_.offset = burst_.offset;
    files_.read(session_.file, burst_.offset, answer_.data, count);
    burst_.offset += count;
    send(answer_);
  }

  FileError write(const FileMessage& request) {
    if (!is_open(request, Mode::write)) return FileError::invalid_session;
    const std::uint32_t bytes = files_.bytes(session_.file);
    if (request.size == 0 || request.offset > bytes || request.size > bytes - request.offset) {
      return FileError::invalid_data_size;
    }
    return files_.write(session_.file, request.offset, request.data, request.size);
  }

  FileError checksum(const FileMessage& request) {
    const int file = find(request);
    if (file < 0) return FileError::file_not_found;
    const FileError error = files_.open_to_read(file);
    if (error != FileError::none) return error;
    // MAVLink's CRC-32 starts at 0 and is not inverted at the end, unlike IEEE 802.3's.
    std::uint32_t sum = 0xffffffffu;
    std::uint8_t part[256];
    const std::uint32_t bytes = files_.bytes(file);
    for (std::uint32_t offset = 0; offset < bytes; offset += sizeof(part)) {
      const std::uint32_t left = bytes - offset;
      const std::uint32_t count = left < sizeof(part) ? left : sizeof(part);
      files_.read(file, offset, part, count);
      sum = crc32(part, count, sum);
    }
    answer_number(sum ^ 0xffffffffu);
    return FileError::none;
  }

  // Entries "Fname\tbytes\0" from the entry with the number `offset` on.
  FileError list(const FileMessage& request) {
    std::uint32_t length = request.size;
    if (length > 0 && request.data[length - 1] == '\0') length--;
    if (length > 1 || (length == 1 && request.data[0] != '/')) return FileError::file_not_found;
    if (request.offset >= static_cast<std::uint32_t>(Files::kFileCount)) {
      return FileError::end_of_file;
    }
    for (int file = static_cast<int>(request.offset); file < Files::kFileCount; file++) {
      add_entry(files_.name(file), files_.bytes(file));
    }
    return FileError::none;
  }

  void add_entry(const char* name, std::uint32_t bytes) {
    constexpr int kDigits = 10;
    char digits[kDigits];
    int first = kDigits;
    do {
      digits[--first] = static_cast<char>('0' + bytes % 10);
      bytes /= 10;
    } while (bytes > 0);
    std::uint32_t length = 0;
    while (name[length] != '\0') length++;
    if (answer_.size + length + 3 + kDigits > kFileDataBytes)
      return;  // the client asks for the rest
    const auto put = [this](char c) {
      answer_.data[answer_.size++] = static_cast<std::uint8_t>(c);
    };
    put('F');
    for (std::uint32_t i = 0; i < length; i++) put(name[i]);
    put('\t');
    for (int i = first; i < kDigits; i++) put(digits[i]);
    put('\0');
  }

  // The file that the request's data name, with or without slash and terminating zero; or -1.
  int find(const FileMessage& request) const {
    std::uint32_t begin = 0, end = request.size;
    if (end > 0 && request.data[end - 1] == '\0') end--;
    if (begin < end && request.data[begin] == '/') begin++;
    for (int file = 0; file < Files::kFileCount; file++) {
      const char* name = files_.name(file);
      std::uint32_t i = begin;
      while (i < end && *name != '\0' && request.data[i] == static_cast<std::uint8_t>(*name)) {
        i++;
        name++;
      }
      if (i == end && *name == '\0') return file;
    }
    return -1;
  }

  void answer_number(std::uint32_t number) {
    answer_.size = 4;
    __builtin_memcpy(answer_.data, &number, 4);
  }

  void send(const FileMessage& message) {
    mavlink_file_transfer_protocol_t content{};
    content.target_system = client_.system;
    content.target_component = client_.component;
    __builtin_memcpy(content.payload, &message, kFileMessageBytes);
    sender_.send(mavlink_msg_file_transfer_protocol_encode_status, content);
  }

  Files& files_;
  MessageSender& sender_;
  Session session_;
  Burst burst_;
  FileMessage answer_{};
  Address client_{};
  bool answered_ = false;
  std::uint32_t answered_checksum_ = 0;
};

}  // namespace rlt::link
