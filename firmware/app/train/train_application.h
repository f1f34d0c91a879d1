// The train application: trains an experiment while a host, if there is one, watches and commands
// over MAVLink. docs/protocol.md describes the states, the exchanges and every message. No
// allocation; the host is never waited for.
#pragma once

#include "app/file_server.h"
#include "app/frame_receiver.h"
#include "app/revision.h"
#include "app/train/loss_means.h"
#include "app/train/parameters.h"
#include "app/train/training_files.h"
#include "rltools/rl/evaluation.h"

namespace rlt {

constexpr std::uint16_t kTrainProtocolVersion = 1;

// Names for the identity message.
struct BoardNames {
  const char* board;
  const char* device;
};

template <class E, class Device>
class TrainApplication {
 public:
  using State = RLT_STATE;
  using PolicyImage = typename TrainingFiles<E>::PolicyImage;

  TrainApplication(Device device, BoardNames names, Training<E>& training,
                   PolicyImage& policy_image)
      : device_(device),
        names_(names),
        training_(training),
        files_(training, policy_image),
        server_(files_, sender_) {}

  TrainApplication(const TrainApplication&) = delete;
  TrainApplication& operator=(const TrainApplication&) = delete;

  State state() const { return state_; }

  // One turn of the main loop: what the host has sent, then at most one training step.
  void turn() {
    bool active = receive();
    active |= server_.go_on();
    send_heartbeat_if_due();
    if (state_ == RLT_STATE_TRAINING) {
      train();
    } else if (!active) {
      board::idle();
    }
  }

 private:
  // -- receiving ----------------------------------------------------------------------------------

  // Takes what has arrived, at most so much at once that a flood of bytes does not stop training.
  bool receive() {
    std::uint8_t bytes[256];
    const std::size_t count = board::read(bytes, sizeof(bytes));
    receiver_.receive(bytes, count, [this](const mavlink_message_t& message) { handle(message); });
    return count > 0;
  }

  void handle(const mavlink_message_t& message) {
    switch (message.msgid) {
      case MAVLINK_MSG_ID_COMMAND_LONG: return handle_command(message);
      case MAVLINK_MSG_ID_COMMAND_INT: return refuse_command_int(message);
      case MAVLINK_MSG_ID_PARAM_REQUEST_LIST: return handle_parameter_list(message);
      case MAVLINK_MSG_ID_PARAM_REQUEST_READ: return handle_parameter_read(message);
      case MAVLINK_MSG_ID_PARAM_SET: return handle_parameter_set(message);
      case MAVLINK_MSG_ID_FILE_TRANSFER_PROTOCOL: return handle_file_request(message);
      default: return;
    }
  }

  void handle_file_request(const mavlink_message_t& message) {
    mavlink_file_transfer_protocol_t request;
    mavlink_msg_file_transfer_protocol_decode(&message, &request);
    if (!link::is_for_us(request.target_system, request.target_component)) return;
    server_.handle(request.payload, link::sender_of(message));
    follow_upload();
  }

  // -- commands -----------------------------------------------------------------------------------

  void handle_command(const mavlink_message_t& message) {
    mavlink_command_long_t command;
    mavlink_msg_command_long_decode(&message, &command);
    if (!link::is_for_us(command.target_system, command.target_component)) return;
    const link::Address sender = link::sender_of(message);
    switch (command.command) {
      case MAV_CMD_RLT_START: return start(command, sender);
      case MAV_CMD_RLT_PAUSE: return pause(command, sender);
      case MAV_CMD_RLT_CONTINUE: return go_on(command, sender);
      case MAV_CMD_REQUEST_MESSAGE: return request_message(command, sender);
      default: return acknowledge(command.command, MAV_RESULT_UNSUPPORTED, sender);
    }
  }

  void refuse_command_int(const mavlink_message_t& message) {
    mavlink_command_int_t command;
    mavlink_msg_command_int_decode(&message, &command);
    if (!link::is_for_us(command.target_system, command.target_component)) return;
    acknowledge(command.command, MAV_RESULT_COMMAND_LONG_ONLY, link::sender_of(message));
  }

  void acknowledge(std::uint16_t command, std::uint8_t result, link::Address target) {
    mavlink_command_ack_t content{};
    content.command = command;
    content.result = result;
    content.target_system = target.system;
    content.target_component = target.component;
    sender_.send(mavlink_msg_command_ack_encode_status, content);
  }

