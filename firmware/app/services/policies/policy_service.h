// Policies as a service: slots, trial, confirmation and the way back, and observations that the
// host sends. docs/protocol.md, "Policies".
#pragma once

#include "app/link/board_time.h"
#include "app/services/file_server.h"
#include "app/services/policies/measurement.h"
#include "app/services/policies/policy_files.h"
#include "rltools/core/sha256.h"
#include "rltools/policy/deployment.h"

namespace rlt {

// Return the time of slots and executor, microseconds; of an emulated processor at a nominal rate.
inline std::uint32_t policy_time_us() {
  return static_cast<std::uint32_t>(board::counter() / (link::counts_a_second() / 1'000'000u));
}

// `Contract` has what policy_contract() reads, and kContractName.
template <class Contract, class Device, class Storage, std::size_t ScratchFloats>
class PolicyService : public link::Service {
  using Deployment = PolicyDeployment<Device, Storage, Contract::kActionDim, ScratchFloats>;
  using Measurements = Measurement<Deployment>;

 public:
  using Files = PolicyFiles<PolicyService>;
  static constexpr auto kAccepted =
      link::accept(RLT_ACCEPTED_MESSAGE(RLT_OBSERVATION, rlt_observation));

  PolicyService(Device device, Storage& storage, link::MessageSender& sender,
                const ExecutorLimits& limits = {})
      : device_(device),
        sender_(sender),
        deployment_(device, storage, policy_contract<Contract>(), limits),
        files_(*this),
        server_(files_, sender),
        measurement_(policy_contract<Contract>()) {
    static_assert(Contract::kActionDim <= kMaxActions,
                  "RLT_ACTION carries at most 24 elements of an action");
    deployment_.begin();
  }
  PolicyService(const PolicyService&) = delete;
  PolicyService& operator=(const PolicyService&) = delete;

  FileServer<Files>& file_server() { return server_; }

  // -- what a node asks ---------------------------------------------------------------------------

  void receive(const mavlink_message_t& message) {
    if (message.msgid == MAVLINK_MSG_ID_RLT_OBSERVATION) observe(message);
  }

  bool obey(const link::Command& command) {
    switch (command.number()) {
      case MAV_CMD_RLT_TRY: try_candidate(command); return true;
      case MAV_CMD_RLT_CONFIRM: confirm(command); return true;
      case MAV_CMD_RLT_ROLL_BACK: roll_back(command); return true;
      case MAV_CMD_RLT_MEASURE: measure(command); return true;
      case MAV_CMD_COMPONENT_ARM_DISARM: arm(command); return true;
      default: return answer(command);
    }
  }

  // End a trial whose time is over; take some samples of a measurement.
  bool poll() {
    if (deployment_.poll(policy_time_us())) say_late();
    if (!measurement_.is_running()) return false;
    if (measurement_.take_samples(device_, deployment_)) send_measurement();
    return true;
  }

  void describe_identity(mavlink_rlt_identity_t& content) const {
    content.fingerprint = contract_crc32(policy_contract<Contract>());
    content.scratch_bytes = ScratchFloats * sizeof(float);
    link::copy_text(content.experiment, Contract::kContractName);
    link::copy_text(content.program, "infer");
  }

  void describe_state(mavlink_heartbeat_t& content) const {
    if (deployment_.is_in_trial()) content.system_status = MAV_STATE_ACTIVE;
    if (is_armed_) content.base_mode = MAV_MODE_FLAG_SAFETY_ARMED;
  }

  // -- what the files ask and tell ----------------------------------------------------------------

  SlotImage active() const { return deployment_.slots().active(); }
  SlotImage candidate() const { return deployment_.slots().candidate(); }
  std::uint32_t slot_bytes() const { return deployment_.slots().slot_bytes(); }
  const std::uint32_t* samples() const { return measurement_.samples(); }
  std::uint32_t sample_count() const { return measurement_.count(); }
  ContractFile contract() const { return ContractFile(policy_contract<Contract>()); }
  bool can_stage() const { return !is_armed_ && !deployment_.is_in_trial(); }
  SlotError stage() { return note(deployment_.stage()); }
  SlotError write(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    return note(deployment_.write(offset, source, count));
  }
  // Finish an upload; one that was broken off leaves nothing behind that counts.
  void staged(bool finished) {
    if (!finished) return;
    refused_ = deployment_.finish();
    if (!refused_.accepted()) sender_.say(MAV_SEVERITY_ERROR, "policy refused");
  }

