// Training as a service: its states, commands, reports and files. docs/protocol.md describes the
// states and every message.
#pragma once

#include "app/link/board_time.h"
#include "app/services/file_server.h"
#include "app/services/training/arithmetic_refusal.h"
#include "app/services/training/non_finite_text.h"
#include "app/services/training/training_files.h"
#include "rltools/rl/evaluation.h"
#include "rltools/rl/reports.h"

namespace rlt {

// KeepsBest: besides the last policy, the one that was evaluated best, for which there is memory.
// Without it a host that asks for rests keeps that one.
template <class E, class Device, bool KeepsBest>
class TrainingService : public link::Service {
 public:
  using State = RLT_STATE;
  using Files = TrainingFiles<E, TrainingService, KeepsBest>;
  using Images = typename Files::Images;

  // A board whose arithmetic has a fault serves everything but training.
  TrainingService(Device device, ArithmeticFault arithmetic, link::MessageSender& sender,
                  link::HeartbeatClock& heartbeat, Training<E>& training, Images& images)
      : device_(device),
        arithmetic_(arithmetic),
        sender_(sender),
        heartbeat_(heartbeat),
        training_(training),
        files_(*this, training, images),
        server_(files_, sender) {}

  TrainingService(const TrainingService&) = delete;
  TrainingService& operator=(const TrainingService&) = delete;

  State state() const { return state_; }
  // Return the service that serves the files.
  FileServer<Files>& file_server() { return server_; }

  // -- what a node asks ---------------------------------------------------------------------------

  bool obey(const link::Command& command) {
    switch (command.number()) {
      case MAV_CMD_RLT_START: start(command); return true;
      case MAV_CMD_RLT_PAUSE: pause(command); return true;
      case MAV_CMD_RLT_RESUME: resume(command); return true;
      default: break;
    }
    if (command.requests(MAVLINK_MSG_ID_RLT_EVALUATION)) {
      if (command.accept_if(is_at_rest() && last_evaluation_.episodes > 0)) send_evaluations();
      return true;
    }
    if (!command.requests(MAVLINK_MSG_ID_RLT_RESULT)) return false;
    if (command.accept_if(is_at_rest())) send_result();
    return true;
  }

  // Do one training step, or some steps of an evaluation.
  bool poll() {
    if (state_ != RLT_STATE_TRAINING) return false;
    if (evaluating_) {
      evaluate();
    } else {
      train();
    }
    return true;
  }

  void describe_identity(mavlink_rlt_identity_t& content) const {
    content.fingerprint = files_.fingerprint_of_experiment();
    content.learner_bytes = sizeof(Learner<E>);
    content.replay_bytes = sizeof(Replay<E>);
    content.scratch_bytes = sizeof(Scratch<E>);
    content.state = state_;
    link::copy_text(content.experiment, E::kName);
  }

  void describe_state(mavlink_heartbeat_t& content) const {
    content.custom_mode = state_;
    if (state_ == RLT_STATE_TRAINING) content.system_status = MAV_STATE_ACTIVE;
    if (state_ == RLT_STATE_FAULT) content.system_status = MAV_STATE_CRITICAL;
  }

  // -- what the parameters ask --------------------------------------------------------------------

  const char* parameter_refusal() const {
    return is_training() ? "hyperparameter refused: pause training first" : nullptr;
  }

  // -- what the files ask and tell ----------------------------------------------------------------

  bool is_training() const { return state_ == RLT_STATE_TRAINING; }
  bool is_at_rest() const { return state_ == RLT_STATE_PAUSED || state_ == RLT_STATE_FINISHED; }

  void upload_begins() {
    state_ = RLT_STATE_IDLE;
    forget_run();
  }
  void upload_restored() {
    files_.publish(device_);
    state_ = RLT_STATE_PAUSED;
    is_restored_ = true;
  }
  void upload_refused(CheckpointReason reason) {
    sender_.say_text(MAV_SEVERITY_ERROR, checkpoint_reason_text(reason));
  }

 private:
  // Less work than a training step, so that a turn of the main loop takes no longer than one. A
  // step of another program's environment may take long.
  static constexpr int kEvaluationStepsAPoll = kIsExternal<typename E::Environment> ? 1 : 20;

  // -- commands -----------------------------------------------------------------------------------

  // Start training. The token tells a repeated start from a new one where training has come to an
  // end in between.
  void start(const link::Command& command) {
    const bool same_token = command.parameter() != 0.0f && command.parameter() == start_token_;
    if (command.is_repetition() && (is_training() || same_token)) {
      return command.acknowledge(MAV_RESULT_ACCEPTED);
    }
    if (!command.accept_if(!is_training() && can_train())) return;
    start_token_ = command.parameter();
    take_rests(command);
    server_.close();
    initialize(device_, training_);
    is_restored_ = false;
    forget_run();
    enter_training();
  }