  // The acknowledgement goes out before the work, which takes a moment. A command that comes again
  // with a confirmation number, because its acknowledgement was lost, is not an error.
  // Its token tells a repeated start from a new one where training has come to an end in between.
  void start(const mavlink_command_long_t& command, link::Address sender) {
    const bool same_token = command.param1 != 0.0f && command.param1 == start_token_;
    const bool training = state_ == RLT_STATE_TRAINING;
    if (command.confirmation > 0 && (training || same_token)) {
      return acknowledge(command.command, MAV_RESULT_ACCEPTED, sender);
    }
    if (training) return acknowledge(command.command, MAV_RESULT_DENIED, sender);
    start_token_ = command.param1;
    acknowledge(command.command, MAV_RESULT_ACCEPTED, sender);
    close_files();
    initialize(device_, training_);
    counted_ = 0;
    enter_training();
  }

  void pause(const mavlink_command_long_t& command, link::Address sender) {
    const bool allowed = state_ == RLT_STATE_TRAINING || is_at_rest();
    acknowledge(command.command, allowed ? MAV_RESULT_ACCEPTED : MAV_RESULT_DENIED, sender);
    if (state_ == RLT_STATE_TRAINING) {
      rest(RLT_STATE_PAUSED);
    } else if (is_at_rest()) {
      send_result();
    }
  }

  void go_on(const mavlink_command_long_t& command, link::Address sender) {
    const bool allowed = state_ == RLT_STATE_TRAINING || is_at_rest();
    acknowledge(command.command, allowed ? MAV_RESULT_ACCEPTED : MAV_RESULT_DENIED, sender);
    if (!is_at_rest()) return;
    if (finished(training_)) {
      state_ = RLT_STATE_FINISHED;
      return send_result();
    }
    close_files();
    enter_training();
  }

  void request_message(const mavlink_command_long_t& command, link::Address sender) {
    const auto answer = [&](bool allowed) {
      acknowledge(command.command, allowed ? MAV_RESULT_ACCEPTED : MAV_RESULT_DENIED, sender);
      return allowed;
    };
    // Not a switch on an integer: a float that is no message number must not be converted.
    if (command.param1 == static_cast<float>(MAVLINK_MSG_ID_RLT_IDENTITY)) {
      if (answer(true)) send_identity();
    } else if (command.param1 == static_cast<float>(MAVLINK_MSG_ID_RLT_RESULT)) {
      if (answer(is_at_rest())) send_result();
    } else if (command.param1 == static_cast<float>(MAVLINK_MSG_ID_NAMED_VALUE_INT)) {
      if (answer(true)) send_stack_use();
    } else if (command.param1 == static_cast<float>(MAVLINK_MSG_ID_HEARTBEAT)) {
      if (answer(true)) send_heartbeat();
    } else if (command.param1 == static_cast<float>(MAVLINK_MSG_ID_AUTOPILOT_VERSION)) {
      if (answer(true)) send_capabilities();
    } else {
      acknowledge(command.command, MAV_RESULT_UNSUPPORTED, sender);
    }
  }

  // -- parameters ---------------------------------------------------------------------------------

  using Hyperparameters = typename E::Hyperparameters;

  void handle_parameter_list(const mavlink_message_t& message) {
    mavlink_param_request_list_t request;
    mavlink_msg_param_request_list_decode(&message, &request);
    if (!link::is_for_us(request.target_system, request.target_component)) return;
    for (int i = 0; i < Hyperparameters::kCount; i++) {
      send_parameter(sender_, training_.hyperparameters, i);
    }
  }

  void handle_parameter_read(const mavlink_message_t& message) {
    mavlink_param_request_read_t request;
    mavlink_msg_param_request_read_decode(&message, &request);
    if (!link::is_for_us(request.target_system, request.target_component)) return;
    const int index = request.param_index >= 0 ? request.param_index
                                               : find_parameter<Hyperparameters>(request.param_id);
    if (index < 0 || index >= Hyperparameters::kCount) return say_unknown_parameter();
    send_parameter(sender_, training_.hyperparameters, index);
  }

