// A host that pushes a policy over a lossy_world.h, with MAVLink's own generated code: what
// docs/protocol.md, "Policies" has a host do, with as many repetitions as the Python client's.
#pragma once

#include <optional>

#include "lossy_world.h"

namespace lossy_world {

class Client {
 public:
  // Why a push was given up: by the step that was not answered, or was refused.
  struct GivenUp {
    std::string why;
  };

  Client(World& world, std::uint64_t seed) : world_(world), chance_(~seed) {
    runner_.accept(Generic{}, world.second.data(), static_cast<std::uint32_t>(world.second.size()));
  }

  // Empty where the policy was confirmed, or was active already.
  std::string push() {
    try {
      const Slots before = slots();
      if (before.of(RLT_SLOT_USE_ACTIVE, sha256_)) {  // if the answer is no late one
        verify_all();
        return "";
      }
      if (before.has(RLT_SLOT_USE_TRIAL)) return "another trial";
      upload();
      if (!slots().of(RLT_SLOT_USE_STAGED, sha256_)) return "refused";
      try_and_confirm();
      return "";
    } catch (const GivenUp& reason) {
      return reason.why;
    }
  }

 private:
  using Message = mavlink_message_t;
  static constexpr std::uint64_t kAnswer_us = 1'000'000;
  static constexpr int kAttempts = 15, kFileAttempts = 8;
  static constexpr std::uint32_t kPart = 239;

  struct Slots {
    mavlink_rlt_policy_slot_t slots[2];
    bool has(int use) const { return slots[0].use == use || slots[1].use == use; }
    bool of(int use, const Digest& sha256) const {
      for (const auto& slot : slots) {
        if (slot.use == use && std::memcmp(slot.sha256, sha256.bytes, 32) == 0) return true;
      }
      return false;
    }
  };

  // -- messages -----------------------------------------------------------------------------------

  template <class Content>
  void send(Encode<Content> encode, const Content& content) {
    const Bytes frame = frame_of(kHost, encode, addressed_to(kBoard, content));
    if (!world_.write(frame.data(), frame.size())) throw GivenUp{"the port is gone"};
  }

  // The first message that is the answer; nothing after the time.
  template <class Answer>
  auto wait(Answer&& answer) -> decltype(answer(std::declval<const Message&>())) {
    const std::uint64_t end = world_.now_us() + kAnswer_us;
    for (;;) {
      while (!received_.empty()) {
        const Message message = received_.front();
        received_.pop_front();
        if (auto found = answer(message)) return found;
      }
      if (world_.is_unplugged()) throw GivenUp{"the port is gone"};
      if (world_.now_us() >= end) return {};
      for (const std::uint8_t byte : world_.read(end - world_.now_us())) {
        Message message;
        if (mavlink_frame_char_buffer(&partial_, &status_, byte, &message, nullptr) ==
            MAVLINK_FRAMING_OK) {
          received_.push_back(message);
        }
      }
    }
  }

  void command(int number, float first, float second, std::uint8_t confirmation,
               float trial = 0.0f) {
    mavlink_command_long_t content{};
    content.command = static_cast<std::uint16_t>(number);
    content.param1 = first;
    content.param2 = second;
    content.param3 = trial;
    content.confirmation = confirmation;
    send(mavlink_msg_command_long_encode, content);
  }

  // Whether the board accepts it.
  bool obeyed(int number, float first, const char* what) {
    for (std::uint8_t sent = 0; sent < kAttempts; sent++) {
      command(number, first, number_of(world_.second), sent, trial_);
      const auto result = wait([&](const Message& message) -> std::optional<int> {
        mavlink_command_ack_t content;
        if (message.msgid != MAVLINK_MSG_ID_COMMAND_ACK) return {};
        mavlink_msg_command_ack_decode(&message, &content);
        if (content.command != number || content.target_system != kHost.system) return {};
        return content.result;
      });
      if (result) return *result == MAV_RESULT_ACCEPTED;
    }
    throw GivenUp{std::string("no answer to ") + what};
  }

  Slots slots() {
    for (int i = 0; i < kAttempts; i++) {
      received_.clear();
      int found = 0;
      Slots slots{};
      command(MAV_CMD_REQUEST_MESSAGE, MAVLINK_MSG_ID_RLT_POLICY_SLOT, 0, 0);
      const auto all = wait([&](const Message& message) -> std::optional<Slots> {
        if (message.msgid != MAVLINK_MSG_ID_RLT_POLICY_SLOT) return {};
        mavlink_rlt_policy_slot_t content;
        mavlink_msg_rlt_policy_slot_decode(&message, &content);
        slots.slots[content.slot & 1] = content;
        found |= 1 << (content.slot & 1);
        if (found != 3) return {};
        return slots;
      });
      if (all) return *all;
    }
    throw GivenUp{"no answer for the slots"};
  }

  // -- the upload ---------------------------------------------------------------------------------