  void forget_run() {
    since_.clear();
    is_best_ = false;
    files_.forget_best();
    best_evaluation_ = last_evaluation_ = {};
    counted_ = evaluated_ = 0;
    evaluating_ = false;
  }

  // Pause training. An evaluation under way goes on when training is resumed.
  void pause(const link::Command& command) {
    if (!command.accept_if(is_training() || is_at_rest())) return;
    if (is_at_rest()) return send_result();
    rest(RLT_STATE_PAUSED);
  }

  // Resume training. A command that comes again must not end a rest that lies in between.
  void resume(const link::Command& command) {
    if (command.parameter() != 0.0f && command.parameter() == resume_token_) {
      return command.acknowledge(MAV_RESULT_ACCEPTED);
    }
    if (!command.accept_if((is_training() || is_at_rest()) && can_train())) return;
    resume_token_ = command.parameter();
    take_rests(command);
    if (is_training()) return;
    // The policy of a checkpoint from within an evaluation is evaluated first.
    const bool is_due = is_restored_ && command.fourth_parameter() == 1.0f;
    const bool evaluates = is_due && may_evaluate(training_);
    if (finished(training_) && !evaluates && !evaluating_) {
      state_ = RLT_STATE_FINISHED;
      return send_result();
    }
    server_.close();
    if (is_restored_) restart_lost_episodes(device_, training_);
    is_restored_ = false;
    enter_training();
    if (evaluates) begin_evaluating();
  }

  // Take rests at evaluations. A board that keeps the best policy itself has no need to rest.
  void take_rests(const link::Command& command) {
    if constexpr (KeepsBest) return;
    rest_above_ = command.second_parameter() == 1.0f ? command.third_parameter() : math::kQuietNan;
  }

  // -- training -----------------------------------------------------------------------------------

  // Return whether the board can train; where it cannot, report why to the client.
  bool can_train() {
    const char* refusal = arithmetic_refusal(arithmetic_);
    if (refusal == nullptr && unavailable_here<typename E::Environment>() != nullptr) {
      refusal = "training refused: its simulator is not there";
    }
    if (refusal != nullptr) sender_.say_text(MAV_SEVERITY_CRITICAL, refusal);
    return refusal == nullptr;
  }

  // Return whether the program that plays the episodes has gone. The state is whole; training can
  // be resumed when it is there again.
  static bool environment_is_lost() {
    if constexpr (!kIsExternal<typename E::Environment>) return false;
    return unavailable_here<typename E::Environment>() != nullptr;
  }

  void enter_training() {
    is_best_ = false;
    state_ = RLT_STATE_TRAINING;
    // The time of the next heartbeat counts from here, so that an emulator executes the same
    // instructions in each run.
    counting_since_ = evaluating_since_ = board::counter();
    heartbeat_.restart(counting_since_);
  }

  // Call train_step() once: a step of the environments, or a part of the updates. Then the reports
  // that fall due with it. The policy is also evaluated after the last step.
  void train() {
    const std::uint32_t before = steps_done(training_);
    const StepReport<E> report = train_step(device_, training_);
    since_.add(report);
    if (environment_is_lost()) return rest(RLT_STATE_PAUSED);
    if (!report.finite) {
      since_.metrics.clear();  // means without what was not finite would look sound
      if (report.non_finite.environment == report.non_finite.kNone) {
        return fail("training stopped: a loss is not finite");
      }
      return fail(non_finite_text(training_, report));
    }
    if (is_report_due(training_, before)) send_progress();
    if (is_evaluation_due(training_, before)) begin_evaluating();
  }

  void begin_evaluating() {
    if (!networks_are_finite(training_)) return fail("training stopped: a weight is not finite");
    begin_evaluation(device_, training_, evaluation_);
    evaluating_ = true;
    evaluating_since_ = board::counter();
  }

  void evaluate() {
    for (int i = 0; i < kEvaluationStepsAPoll; i++) {
      const bool is_running = evaluate_step(device_, training_, evaluation_);
      if (environment_is_lost()) return rest(RLT_STATE_PAUSED);
      if (!is_running) return end_evaluation();
    }
  }

  void end_evaluation() {
    count_evaluating();
    evaluating_ = false;
    if (evaluation_.non_finite.environment != evaluation_.non_finite.kNone) {
      return fail(non_finite_text(evaluation_));
    }
    const EvaluationReport report = evaluation_report(evaluation_);
    if constexpr (KeepsBest) files_.keep_if_best(device_, report.mean);
    is_best_ = report.mean > rest_above_;
    send_evaluation(report);
    if (finished(training_)) {
      rest(RLT_STATE_FINISHED);
    } else if (is_best_) {
      rest(RLT_STATE_PAUSED);
    }
  }

