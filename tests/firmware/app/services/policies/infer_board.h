// The infer application on a board that is memory, and a host. Its observation takes three
// messages. Included by one source file of a program.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "app/infer/application.h"
#include "board_in_memory.h"
#include "host_side.h"
#include "rltools/devices/generic.h"
#include "rltools/policy/image.h"

namespace infer_board {

using namespace rlt;
using namespace board_in_memory;

constexpr link::Address kOther{254, 1};

constexpr int kObservationDim = 100;
struct Observations {
  Channel channels[kObservationDim];
};
constexpr Observations make_observations() {
  Observations all{};
  for (Channel& channel : all.channels) channel = {"x", "m", -1.0f, 1.0f};
  return all;
}
inline constexpr Observations kAllObservations = make_observations();

struct Contract {
  static constexpr const char* kContractName = "many";
  static constexpr std::uint32_t kStepInterval_us = 2000;
  static constexpr int kObservationDim = infer_board::kObservationDim;
  static constexpr int kActionDim = 2;
  static constexpr float kSafeAction[kActionDim] = {0.5f, 0.25f};
  static constexpr const Channel (&kObservations)[kObservationDim] = kAllObservations.channels;
  static constexpr Channel kActions[kActionDim] = {{"left", "N", -1.0f, 1.0f},
                                                   {"right", "N", 0.0f, 1.0f}};
};

using Net = Mlp<float, Dimensions<Contract::kObservationDim, 5, 4, Contract::kActionDim>,
                Activation::relu, Activation::tanh>;
using Linear = Mlp<float, Dimensions<Contract::kObservationDim, Contract::kActionDim>,
                   Activation::relu, Activation::identity>;

inline constexpr std::uint8_t kStateSha256[32] = {1, 2, 3};
inline constexpr PolicyOrigin kOrigin{"pushed", "somewhere", 400, 7, 9, kStateSha256};

template <class Network>
Bytes image_with(const Network& network) {
  Bytes image(policy_image_bytes<Network>());
  write_policy_image(Generic{}, network, policy_contract<Contract>(), {nullptr, nullptr}, kOrigin,
                     image.data());
  return image;
}

inline Bytes image_of(std::uint32_t seed) {
  static Net network;
  initialize_kaiming(Generic{}, network, seed, 0);
  return image_with(network);
}

// Whose first output is infinite where the first two elements of the observation are 1.
inline Bytes overflowing_image() {
  static Linear network;
  for (float& value : network.values) value = 0.0f;
  network.weights(0)[0] = network.weights(0)[Contract::kActionDim] = 2e38f;
  return image_with(network);
}

constexpr std::uint32_t kSlotBytes = 16384;
struct Storage : RamStorage<2 * 256 + 2 * kSlotBytes> {
  bool fails = false;  // from now on, as a full disk or a worn flash does

  bool erase(std::uint32_t offset) { return !fails && RamStorage::erase(offset); }
  bool program(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    return !fails && RamStorage::program(offset, source, count);
  }
};

class Board : public HostSide {
 public:
  explicit Board(Storage& storage)
      : application_{Generic{}, storage, {read, write}, kSelf, {"scripted", "Generic"}} {
    to_board.clear();
    from_board.clear();
  }

  void turns(int count) {
    for (int i = 0; i < count; i++) application_.poll();
    parse();
  }

  template <class Content>
  void send(Encode<Content> encode, const Content& content, int count = 1) {
    received.clear();
    put(encode, addressed_to(kSelf, content));
    while (!to_board.empty()) turns(1);
    turns(count);
  }

  // The acknowledgement's result; -1 without one.
  int command(std::uint16_t number, float first = 0.0f, float second = 0.0f,
              std::uint8_t confirmation = 0, float third = 0.0f) {
    mavlink_command_long_t content{};
    content.command = number;
    content.param1 = first;
    content.param2 = second;
    content.param3 = third;
    content.confirmation = confirmation;
    send(mavlink_msg_command_long_encode, content);
    const auto answers = all(MAVLINK_MSG_ID_COMMAND_ACK, mavlink_msg_command_ack_decode);
    return answers.empty() ? -1 : answers[0].result;
  }
  bool accepts(std::uint16_t number, float first = 0.0f, float second = 0.0f,
               std::uint8_t confirmation = 0, float third = 0.0f) {
    const int result = command(number, first, second, confirmation, third);
    CHECK((result == MAV_RESULT_ACCEPTED || result == MAV_RESULT_DENIED));
    return result == MAV_RESULT_ACCEPTED;
  }

  mavlink_rlt_policy_slot_t slot(int number) {
    CHECK(accepts(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_RLT_POLICY_SLOT));
    const auto slots = all(MAVLINK_MSG_ID_RLT_POLICY_SLOT, mavlink_msg_rlt_policy_slot_decode);
    REQUIRE(slots.size() == 2);
    CHECK(slots[0].slot == 0);
    CHECK(slots[1].slot == 1);
    return slots[static_cast<std::size_t>(number)];
  }
  std::vector<int> uses() { return {slot(0).use, slot(1).use}; }

