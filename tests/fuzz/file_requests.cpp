// Fuzz target: a board's file server (firmware/app/services/file_server.h) with the files of
// training behind it, and the node's commands and parameters between the requests. The input is a
// script: requests of two clients, one at a time or pipelined, commands, parameters, noise, time.
#include "board.h"
#include "run_checkpoint.h"

namespace {

using namespace fuzz;

constexpr int kMaxActions = 100;
constexpr std::uint32_t kSessionPatience_us = 6'000'000;

class Script {
 public:
  void run(Input& input) {
    if (input.take<std::uint8_t>() & 1) board_.train_and_pause(12);
    for (int i = 0; i < kMaxActions && !input.is_empty(); i++) act(input);
    take_answers(0);
    require_service();
  }

 private:
  // A request under way, or the next packet of a burst.
  struct Expected {
    link::Address client;
    FileMessage request;
  };

  void act(Input& input) {
    const auto action = input.take<std::uint8_t>();
    switch (action & 7) {
      case 0:
      case 1:
      case 2: put_request(input, kClients[action >> 3 & 1]); break;
      case 3: put_again(); break;
      case 4: put_command(input); break;
      case 5: put_parameter(input); break;
      case 6: board_.put(input.take_bytes(input.take<std::uint8_t>())); break;
      default: board_in_memory::counter_us += kSessionPatience_us;
    }
    const bool pipelined = action & 0x80;
    if (!pipelined) take_answers(action >> 4 & 7);
  }

  void put_request(Input& input, link::Address client) {
    constexpr std::uint8_t kOperations[] = {0, 1, 2, 3, 4, 4, 5, 5, 6, 7, 7, 11, 14, 15, 15, 200};
    const auto details = input.take<std::uint8_t>();
    FileMessage request{};
    request.sequence = sequence_ = static_cast<std::uint16_t>(sequence_ + 1 + (details >> 7));
    request.session = details & 3;
    request.operation = static_cast<FileOperation>(input.choose(kOperations));
    request.offset = take_offset(input);
    request.size = input.take<std::uint8_t>();
    switch (details >> 2 & 7) {
      case 0: set_text(request, "/checkpoint.rltc"); break;
      case 1: set_text(request, "policy.rltp"); break;
      case 2: set_text(request, "/"); break;
      case 3: set_state_bytes(request); break;
      case 4: break;
      default: {
        const Bytes data = input.take_bytes(request.size < kFileDataBytes ? request.size : 0);
        std::copy(data.begin(), data.end(), request.data);
      }
    }
    send(request, client);
  }

  std::uint32_t take_offset(Input& input) {
    const std::uint32_t offsets[] = {
        0,     next_offset_, next_offset_, 63,         64,         size_ - 1,
        size_, size_ - 239,  0x7fffffff,   0xffffffff, 0xffffff10, input.take<std::uint16_t>()};
    return input.choose(offsets);
  }

  static void set_text(FileMessage& request, const char* text) {
    request.size = static_cast<std::uint8_t>(std::strlen(text));
    std::memcpy(request.data, text, request.size);
  }

  // What an upload of the present checkpoint writes here.
  void set_state_bytes(FileMessage& request) {
    const Bytes checkpoint = run_checkpoint::checkpoint_of(board_.run);
    for (std::uint32_t i = 0; i < request.size && i < kFileDataBytes; i++) {
      const std::uint64_t position = std::uint64_t{request.offset} + i;
      if (position < checkpoint.size()) request.data[i] = checkpoint[position];
    }
  }

  void put_again() {
    if (last_.request.operation != FileOperation::none) send(last_.request, last_.client);
  }

  void send(const FileMessage& request, link::Address client) {
    last_ = {client, request};
    next_offset_ = request.offset + request.size;
    expected_.push_back(last_);
    board_.put_request(request, client);
  }

  void put_command(Input& input) {
    constexpr std::uint16_t kNumbers[] = {MAV_CMD_RLT_START,       MAV_CMD_RLT_PAUSE,
                                          MAV_CMD_RLT_PAUSE,       MAV_CMD_RLT_RESUME,
                                          MAV_CMD_REQUEST_MESSAGE, 400};
    constexpr std::uint32_t kMessages[] = {MAVLINK_MSG_ID_RLT_RESULT, MAVLINK_MSG_ID_RLT_IDENTITY,
                                           MAVLINK_MSG_ID_NAMED_VALUE_INT,
                                           MAVLINK_MSG_ID_AUTOPILOT_VERSION};
    const std::uint16_t number = input.choose(kNumbers);
    const float parameter = number == MAV_CMD_REQUEST_MESSAGE
                                ? static_cast<float>(input.choose(kMessages))
                                : input.take<float>();
    board_.put_command(number, parameter, input.take<std::uint8_t>() & 1);
  }