  void count_evaluating() {
    if (evaluating_) evaluated_ += board::counter() - evaluating_since_;
  }

  void rest(State state) {
    leave_training(state);
    if (!networks_are_finite(training_)) return fail("training stopped: a weight is not finite");
    // This board would refuse a checkpoint with such a number.
    if (!state_is_finite(training_)) return fail("training stopped: a number is not finite");
    files_.publish(device_);
    send_result();
  }

  template <std::size_t Size>
  void fail(const char (&text)[Size]) {
    enter_fault();
    sender_.say(MAV_SEVERITY_CRITICAL, text);
  }

  void fail(const NonFiniteText& text) {
    enter_fault();
    sender_.say_in_pieces(MAV_SEVERITY_CRITICAL, text.text());
  }

  void enter_fault() {
    leave_training(RLT_STATE_FAULT);
    send_progress();
  }

  void leave_training(State state) {
    count_evaluating();
    counted_ = counter();
    state_ = state;
  }

  // Return the counts by which the board's counter has advanced in training, since START or since a
  // checkpoint was uploaded.
  std::uint64_t counter() const {
    if (!is_training()) return counted_;
    return counted_ + (board::counter() - counting_since_);
  }

  // -- reports ------------------------------------------------------------------------------------

  void send_progress() {
    const auto& progress = training_.learner.progress;
    mavlink_rlt_progress_t content{};
    content.counter = counter();
    content.step = progress.step;
    content.steps = training_.hyperparameters.steps;
    content.updates = progress.updates;
    content.episodes = episodes_ended(training_.learner.environments);
    content.last_return = static_cast<float>(progress.last_return);
    content.best_return = static_cast<float>(progress.best_return);
    for (int i = 0; i < E::Algorithm::Metrics::kCount; i++) {
      content.metrics[i] = since_.metrics.get(i);
    }
    content.episodes_ended = since_.episodes;
    content.episode_return = since_.mean_return();
    content.episode_length = since_.mean_steps();
    since_.clear();
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
    content.length_mean = report.length_mean;
    const bool is_first = last_evaluation_.episodes == 0;
    if (is_first || report.mean > best_evaluation_.return_mean) best_evaluation_ = content;
    last_evaluation_ = content;
    sender_.send(mavlink_msg_rlt_evaluation_encode_status, content);
  }

  // Send the evaluations of the best policy, then of the last one, for a host that was not there.
  void send_evaluations() {
    sender_.send(mavlink_msg_rlt_evaluation_encode_status, best_evaluation_);
    sender_.send(mavlink_msg_rlt_evaluation_encode_status, last_evaluation_);
  }

  void send_result() {
    mavlink_rlt_result_t content{};
    content.counter = counter();
    content.step = steps_done(training_);
    content.evaluation_counter = evaluated_;
    content.checkpoint_bytes = files_.checkpoint_size();
    content.policy_bytes = kPolicyImageBytes<E>;
    content.state = state_;
    content.is_best = is_best_;
    __builtin_memcpy(content.state_sha256, files_.header().sha256, sizeof(content.state_sha256));
    sender_.send(mavlink_msg_rlt_result_encode_status, content);
  }

  const Device device_;
  const ArithmeticFault arithmetic_;
  link::MessageSender& sender_;
  link::HeartbeatClock& heartbeat_;
  Training<E>& training_;
  Files files_;
  FileServer<Files> server_;
  SinceReport<E> since_;
  Evaluation<E> evaluation_{};
  mavlink_rlt_evaluation_t best_evaluation_{};  // the first with the largest mean
  mavlink_rlt_evaluation_t last_evaluation_{};  // without episodes: there was none
  State state_ = RLT_STATE_IDLE;
  bool evaluating_ = false;             // also at rest, where the evaluation goes on after it
  bool is_restored_ = false;            // the state is that of a checkpoint, and no step came after
  bool is_best_ = false;                // at rest: by the evaluation that has just ended
  float rest_above_ = math::kQuietNan;  // an evaluation's mean return that leads to a rest
  float start_token_ = 0.0f;            // of the last start
  float resume_token_ = 0.0f;           // of the last resumption
  std::uint64_t counted_ = 0;           // by the counter in training, up to the last pause
  std::uint64_t counting_since_ = 0;    // the board's counter when training was entered
  std::uint64_t evaluated_ = 0;         // of `counted_`, by evaluations
  std::uint64_t evaluating_since_ = 0;
};

}  // namespace rlt
