// A server of the MAVLink file transfer protocol (https://mavlink.io/en/services/ftp.html) for a
// few files that live in memory. Which operations it knows, and how it answers: docs/protocol.md,
// "Files".
#pragma once

#include "app/link/board_time.h"
#include "app/link/service.h"
#include "app/services/file_message.h"
#include "rltools/core/crc32.h"

namespace rlt {

// Files must provide, for files 0 to kFileCount - 1 of the one directory "/":
//   const char* name(file)                   without the slash
//   std::uint32_t size(file)                 in bytes
//   FileError may_read(file) const
//   FileError may_write(file) const
//   FileError open_to_write(file)            where it may be
//   void read(file, offset, destination, count)         within the file
//   FileError write(file, offset, source, count)        within the file
//   void close_written(file, finished)                  finished: by the client, not broken off
template <class Files>
class FileServer : public link::Service {
 public:
  static constexpr auto kAccepted =
      link::accept(RLT_ACCEPTED_MESSAGE(FILE_TRANSFER_PROTOCOL, file_transfer_protocol));
  static constexpr std::uint64_t kCapabilities = MAV_PROTOCOL_CAPABILITY_FTP;

  FileServer(Files& files, link::MessageSender& sender) : files_(files), sender_(sender) {}

  void receive(const mavlink_message_t& message) {
    if (message.msgid != MAVLINK_MSG_ID_FILE_TRANSFER_PROTOCOL) return;
    mavlink_file_transfer_protocol_t content;
    mavlink_msg_file_transfer_protocol_decode(&message, &content);
    FileMessage request{};
    __builtin_memcpy(&request, content.payload, kFileMessageBytes);
    const link::Address client = link::sender_of(message);
    burst_.active = false;  // any request ends a burst
    if (is_repeated(request, client)) return send(answer_again(request), client);
    send(carry_out(request, client), client);
  }

  // Send the next packets of a burst.
  bool poll() {
    if (!burst_.active) return false;
    for (int i = 0; i < kBurstPacketsAPoll && burst_.active; i++) send_burst_packet();
    return true;
  }

  // End the session, as the files are about to change. An upload is broken off.
  void close() { end_session(false); }

 private:
  enum class Mode : std::uint8_t { closed, read, write };
  struct Session {
    Mode mode = Mode::closed;
    std::uint8_t id = 0;  // the client's choice
    link::Address client{};
    int file = 0;
    std::uint64_t opened_at = 0;
    std::uint64_t used_at = 0;
  };
  struct Burst {
    bool active = false;
    FileMessage request{};
    std::uint32_t packets = 0;  // sent
  };
  // A request that was carried out.
  struct Done {
    bool known = false;
    link::Address client{};
    std::uint8_t bytes[kFileMessageBytes];

    void remember(const FileMessage& request, link::Address sender) {
      known = true;
      client = sender;
      __builtin_memcpy(bytes, &request, kFileMessageBytes);
    }
    bool is_same(const FileMessage& request, link::Address sender) const {
      return known && client == sender && __builtin_memcmp(bytes, &request, kFileMessageBytes) == 0;
    }
  };
  static constexpr int kBurstPacketsAPoll = 4;
  // A burst is no longer than clients expect; they then ask for another.
  static constexpr std::uint32_t kBurstPackets = 4096;
  static constexpr std::uint32_t kSessionPatience_s = 5;
  // By which a link may delay a copy of a request.
  static constexpr std::uint32_t kMaxDelay_s = 1;

  // -- requests that come twice -------------------------------------------------------------------

  // Return whether these are the same bytes from the same client: its answer was lost, or the link
  // has delayed a copy. A file must not be opened or closed again, whatever others have asked in
  // between; to do anything else again changes nothing. Once a session is in use, the request to
  // open it comes from a program that was started again, unless it comes soon: programs number
  // their requests from the same one.
  bool is_repeated(const FileMessage& request, link::Address client) const {
    if (closed_.is_same(request, client)) return true;
    if (!opened_.is_same(request, client)) return false;
    return session_.used_at == session_.opened_at ||
           board::counter() - session_.opened_at < kMaxDelay_s * link::counts_a_second();
  }

  FileMessage answer_again(const FileMessage& request) {
    if (request.operation == FileOperation::terminate_session) return acknowledge(request);
    return acknowledge(request, files_.size(session_.file));
  }