  FileMessage ask(FileOperation operation, std::uint32_t offset, const Bytes& data) {
    const FileMessage request = file_request(sequence_ += 2, session_, operation, offset, data);
    for (int i = 0; i <= kFileAttempts; i++) {
      send(mavlink_msg_file_transfer_protocol_encode, content_of(request));
      const auto answer = wait([&](const Message& message) -> std::optional<FileMessage> {
        if (message.msgid != MAVLINK_MSG_ID_FILE_TRANSFER_PROTOCOL) return {};
        mavlink_file_transfer_protocol_t reply;
        mavlink_msg_file_transfer_protocol_decode(&message, &reply);
        if (reply.target_system != kHost.system) return {};
        FileMessage found{};
        std::memcpy(&found, reply.payload, kFileMessageBytes);
        const auto expected = static_cast<std::uint16_t>(request.sequence + 1);
        if (found.sequence != expected || found.request != operation) return {};
        return found;
      });
      if (answer) return *answer;
    }
    throw GivenUp{"no answer for the file"};
  }
  void must(const FileMessage& answer) {
    if (answer.operation != FileOperation::ack) throw GivenUp{"the file is refused"};
  }
  void upload() {
    session_ = static_cast<std::uint8_t>(chance_.next());
    const Bytes name = bytes_of("/candidate.rltp");
    FileMessage opened = ask(FileOperation::create_file, 0, name);
    for (int i = 0; i < kAttempts && opened.operation != FileOperation::ack; i++) {
      ask(FileOperation::reset_sessions, 0, {});
      wait([](const Message&) -> std::optional<int> { return {}; });
      opened = ask(FileOperation::create_file, 0, name);
    }
    must(opened);
    const Bytes& image = world_.second;
    for (std::uint32_t offset = 0; offset < image.size(); offset += kPart) {
      const auto end = std::min<std::size_t>(offset + kPart, image.size());
      must(ask(FileOperation::write_file, offset, Bytes(&image[offset], image.data() + end)));
    }
    must(ask(FileOperation::terminate_session, 0, {}));
  }

  // -- the trial ----------------------------------------------------------------------------------

  void try_and_confirm() {
    trial_ = static_cast<float>(1 + chance_.below((1 << 24) - 1));
    try {
      obeyed(MAV_CMD_RLT_TRY, 10.0f, "try");
      if (!slots().of(RLT_SLOT_USE_TRIAL, sha256_)) throw GivenUp{"no trial"};
      verify_all();
      obeyed(MAV_CMD_RLT_CONFIRM, 0.0f, "confirm");
      const Slots after = slots();
      if (after.has(RLT_SLOT_USE_TRIAL) || !after.of(RLT_SLOT_USE_ACTIVE, sha256_)) {
        throw GivenUp{"not confirmed"};
      }
    } catch (const GivenUp&) {
      take_back();
      throw;
    }
  }
  void take_back() {
    try {
      const Slots now = slots();
      if (now.of(RLT_SLOT_USE_TRIAL, sha256_) ||
          (!now.has(RLT_SLOT_USE_TRIAL) && now.of(RLT_SLOT_USE_ACTIVE, sha256_))) {
        obeyed(MAV_CMD_RLT_ROLL_BACK, 0.0f, "roll back");
      }
    } catch (const GivenUp&) {  // the board drops it by itself
    }
  }

  void verify_all() {
    for (std::uint32_t i = 0; i < runner_.view()->header->example_count; i++) verify(i);
  }
  void verify(std::uint32_t example) {
    const PolicyView& view = *runner_.view();
    const AliasingFloat* values = view.examples + example * example_floats(*view.header);
    mavlink_rlt_observation_t observation{};
    observation.tick = ++tick_;
    observation.dimension = Contract::kObservationDim;
    observation.mode = RLT_OBSERVE_FORWARD;
    for (int i = 0; i < Contract::kObservationDim; i++) observation.values[i] = values[i];
    float expected[Contract::kActionDim];
    runner_.forward(Generic{}, static_cast<const float*>(observation.values), expected);
    for (int i = 0; i < kAttempts; i++) {
      send(mavlink_msg_rlt_observation_encode, observation);
      const auto action = wait([&](const Message& message) -> std::optional<float> {
        if (message.msgid != MAVLINK_MSG_ID_RLT_ACTION) return {};
        mavlink_rlt_action_t content;
        mavlink_msg_rlt_action_decode(&message, &content);
        if (content.tick != tick_) return {};
        return content.action[0];
      });
      if (action && *action == expected[0]) return;
      if (action) throw GivenUp{"another policy acts"};
    }
    throw GivenUp{"no answer to an observation"};
  }

  World& world_;
  Chance chance_;
  PolicyRunner<64> runner_{policy_contract<Contract>()};
  const Digest sha256_ = sha256_of(world_.second);
  std::deque<Message> received_;
  Message partial_{};
  mavlink_status_t status_{};
  std::uint16_t sequence_ = static_cast<std::uint16_t>(chance_.next());
  std::uint8_t session_ = 0;
  std::uint32_t tick_ = 0;
  float trial_ = 0.0f;  // number of the last one
};

}  // namespace lossy_world