  mavlink_rlt_executor_t executor() {
    CHECK(accepts(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_RLT_EXECUTOR));
    const auto all_counts = all(MAVLINK_MSG_ID_RLT_EXECUTOR, mavlink_msg_rlt_executor_decode);
    REQUIRE(all_counts.size() == 1);
    return all_counts[0];
  }

  // -- files --------------------------------------------------------------------------------------

  FileMessage request(FileOperation operation, std::uint32_t offset = 0, const Bytes& data = {},
                      int size = -1) {
    FileMessage message = file_request(sequence_ += 2, 5, operation, offset, data);
    if (size >= 0) message.size = static_cast<std::uint8_t>(size);
    send(mavlink_msg_file_transfer_protocol_encode, content_of(message));
    FileMessage answer{};
    for (const auto& reply :
         all(MAVLINK_MSG_ID_FILE_TRANSFER_PROTOCOL, mavlink_msg_file_transfer_protocol_decode)) {
      std::memcpy(&answer, reply.payload, kFileMessageBytes);
    }
    return answer;
  }
  FileMessage open(FileOperation operation, const char* path) {
    return request(operation, 0, bytes_of(path));
  }
  FileError error_of(const FileMessage& answer) const {
    return answer.operation == FileOperation::ack ? FileError::none
                                                  : static_cast<FileError>(answer.data[0]);
  }

  // Without closing the file; the first error.
  FileError write_candidate(const Bytes& image) {
    const FileError opened = error_of(open(FileOperation::create_file, "/candidate.rltp"));
    if (opened != FileError::none) return opened;
    for (std::size_t offset = 0; offset < image.size(); offset += 239) {
      const std::size_t end = offset + 239 < image.size() ? offset + 239 : image.size();
      const FileError error =
          error_of(request(FileOperation::write_file, static_cast<std::uint32_t>(offset),
                           Bytes(&image[offset], &image[0] + end)));
      if (error != FileError::none) return error;
    }
    return FileError::none;
  }
  FileError stage(const Bytes& image) {
    const FileError error = write_candidate(image);
    return error != FileError::none ? error : error_of(request(FileOperation::terminate_session));
  }
  // Empty where it cannot be opened.
  Bytes download(const char* path) {
    const FileMessage opened = open(FileOperation::open_file_ro, path);
    Bytes content;
    if (opened.operation != FileOperation::ack) return content;
    std::uint32_t bytes;
    std::memcpy(&bytes, opened.data, sizeof(bytes));
    while (content.size() < bytes) {
      const FileMessage part =
          request(FileOperation::read_file, static_cast<std::uint32_t>(content.size()), {}, 239);
      REQUIRE(part.operation == FileOperation::ack);
      content.insert(content.end(), part.data, part.data + part.size);
    }
    CHECK(error_of(request(FileOperation::terminate_session)) == FileError::none);
    return content;
  }

  // A policy to its trial, and all the way to the active one.
  void begin_trial(const Bytes& image, float trial = 0.0f) {
    REQUIRE(stage(image) == FileError::none);
    REQUIRE(accepts(MAV_CMD_RLT_TRY, 10.0f, number_of(image), 0, trial));
  }
  void activate(const Bytes& image) {
    begin_trial(image);
    REQUIRE(accepts(MAV_CMD_RLT_CONFIRM, 0.0f, number_of(image)));
  }

  // -- observations -------------------------------------------------------------------------------

  static constexpr int kPart = 48;

  // One part; `received` has what it is answered with.
  void observe_part(const std::vector<float>& values, int first, std::uint32_t tick, int mode,
                    std::uint32_t now_us) {
    mavlink_rlt_observation_t part{};
    part.tick = tick;
    part.now_us = part.taken_us = now_us;
    part.first = static_cast<std::uint16_t>(first);
    part.dimension = static_cast<std::uint16_t>(values.size());
    part.mode = static_cast<std::uint16_t>(mode);
    for (int i = 0; i < kPart && first + i < static_cast<int>(values.size()); i++) {
      part.values[i] = values[static_cast<std::size_t>(first + i)];
    }
    send(mavlink_msg_rlt_observation_encode, part);
  }
  std::vector<mavlink_rlt_action_t> actions() const {
    return all(MAVLINK_MSG_ID_RLT_ACTION, mavlink_msg_rlt_action_decode);
  }
  mavlink_rlt_action_t observe(const std::vector<float>& values, int mode = RLT_OBSERVE_FORWARD,
                               std::uint32_t now_us = 0) {
    const std::uint32_t tick = ++tick_;
    for (int first = 0; first < static_cast<int>(values.size()); first += kPart) {
      observe_part(values, first, tick, mode, now_us);
    }
    const auto answers = actions();
    REQUIRE(answers.size() == 1);
    CHECK(answers[0].tick == tick);
    CHECK(answers[0].action_dim == Contract::kActionDim);
    return answers[0];
  }

 private:
  InferApplication<Contract, Generic, Storage, 512> application_;
  std::uint16_t sequence_ = 100;
  std::uint32_t tick_ = 0;
};

// A board that has just been switched on for the first time, and two policies for it.
struct Fresh {
  Storage storage{};
  Board board{storage};
  const Bytes first = image_of(1), second = image_of(2);
  const float one = number_of(first), two = number_of(second);
};

}  // namespace infer_board