  // -- operations ---------------------------------------------------------------------------------

  FileMessage carry_out(const FileMessage& request, link::Address client) {
    if (request.size > kFileDataBytes) return refuse(request, FileError::invalid_data_size);
    switch (request.operation) {
      case FileOperation::none: return acknowledge(request);
      case FileOperation::terminate_session: return terminate(request, client);
      case FileOperation::reset_sessions: return reset(request, client);
      case FileOperation::list_directory: return list(request);
      case FileOperation::open_file_ro: return open(request, client, Mode::read);
      case FileOperation::create_file:
      case FileOperation::open_file_wo: return open(request, client, Mode::write);
      case FileOperation::read_file: return read(request, client);
      case FileOperation::burst_read_file: return begin_burst(request, client);
      case FileOperation::write_file: return write(request, client);
      case FileOperation::calc_file_crc32: return checksum(request);
      default: return refuse(request, FileError::unknown_command);
    }
  }

  bool is_open(const FileMessage& request, link::Address client) const {
    return session_.mode != Mode::closed && session_.id == request.session &&
           session_.client == client;
  }
  // Open in this mode; then it counts as used.
  bool use(const FileMessage& request, link::Address client, Mode mode) {
    if (!is_open(request, client) || session_.mode != mode) return false;
    session_.used_at = board::counter();
    return true;
  }

  FileMessage terminate(const FileMessage& request, link::Address client) {
    if (!is_open(request, client)) return refuse(request, FileError::invalid_session);
    closed_.remember(request, client);
    end_session(true);
    return acknowledge(request);
  }

  // End the session. `finished`: an upload is whole, by its client's word.
  void end_session(bool finished) {
    const Mode mode = session_.mode;
    session_.mode = Mode::closed;
    burst_.active = false;
    opened_.known = false;
    if (mode == Mode::write) files_.close_written(session_.file, finished);
  }

  // Reset a client's own session; no other one.
  FileMessage reset(const FileMessage& request, link::Address client) {
    if (session_.client == client) close();
    return acknowledge(request);
  }

  // Open a session. It gets the number that the request has: clients expect it in all answers. A
  // session that is open already gives way to its own client, and to any client after a while of
  // silence.
  FileMessage open(const FileMessage& request, link::Address client, Mode mode) {
    const std::uint64_t now = board::counter();
    if (session_.mode != Mode::closed && !is_open(request, client) &&
        now - session_.used_at < kSessionPatience_s * link::counts_a_second()) {
      return refuse(request, FileError::no_sessions_available);
    }
    const int file = find(request);
    if (file < 0) return refuse(request, FileError::file_not_found);
    // A request that is refused leaves the session that is open.
    const FileError refusal = mode == Mode::read ? files_.may_read(file) : files_.may_write(file);
    if (refusal != FileError::none) return refuse(request, refusal);
    close();
    const FileError error = mode == Mode::read ? FileError::none : files_.open_to_write(file);
    if (error != FileError::none) return refuse(request, error);
    session_ = {mode, request.session, client, file, now, now};
    opened_.remember(request, client);
    if (closed_.client == client) closed_.known = false;
    return acknowledge(request, files_.size(file));
  }

  FileMessage read(const FileMessage& request, link::Address client) {
    if (!use(request, client, Mode::read)) return refuse(request, FileError::invalid_session);
    if (request.size == 0) return refuse(request, FileError::invalid_data_size);
    const std::uint32_t size = files_.size(session_.file);
    if (request.offset >= size) return refuse(request, FileError::end_of_file);
    return part_of_file(request, request.size);
  }

  // Return an acknowledgement with at most `max_bytes` of the open file, from the request's offset
  // on.
  FileMessage part_of_file(const FileMessage& request, std::uint32_t max_bytes) {
    const std::uint32_t left = files_.size(session_.file) - request.offset;
    FileMessage answer = acknowledge(request);
    answer.size = static_cast<std::uint8_t>(left < max_bytes ? left : max_bytes);
    files_.read(session_.file, request.offset, answer.data, answer.size);
    return answer;
  }

  // Begin a burst. Its answers are the packets that poll() sends.
  FileMessage begin_burst(const FileMessage& request, link::Address client) {
    if (!use(request, client, Mode::read)) return refuse(request, FileError::invalid_session);
    if (request.offset >= files_.size(session_.file)) {
      return refuse(request, FileError::end_of_file);
    }
    burst_ = {true, request, 0};
    return kNoAnswer;
  }