  void put_parameter(Input& input) {
    const auto index = input.take<std::uint8_t>();
    if (index & 0x80) {
      mavlink_param_request_read_t content{};
      content.param_index = input.take<std::int16_t>();
      return board_.put(mavlink_msg_param_request_read_encode, content);
    }
    const auto& info = TinyTd3::Hyperparameters::info(index % TinyTd3::Hyperparameters::kCount);
    mavlink_param_set_t content{};
    content.param_value = input.take<float>();
    std::strncpy(content.param_id, info.name, sizeof(content.param_id));
    content.param_type = parameter_type(info.type);
    board_.put(mavlink_msg_param_set_encode, content);
  }

  void take_answers(int turns) {
    for (const mavlink_message_t& message : board_.turns(turns)) {
      if (message.msgid != MAVLINK_MSG_ID_FILE_TRANSFER_PROTOCOL) continue;
      mavlink_file_transfer_protocol_t content;
      mavlink_msg_file_transfer_protocol_decode(&message, &content);
      FileMessage answer{};
      std::memcpy(&answer, content.payload, kFileMessageBytes);
      check_answer(answer, {content.target_system, content.target_component});
    }
    board_.check_state();
  }

  void check_answer(const FileMessage& answer, link::Address client) {
    std::size_t i = 0;
    while (i < expected_.size() && !belongs(answer, client, expected_[i])) i++;
    require(i < expected_.size(), "an answer has the number of a request of its client, plus 1");
    Expected& expected = expected_[i];
    const FileMessage request = expected.request;
    require(answer.size <= kFileDataBytes, "an answer's data fit");
    if (answer.operation == FileOperation::nak) {
      const auto error = static_cast<FileError>(answer.data[0]);
      require(error != FileError::none && error <= FileError::file_not_found,
              "an error has a number of the protocol");
      require(answer.size == (error == FileError::fail_errno ? 2 : 1), "an error's size");
    } else {
      require(answer.operation == FileOperation::ack, "an answer is ACK or NAK");
      check_data(answer, request);
    }
    const bool goes_on = answer.operation == FileOperation::ack &&
                         request.operation == FileOperation::burst_read_file &&
                         answer.burst_complete == 0;
    if (goes_on) {
      expected.request.sequence++;
      expected.request.offset += answer.size;
    } else {
      expected_.erase(expected_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  static bool belongs(const FileMessage& answer, link::Address client, const Expected& expected) {
    const FileMessage& request = expected.request;
    return client == expected.client && answer.request == request.operation &&
           answer.sequence == static_cast<std::uint16_t>(request.sequence + 1) &&
           answer.session == request.session && answer.offset == request.offset;
  }

  void check_data(const FileMessage& answer, const FileMessage& request) {
    std::uint32_t number;
    std::memcpy(&number, answer.data, sizeof(number));
    switch (request.operation) {
      case FileOperation::open_file_ro:
      case FileOperation::open_file_wo:
      case FileOperation::create_file:
        require(answer.size == 4 && (number == size_ || number == kPolicyImageBytes<TinyTd3>),
                "a file that is opened has its size");
        return;
      case FileOperation::read_file:
      case FileOperation::burst_read_file:
        require(answer.size > 0 && (request.size == 0 || answer.size <= request.size),
                "no more is read than was asked for");
        require(answer.offset < largest_ && answer.size <= largest_ - answer.offset,
                "nothing is read beyond a file's end");
        return;
      case FileOperation::write_file:
        require(request.offset < size_ && request.size <= size_ - request.offset,
                "nothing is written beyond a file's end");
        require(answer.size == 0, "a written part is acknowledged without data");
        return;
      case FileOperation::list_directory:
        require(answer.size > 0 && answer.data[0] == 'F' && answer.data[answer.size - 1] == 0,
                "a directory's entries are whole");
        return;
      case FileOperation::calc_file_crc32: require(answer.size == 4, "a checksum's size"); return;
      default: require(answer.size == 0, "other acknowledgements have no data");
    }
  }

  // Whatever came before, a client that waits a while is served. The noise may have left half a
  // frame, which a quiet line ends.
  void require_service() {
    board_in_memory::counter_us += kSessionPatience_us;
    board_.put_command(MAV_CMD_RLT_PAUSE);
    take_answers(200);
    FileMessage request{};
    request.sequence = 1000;
    request.operation = FileOperation::list_directory;
    expected_ = {{kClients[1], request}};
    board_.put_request(request, kClients[1]);
    take_answers(10);
    require(expected_.empty(), "a client is served in the end");
  }

  Board board_;
  const std::uint32_t size_ = kCheckpointHeaderBytes + state_bytes(board_.run.training);
  const std::uint32_t largest_ = std::max(size_, kPolicyImageBytes<TinyTd3>);
  std::vector<Expected> expected_;
  Expected last_{};
  std::uint16_t sequence_ = 0xfff0;
  std::uint32_t next_offset_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  Input input(bytes, count);
  Script{}.run(input);
  return 0;
}