 private:
  static constexpr int kMaxActions = MAVLINK_MSG_RLT_ACTION_FIELD_ACTION_LEN;
  static constexpr int kMaxLayers = MAVLINK_MSG_RLT_ACTION_FIELD_LAYERS_LEN;
  static constexpr int kPartFloats = MAVLINK_MSG_RLT_OBSERVATION_FIELD_VALUES_LEN;
  static constexpr std::size_t kMaxInputs =
      Deployment::Runner::kMaxInputs > Contract::kObservationDim ? Deployment::Runner::kMaxInputs
                                                                 : Contract::kObservationDim;

  // -- commands -----------------------------------------------------------------------------------

  // Return whether a command names the last trial. Commands name the image that they mean: what
  // came in between changes nothing unseen. They may name the trial too: one that was on its way
  // until a later trial changes nothing then. A repetition finds that its work is done. What is
  // refused changes nothing, and breaks off no upload.
  bool names_last_trial(const link::Command& command) const {
    return command.third_parameter() == kAnyTrial || command.third_parameter() == trial_;
  }

  void try_candidate(const link::Command& command) {
    const bool is_meant = command.second_parameter() == image_number(candidate());
    if (deployment_.is_in_trial()) {
      const bool is_done = command.is_repetition() && command.third_parameter() == trial_;
      return acknowledge(command, is_done && is_meant);
    }
    const bool is_staged = deployment_.slots().candidate_state() == Candidate::staged;
    const float deadline_s = command.parameter();
    if (is_armed_ || !is_meant || !is_staged ||
        !(deadline_s > 0.0f && deadline_s <= kLongestTrial_s)) {
      return acknowledge(command, false);
    }
    const auto deadline_us = static_cast<std::uint32_t>(deadline_s * 1e6f);
    server_.close();
    const bool is_done = deployment_.start_trial(policy_time_us(), deadline_us) == SlotError::none;
    if (is_done) {
      rolled_back_ = kNoImage;
      trial_ = command.third_parameter();
    }
    acknowledge(command, is_done);
  }

  void confirm(const link::Command& command) {
    if (deployment_.poll(policy_time_us())) say_late();
    if (!names_last_trial(command)) return acknowledge(command, false);
    const bool is_done = command.is_repetition() && !deployment_.is_in_trial() &&
                         command.second_parameter() == image_number(active());
    if (is_done) return acknowledge(command, true);
    if (command.second_parameter() != image_number(candidate())) return acknowledge(command, false);
    acknowledge(command, deployment_.confirm(policy_time_us()) == SlotError::none);
  }

  void roll_back(const link::Command& command) {
    const float number = command.second_parameter();
    if (!names_last_trial(command)) return acknowledge(command, false);
    // The image can act again after a trial only, which forgets this.
    if (command.is_repetition() && number != kNoImage && number == rolled_back_) {
      return acknowledge(command, true);
    }
    const bool is_meant = number == image_number(deployment_.slots().acting());
    if (is_armed_ || !is_meant) return acknowledge(command, false);
    const SlotError error = deployment_.roll_back();
    if (error != SlotError::no_previous) server_.close();  // the files are others
    if (error == SlotError::none) rolled_back_ = number;
    acknowledge(command, error == SlotError::none);
  }

  // Arm or disarm. An armed board neither receives an image nor checks one: an upload is broken
  // off.
  void arm(const link::Command& command) {
    is_armed_ = command.parameter() != 0.0f;
    if (is_armed_) server_.close();
    acknowledge(command, true);
  }

  void measure(const link::Command& command) {
    const float what = command.parameter(), count = command.second_parameter();
    const bool is_known = what >= 0.0f && what <= kLastMeasured;
    const bool fits = count >= 1.0f && count <= static_cast<float>(Measurements::kMaxSamples);
    const auto* policy = deployment_.acting();
    if (is_armed_ || policy == nullptr || !is_known || !fits) return acknowledge(command, false);
    server_.close();
    measurement_.start(static_cast<RLT_MEASURED>(what), static_cast<std::uint32_t>(count));
    acknowledge(command, true);
  }

  bool answer(const link::Command& command) {
    if (command.requests(MAVLINK_MSG_ID_RLT_POLICY_SLOT)) {
      command.acknowledge(MAV_RESULT_ACCEPTED);
      for (std::uint8_t slot = 0; slot < 2; slot++) send_slot(slot);
      return true;
    }
    if (command.requests(MAVLINK_MSG_ID_RLT_EXECUTOR)) {
      command.acknowledge(MAV_RESULT_ACCEPTED);
      send_executor();
      return true;
    }
    if (!command.requests(MAVLINK_MSG_ID_RLT_MEASUREMENT)) return false;
    if (command.accept_if(measurement_.count() > 0)) send_measurement();
    return true;
  }