  void send_burst_packet() {
    FileMessage& next = burst_.request;
    FileMessage packet = part_of_file(next, next.size == 0 ? kFileDataBytes : next.size);
    next.offset += packet.size;
    next.sequence++;
    burst_.packets++;
    burst_.active = next.offset < files_.size(session_.file) && burst_.packets < kBurstPackets;
    packet.burst_complete = burst_.active ? 0 : 1;
    session_.used_at = board::counter();
    send(packet, session_.client);
  }

  FileMessage write(const FileMessage& request, link::Address client) {
    if (!use(request, client, Mode::write)) return refuse(request, FileError::invalid_session);
    const std::uint32_t size = files_.size(session_.file);
    if (request.size == 0 || request.offset > size || request.size > size - request.offset) {
      return refuse(request, FileError::invalid_data_size);
    }
    const FileError error = files_.write(session_.file, request.offset, request.data, request.size);
    if (error == FileError::unanswered) return kNoAnswer;
    return error == FileError::none ? acknowledge(request) : refuse(request, error);
  }

  FileMessage checksum(const FileMessage& request) {
    const int file = find(request);
    if (file < 0) return refuse(request, FileError::file_not_found);
    const FileError refusal = files_.may_read(file);
    if (refusal != FileError::none) return refuse(request, refusal);
    // MAVLink's CRC-32 starts at 0 and is not inverted at the end, unlike IEEE 802.3's.
    std::uint32_t sum = 0xffffffffu;
    std::uint8_t part[256];
    const std::uint32_t size = files_.size(file);
    for (std::uint32_t offset = 0; offset < size; offset += sizeof(part)) {
      const std::uint32_t left = size - offset;
      const std::uint32_t count = left < sizeof(part) ? left : sizeof(part);
      files_.read(file, offset, part, count);
      sum = crc32(part, count, sum);
    }
    return acknowledge(request, sum ^ 0xffffffffu);
  }

  // Return entries "Fname\tsize\0" from the entry with the number `offset` on.
  FileMessage list(const FileMessage& request) {
    std::uint32_t length = request.size;
    if (length > 0 && request.data[length - 1] == '\0') length--;
    if (length > 1 || (length == 1 && request.data[0] != '/')) {
      return refuse(request, FileError::file_not_found);
    }
    if (request.offset >= static_cast<std::uint32_t>(Files::kFileCount)) {
      return refuse(request, FileError::end_of_file);
    }
    FileMessage answer = acknowledge(request);
    for (int file = static_cast<int>(request.offset); file < Files::kFileCount; file++) {
      add_entry(answer, files_.name(file), files_.size(file));
    }
    return answer;
  }

  static void add_entry(FileMessage& answer, const char* name, std::uint32_t size) {
    constexpr int kDigits = 10;
    char digits[kDigits];
    int first = kDigits;
    do {
      digits[--first] = static_cast<char>('0' + size % 10);
      size /= 10;
    } while (size > 0);
    std::uint32_t length = 0;
    while (name[length] != '\0') length++;
    if (answer.size + length + 3 + kDigits > kFileDataBytes)
      return;  // the client asks for the rest
    const auto put = [&answer](char c) {
      answer.data[answer.size++] = static_cast<std::uint8_t>(c);
    };
    put('F');
    for (std::uint32_t i = 0; i < length; i++) put(name[i]);
    put('\t');
    for (int i = first; i < kDigits; i++) put(digits[i]);
    put('\0');
  }

  // Return the file that the request's data name, with or without slash and terminating zero; or
  // -1.
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

  void send(const FileMessage& message, link::Address client) {
    if (message.operation == FileOperation::none) return;
    mavlink_file_transfer_protocol_t content{};
    content.target_system = client.system;
    content.target_component = client.component;
    __builtin_memcpy(content.payload, &message, kFileMessageBytes);
    sender_.send(mavlink_msg_file_transfer_protocol_encode_status, content);
  }

  Files& files_;
  link::MessageSender& sender_;
  Session session_;
  Burst burst_;
  Done opened_;  // the session, while it is open
  Done closed_;  // the session before, until its client opens another
};

}  // namespace rlt