  // Answers with the value that holds afterwards: the old one where the new one is refused.
  void handle_parameter_set(const mavlink_message_t& message) {
    mavlink_param_set_t request;
    mavlink_msg_param_set_decode(&message, &request);
    if (!link::is_for_us(request.target_system, request.target_component)) return;
    const int index = find_parameter<Hyperparameters>(request.param_id);
    if (index < 0) return say_unknown_parameter();
    std::uint32_t bits;
    __builtin_memcpy(&bits, &request.param_value, 4);
    auto& values = training_.hyperparameters;
    if (state_ == RLT_STATE_TRAINING) {
      if (bits != values.get_bits(index)) {
        sender_.say(MAV_SEVERITY_ERROR, "hyperparameter refused: pause training first");
      }
    } else if (request.param_type != parameter_type(Hyperparameters::info(index).type)) {
      sender_.say(MAV_SEVERITY_ERROR, "hyperparameter refused: it is of another type");
    } else if (!values.set_bits(index, bits)) {
      sender_.say(MAV_SEVERITY_ERROR, "hyperparameter refused: out of bounds");
    }
    send_parameter(sender_, values, index);
  }

  void say_unknown_parameter() {
    sender_.say(MAV_SEVERITY_WARNING, "there is no such hyperparameter");
  }

  // -- states -------------------------------------------------------------------------------------

  bool is_at_rest() const { return state_ == RLT_STATE_PAUSED || state_ == RLT_STATE_FINISHED; }

  void enter_training() {
    losses_.clear();
    state_ = RLT_STATE_TRAINING;
    // Heartbeats in step with training: then an emulator executes the same instructions in each
    // run.
    heartbeat_at_ = counting_since_ = board::counter();
  }

  // One step, with the reports that fall due.
  void train() {
    const StepReport report = train_step(device_, training_);
    losses_.add(report);
    if (!report.finite) return fail("training stopped: a loss is not finite");
    const std::uint32_t step = steps_done(training_);
    const bool last = finished(training_);
    if (last || step % training_.hyperparameters.report_every == 0) send_progress();
    if (last || step % training_.hyperparameters.eval_every == 0) {
      if (!networks_are_finite(training_)) return fail("training stopped: a weight is not finite");
      send_evaluation(evaluate(device_, training_));
    }
    if (last) rest(RLT_STATE_FINISHED);
  }

  void rest(State state) {
    if (!networks_are_finite(training_)) return fail("training stopped: a weight is not finite");
    leave_training(state);
    files_.publish(device_);
    send_result();
  }

  template <std::size_t Size>
  void fail(const char (&text)[Size]) {
    leave_training(RLT_STATE_FAULT);
    files_.withdraw(true);
    send_progress();
    sender_.say(MAV_SEVERITY_CRITICAL, text);
  }

  void leave_training(State state) {
    counted_ = counter();
    state_ = state;
  }

  // Before the state changes.
  void close_files() {
    server_.reset();
    follow_upload();
    files_.withdraw(false);
  }

  // What an upload has done to the state.
  void follow_upload() {
    using Event = typename TrainingFiles<E>::Event;
    const Event event = files_.take_event();
    if (event == Event::none) return;
    if (event != Event::refused) {
      state_ = RLT_STATE_IDLE;
      counted_ = 0;
    }
    if (event == Event::restored) {
      files_.publish(device_);
      state_ = RLT_STATE_PAUSED;
    } else if (event != Event::overwritten) {
      sender_.say_text(MAV_SEVERITY_ERROR, checkpoint_reason_text(files_.reason()));
    }
  }

  // -- sending ------------------------------------------------------------------------------------

  // What the board's counter counted while training, since START or since a checkpoint was written.
  std::uint64_t counter() const {
    if (state_ != RLT_STATE_TRAINING) return counted_;
    return counted_ + (board::counter() - counting_since_);
  }

  void send_heartbeat_if_due() {
    // A second; guest instructions are no measure of time, but an emulator executes some 10^8 a
    // second.
    const std::uint64_t interval = board::kCountsInstructions ? 30'000'000u : 1'000'000u;
    const std::uint64_t now = board::counter();
    if (heartbeat_sent_ && now - heartbeat_at_ < interval) return;
    heartbeat_sent_ = true;
    heartbeat_at_ = now;
    send_heartbeat();
  }

  void send_heartbeat() {
    mavlink_heartbeat_t content{};
    content.type = MAV_TYPE_GENERIC;
    content.autopilot = MAV_AUTOPILOT_INVALID;
    content.custom_mode = state_;
    content.system_status = state_ == RLT_STATE_TRAINING ? MAV_STATE_ACTIVE
                            : state_ == RLT_STATE_FAULT  ? MAV_STATE_CRITICAL
                                                         : MAV_STATE_STANDBY;
    content.mavlink_version = 3;
    sender_.send(mavlink_msg_heartbeat_encode_status, content);
  }