  static void acknowledge(const link::Command& command, bool done) { command.accept_if(done); }

  // -- messages -----------------------------------------------------------------------------------

  // Return the first three bytes of the SHA-256, which a float holds; 0 where there is no image.
  static float image_number(SlotImage image) {
    if (image.data == nullptr) return kNoImage;
    std::uint8_t sha256[Sha256::kDigestBytes];
    hash(image, sha256);
    return static_cast<float>(sha256[0] << 16 | sha256[1] << 8 | sha256[2]);
  }
  static void hash(SlotImage image, std::uint8_t (&digest)[Sha256::kDigestBytes]) {
    Sha256 sha256;
    sha256.update(image.data, image.bytes);
    sha256.finish(digest);
  }

  void send_slot(std::uint8_t slot) {
    const auto& slots = deployment_.slots();
    mavlink_rlt_policy_slot_t content{};
    content.slot = slot;
    content.slots = 2;
    content.slot_bytes = slots.slot_bytes();
    content.last_drop = static_cast<std::uint8_t>(slots.last_drop());
    content.refused_error = static_cast<std::uint8_t>(refused_.error);
    content.refused_reason = static_cast<std::uint8_t>(refused_.verdict.reason);
    content.refused_at = refused_.verdict.where;
    content.use = static_cast<std::uint8_t>(use_of(slot));
    const SlotImage image = slot == slots.active_slot() ? slots.active() : slots.candidate();
    const PolicyView* view = deployment_.view(slot);
    if (content.use != RLT_SLOT_USE_EMPTY && view != nullptr) {
      content.image_bytes = image.bytes;
      content.step = view->header->step;
      content.seed = view->header->seed;
      hash(image, content.sha256);
      __builtin_memcpy(content.state_sha256, view->header->state_sha256, 32);
      __builtin_memcpy(content.experiment, view->header->experiment, kPolicyNameBytes);
      __builtin_memcpy(content.environment, view->header->environment, kPolicyNameBytes);
    }
    if (content.use == RLT_SLOT_USE_TRIAL) {
      content.trial_left_ms = slots.trial_left_us(policy_time_us()) / 1000u;
    }
    sender_.send(mavlink_msg_rlt_policy_slot_encode_status, content);
  }

  RLT_SLOT_USE use_of(std::uint8_t slot) const {
    const auto& slots = deployment_.slots();
    if (slot == slots.active_slot()) return RLT_SLOT_USE_ACTIVE;
    if (slot != slots.other_slot()) return RLT_SLOT_USE_EMPTY;
    switch (slots.candidate_state()) {
      case Candidate::none: return RLT_SLOT_USE_EMPTY;
      case Candidate::staged: return RLT_SLOT_USE_STAGED;
      case Candidate::trial: return RLT_SLOT_USE_TRIAL;
      case Candidate::previous: return RLT_SLOT_USE_PREVIOUS;
    }
    return RLT_SLOT_USE_EMPTY;
  }

  void send_executor() {
    const ExecutorCounts& counts = deployment_.executor().counts();
    mavlink_rlt_executor_t content{};
    content.ticks = counts.ticks;
    content.early = counts.early;
    content.late = counts.late;
    content.missed = counts.missed;
    static_assert(kExecutorStatusCount <= MAVLINK_MSG_RLT_EXECUTOR_FIELD_STATUSES_LEN,
                  "RLT_EXECUTOR counts 16 statuses");
    for (int i = 0; i < kExecutorStatusCount; i++) content.statuses[i] = counts.statuses[i];
    content.armed = is_armed_ ? 1 : 0;
    sender_.send(mavlink_msg_rlt_executor_encode_status, content);
  }

  void send_measurement() {
    mavlink_rlt_measurement_t content{};
    content.samples = measurement_.count();
    content.measured = static_cast<std::uint8_t>(measurement_.what());
    sender_.send(mavlink_msg_rlt_measurement_encode_status, content);
  }

  void say_late() {
    sender_.say(MAV_SEVERITY_WARNING, "policy dropped: it was not confirmed in time");
  }

  // -- observations -------------------------------------------------------------------------------