  void send_identity() {
    mavlink_rlt_identity_t content{};
    content.fingerprint = files_.fingerprint_of_experiment();
    content.learner_bytes = sizeof(Learner<E>);
    content.replay_bytes = sizeof(Replay<E>);
    content.scratch_bytes = sizeof(Scratch<E>);
    content.protocol_version = kTrainProtocolVersion;
    content.state = state_;
    content.counter =
        board::kCountsInstructions ? RLT_COUNTER_GUEST_INSTRUCTIONS : RLT_COUNTER_MICROSECONDS;
    link::copy_text(content.experiment, E::kName);
    link::copy_text(content.board, names_.board);
    link::copy_text(content.device, names_.device);
    link::copy_text(content.revision, kRevision);
    board::unique_id(content.unique_id);
    sender_.send(mavlink_msg_rlt_identity_encode_status, content);
  }

  // For ground control programs, which ask before they use files and parameters.
  void send_capabilities() {
    mavlink_autopilot_version_t content{};
    content.capabilities = MAV_PROTOCOL_CAPABILITY_MAVLINK2 | MAV_PROTOCOL_CAPABILITY_FTP |
                           MAV_PROTOCOL_CAPABILITY_PARAM_ENCODE_BYTEWISE;
    std::uint8_t id[16];
    board::unique_id(id);
    __builtin_memcpy(&content.uid, id, sizeof(content.uid));
    __builtin_memcpy(content.uid2, id, sizeof(id));
    sender_.send(mavlink_msg_autopilot_version_encode_status, content);
  }

  void send_progress() {
    const auto& progress = training_.learner.progress;
    mavlink_rlt_progress_t content{};
    content.counter = counter();
    content.step = progress.step;
    content.steps = training_.hyperparameters.steps;
    content.updates = progress.updates;
    content.episodes = progress.episodes;
    content.last_return = static_cast<float>(progress.last_return);
    content.best_return = static_cast<float>(progress.best_return);
    content.critic_1_loss = losses_.critic_1();
    content.critic_2_loss = losses_.critic_2();
    content.actor_loss = losses_.actor();
    losses_.clear();
    sender_.send(mavlink_msg_rlt_progress_encode_status, content);
  }

  void send_evaluation(const EvaluationReport& report) {
    mavlink_rlt_evaluation_t content{};
    content.counter = counter();
    content.step = steps_done(training_);
    content.episodes = report.episodes;
    content.return_mean = report.mean;
    content.return_std = report.std;
    content.return_min = report.min;
    content.return_max = report.max;
    sender_.send(mavlink_msg_rlt_evaluation_encode_status, content);
  }

  void send_result() {
    mavlink_rlt_result_t content{};
    content.counter = counter();
    content.step = steps_done(training_);
    content.checkpoint_bytes = files_.checkpoint_bytes();
    content.policy_bytes = kPolicyImageBytes<E>;
    content.state = state_;
    __builtin_memcpy(content.state_sha256, files_.header().sha256, sizeof(content.state_sha256));
    sender_.send(mavlink_msg_rlt_result_encode_status, content);
  }

  void send_stack_use() {
    const board::StackUse use = board::stack_use();
    send_named_value("stack", use.capacity_bytes);
    send_named_value("stack_peak", use.peak_bytes);
  }

  void send_named_value(const char* name, std::uint32_t value) {
    mavlink_named_value_int_t content{};
    content.value = static_cast<std::int32_t>(value);
    link::copy_text(content.name, name);
    sender_.send(mavlink_msg_named_value_int_encode_status, content);
  }

  const Device device_;
  const BoardNames names_;
  Training<E>& training_;
  link::MessageSender sender_;
  link::FrameReceiver receiver_;
  TrainingFiles<E> files_;
  link::FileServer<TrainingFiles<E>> server_;
  LossMeans losses_;
  State state_ = RLT_STATE_IDLE;
  float start_token_ = 0.0f;          // of the last start
  std::uint64_t counted_ = 0;         // by the counter in training, up to the last pause
  std::uint64_t counting_since_ = 0;  // the board's counter when training was entered
  bool heartbeat_sent_ = false;
  std::uint64_t heartbeat_at_ = 0;
};

}  // namespace rlt