  // Receive a part of an observation. Parts come in order; a missing one makes the whole
  // observation count for nothing.
  void observe(const mavlink_message_t& message) {
    mavlink_rlt_observation_t part;
    mavlink_msg_rlt_observation_decode(&message, &part);
    const int dimension = dimension_of(part.mode);
    if (part.dimension != dimension || part.first > part.dimension) return;
    if (part.first == 0) tick_ = part.tick, received_ = 0;
    if (part.tick != tick_ || part.first != received_) return;
    const int left = dimension - received_;
    const int count = left < kPartFloats ? left : kPartFloats;
    __builtin_memcpy(observation_ + received_, part.values,
                     sizeof(float) * static_cast<std::size_t>(count));
    received_ += count;
    if (received_ == dimension) act(part);
  }
  // Return the width of an observation. A network alone is given all of its inputs, past actions
  // too.
  int dimension_of(std::uint8_t mode) {
    const auto* policy = deployment_.acting();
    if (mode != RLT_OBSERVE_FORWARD || policy == nullptr) return Contract::kObservationDim;
    return policy->view()->header->observation_dim;
  }

  void act(const mavlink_rlt_observation_t& last) {
    mavlink_rlt_action_t content{};
    content.tick = last.tick;
    content.action_dim = Contract::kActionDim;
    float action[Contract::kActionDim] = {};
    const std::uint64_t begin = board::counter();
    if (last.mode == RLT_OBSERVE_FORWARD) {
      content.status = static_cast<std::uint8_t>(forward(action, content));
    } else {
      // The times are the host's, and no measure for a trial's deadline.
      if (last.mode == RLT_OBSERVE_BEGIN) deployment_.reset_executor();
      const Observation observation{observation_, last.taken_us};
      const bool was_in_trial = deployment_.is_in_trial();
      content.status =
          static_cast<std::uint8_t>(deployment_.tick(last.now_us, observation, action));
      if (was_in_trial && !deployment_.is_in_trial()) {
        sender_.say(MAV_SEVERITY_WARNING, "policy dropped: its output is not finite");
      }
    }
    content.cost = static_cast<std::uint32_t>(board::counter() - begin);
    __builtin_memcpy(content.action, action, sizeof(action));
    sender_.send(mavlink_msg_rlt_action_encode_status, content);
  }

  // Run the network alone, without the executor's limits; a safe action where it has no finite
  // output.
  ExecutorStatus forward(float* action, mavlink_rlt_action_t& content) {
    take_safe_action(policy_contract<Contract>(), action);
    auto* policy = deployment_.acting();
    if (policy == nullptr) return ExecutorStatus::no_policy;
    if (!all_finite(observation_, policy->view()->header->observation_dim)) {
      return ExecutorStatus::observation_not_finite;
    }
    float result[Contract::kActionDim] = {};
    int layer = 0;
    const bool is_good =
        policy->forward(device_, observation_, result, [&](const float* values, int count) {
          if (layer < kMaxLayers) {
            content.layers[layer] = crc32(values, sizeof(float) * static_cast<std::size_t>(count));
          }
          layer++;
        });
    content.layer_count = static_cast<std::uint16_t>(layer);
    if (!is_good) return ExecutorStatus::output_not_finite;
    __builtin_memcpy(action, result, sizeof(result));
    return ExecutorStatus::acted;
  }

  SlotError note(SlotError error) {
    if (error != SlotError::none && error != SlotError::not_in_order) {
      refused_ = {error, {PolicyReason::accepted, 0}};
    }
    return error;
  }

  static constexpr float kLongestTrial_s = 2147.0f;
  static constexpr float kLastMeasured = static_cast<float>(RLT_MEASURED_TICK);
  static constexpr float kNoImage = 0.0f;   // in place of an image's number
  static constexpr float kAnyTrial = 0.0f;  // in place of a trial's

  Device device_;
  link::MessageSender& sender_;
  Deployment deployment_;
  Files files_;
  FileServer<Files> server_;
  Measurements measurement_;
  StageVerdict refused_{SlotError::none, {PolicyReason::accepted, 0}};  // of the last image
  float rolled_back_ = kNoImage;  // number of the image that the last roll-back gave up
  float trial_ = kAnyTrial;       // number of the last one since the start
  bool is_armed_ = false;
  std::uint32_t tick_ = 0;
  int received_ = 0;  // elements of the observation with that tick
  alignas(4) float observation_[kMaxInputs] = {};
};

}  // namespace rlt
