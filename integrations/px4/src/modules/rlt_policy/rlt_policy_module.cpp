// PX4's calls for policy_mode.h: topics, parameters, files, a work item, a command. What is decided
// is decided there.
//
// RLT_PX4_HAS_DESCRIPTOR: 1 where ModuleBase has a Descriptor (PX4 since 2026), 0 where it is a
// template. RLT_PX4_FOLDER: where the policies are.
#include <fcntl.h>
#include <px4_platform_common/atomic.h>
#include <px4_platform_common/defines.h>
#include <px4_platform_common/log.h>
#include <px4_platform_common/module.h>
#include <px4_platform_common/module_params.h>
#include <px4_platform_common/posix.h>
#include <sys/stat.h>
#include <systemlib/mavlink_log.h>
#include <uORB/topics/actuator_motors.h>
#include <uORB/topics/arming_check_reply.h>
#include <uORB/topics/arming_check_request.h>
#include <uORB/topics/hover_thrust_estimate.h>
#include <uORB/topics/parameter_update.h>
#include <uORB/topics/register_ext_component_reply.h>
#include <uORB/topics/register_ext_component_request.h>
#include <uORB/topics/trajectory_setpoint.h>
#include <uORB/topics/unregister_ext_component.h>
#include <uORB/topics/vehicle_angular_velocity.h>
#include <uORB/topics/vehicle_attitude.h>
#include <uORB/topics/vehicle_command.h>
#include <uORB/topics/vehicle_control_mode.h>
#include <uORB/topics/vehicle_local_position.h>
#include <uORB/topics/vehicle_status.h>
#include <uORB/topics/vehicle_thrust_setpoint.h>
#include <px4_platform_common/px4_work_queue/ScheduledWorkItem.hpp>
#include <uORB/Publication.hpp>
#include <uORB/Subscription.hpp>
#if __has_include(<uORB/topics/setpoint_config.h>)
#include <uORB/topics/setpoint_config.h>
#define RLT_PX4_HAS_SETPOINT_CONFIG 1
#else
#define RLT_PX4_HAS_SETPOINT_CONFIG 0
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy_files.h"
#include "policy_mode.h"
#include "rltools/this_processor.h"

#ifndef RLT_PX4_FOLDER
#define RLT_PX4_FOLDER PX4_STORAGEDIR "/rlt"
#endif

using namespace rlt::px4;

namespace {

constexpr uint32_t kTick_us = rlt::contracts::Quadrotor::kStepInterval_us;
constexpr char kModeName[] = "RL Policy";
constexpr uint32_t kRegisterAgain_us = 1000000;

// Older versions of PX4 do not say which registrations count.
template <class Request>
auto counts(const Request& request, int id, int)
    -> decltype(request.valid_registrations_mask, true) {
  return (request.valid_registrations_mask & (1u << id)) != 0;
}
template <class Request>
bool counts(const Request&, int, long) {
  return true;
}

}  // namespace

// The folder of policies.
class PolicyFolder {
 public:
  bool exists(const char* name) {
    struct stat status;
    return ::stat(path(name), &status) == 0;
  }
  bool remove(const char* name) { return ::unlink(path(name)) == 0; }
  bool rename(const char* from, const char* to) {
    char source[kPathBytes];
    strncpy(source, path(from), sizeof(source) - 1);
    source[sizeof(source) - 1] = '\0';
    return ::rename(source, path(to)) == 0;
  }
  template <class Take>
  bool read(const char* name, Take&& take) {
    const int file = ::open(path(name), O_RDONLY);
    if (file < 0) return false;
    uint32_t offset = 0;
    ssize_t count;
    while ((count = ::read(file, buffer_, sizeof(buffer_))) > 0) {
      if (!take(offset, buffer_, static_cast<uint32_t>(count))) break;
      offset += static_cast<uint32_t>(count);
    }
    ::close(file);
    return count == 0;
  }

 private:
  static constexpr size_t kPathBytes = 128;
  const char* path(const char* name) {
    snprintf(path_, sizeof(path_), "%s/%s", RLT_PX4_FOLDER, name);
    return path_;
  }
  char path_[kPathBytes] = {};
  uint8_t buffer_[256] = {};
};

class RltPolicy :
#if RLT_PX4_HAS_DESCRIPTOR
    public ModuleBase,
#else
    public ModuleBase<RltPolicy>,
#endif
    public ModuleParams,
    public px4::ScheduledWorkItem {
 public:
#if RLT_PX4_HAS_DESCRIPTOR
  static Descriptor desc;
#endif
  RltPolicy()
      : ModuleParams(nullptr),
        ScheduledWorkItem(MODULE_NAME, px4::wq_configurations::nav_and_controllers) {}
  ~RltPolicy() override { delete mode_; }
  RltPolicy(const RltPolicy&) = delete;
  RltPolicy& operator=(const RltPolicy&) = delete;

  static int task_spawn(int argc, char* argv[]);
  static int custom_command(int argc, char* argv[]);
  static int print_usage(const char* reason = nullptr);
  int print_status() override;

 private:
  using Mode = PolicyMode<rlt::ThisProcessor>;
  enum Guest : int { kNobody, kAsks, kMayWork };

  static RltPolicy* running();
  bool init();
  void read_rotors();
  void Run() override;
  void stop();
  void read_topics();
  void register_mode();
  void unregister_mode();
  void answer_arming_check();
  void configure_mode();
  void act();
  void ask_for_fallback();

  bool let_in();
  void let_out() { guest_.store(kNobody); }
  int try_candidate();
  int confirm();
  int roll_back();
  int set_offset(int argc, char* argv[]);
  static void print_verdict(const char* name, const FileVerdict& verdict);

  Mode* mode_ = nullptr;
  Inputs inputs_;
  // Who works on the deployment outside of Run(), which then leaves it alone.
  px4::atomic<int> guest_{kNobody};
  px4::atomic<int> offset_{0};  // that the shell was given, for Run()
  PolicyFolder folder_;
  int mode_id_ = -1, arming_check_id_ = -1;
  uint64_t registered_us_ = 0, request_id_ = 0;
  Reason told_ = Reason::none;
  orb_advert_t mavlink_log_ = nullptr;

  // Messages are members: a work queue's stack is small.
  actuator_motors_s motors_{};
  arming_check_reply_s arming_reply_{};
  arming_check_request_s arming_request_{};
  hover_thrust_estimate_s hover_{};
  parameter_update_s parameter_update_{};
  register_ext_component_reply_s registration_{};
  register_ext_component_request_s register_request_{};
  trajectory_setpoint_s setpoint_{};
  vehicle_angular_velocity_s rates_{};
  vehicle_attitude_s attitude_{};
  vehicle_command_s command_{};
  vehicle_local_position_s position_{};
  vehicle_status_s status_{};
  vehicle_thrust_setpoint_s thrust_{};

  uORB::Subscription arming_request_sub_{ORB_ID(arming_check_request)};
  uORB::Subscription hover_sub_{ORB_ID(hover_thrust_estimate)};
  uORB::Subscription parameter_update_sub_{ORB_ID(parameter_update)};
  uORB::Subscription registration_sub_{ORB_ID(register_ext_component_reply)};
  uORB::Subscription setpoint_sub_{ORB_ID(trajectory_setpoint)};
  uORB::Subscription rates_sub_{ORB_ID(vehicle_angular_velocity)};
  uORB::Subscription attitude_sub_{ORB_ID(vehicle_attitude)};
  uORB::Subscription position_sub_{ORB_ID(vehicle_local_position)};
  uORB::Subscription status_sub_{ORB_ID(vehicle_status)};

  uORB::Publication<actuator_motors_s> motors_pub_{ORB_ID(actuator_motors)};
  uORB::Publication<arming_check_reply_s> arming_reply_pub_{ORB_ID(arming_check_reply)};
  uORB::Publication<register_ext_component_request_s> register_pub_{
      ORB_ID(register_ext_component_request)};
  uORB::Publication<unregister_ext_component_s> unregister_pub_{ORB_ID(unregister_ext_component)};
  uORB::Publication<vehicle_command_s> command_pub_{ORB_ID(vehicle_command)};
  uORB::Publication<vehicle_thrust_setpoint_s> thrust_pub_{ORB_ID(vehicle_thrust_setpoint)};
#if RLT_PX4_HAS_SETPOINT_CONFIG
  uORB::Publication<setpoint_config_s> configure_pub_{ORB_ID(setpoint_config)};
#else
  uORB::Publication<vehicle_control_mode_s> configure_pub_{ORB_ID(config_control_setpoints)};
#endif

  DEFINE_PARAMETERS((ParamInt<px4::params::RLT_HEADING>)heading_,
                    (ParamInt<px4::params::RLT_FALLBACK>)fallback_,
                    (ParamFloat<px4::params::RLT_SAFE_THR>)safe_thrust_,
                    (ParamInt<px4::params::RLT_AGE_RATES>)age_rates_ms_,
                    (ParamInt<px4::params::RLT_AGE_ATT>)age_attitude_ms_,
                    (ParamInt<px4::params::RLT_AGE_POS>)age_position_ms_,
                    (ParamInt<px4::params::RLT_AGE_SP>)age_setpoint_ms_,
                    (ParamInt<px4::params::RLT_TRIAL>)trial_s_)
};

// -- start and stop
// ---------------------------------------------------------------------------------------

#if RLT_PX4_HAS_DESCRIPTOR
ModuleBase::Descriptor RltPolicy::desc{task_spawn, custom_command, print_usage};
RltPolicy* RltPolicy::running() { return get_instance<RltPolicy>(desc); }
#else
RltPolicy* RltPolicy::running() { return get_instance(); }
#endif

int RltPolicy::task_spawn(int, char*[]) {
  RltPolicy* instance = new RltPolicy();
  if (instance == nullptr || !instance->init()) {
    PX4_ERR("not enough memory");
    delete instance;
    return PX4_ERROR;
  }
#if RLT_PX4_HAS_DESCRIPTOR
  desc.object.store(instance);
  desc.task_id = task_id_is_work_queue;
#else
  _object.store(instance);
  _task_id = task_id_is_work_queue;
#endif
  instance->ScheduleOnInterval(kTick_us);
  return PX4_OK;
}

// Files are read here, in the shell's task, before Run() is called.
bool RltPolicy::init() {
  ModeSettings settings;
  settings.limits.rates_us = 1000u * static_cast<uint32_t>(age_rates_ms_.get());
  settings.limits.attitude_us = 1000u * static_cast<uint32_t>(age_attitude_ms_.get());
  settings.limits.position_us = 1000u * static_cast<uint32_t>(age_position_ms_.get());
  settings.limits.setpoint_us = 1000u * static_cast<uint32_t>(age_setpoint_ms_.get());
  settings.turns_to_heading = heading_.get() == 1;
  settings.safe_thrust = safe_thrust_.get();
  mode_ = new Mode(settings);
  if (mode_ == nullptr) return false;
  ::mkdir(RLT_PX4_FOLDER, 0777);
  print_verdict(kPolicyFile, load_policy(folder_, mode_->deployment()));
  read_rotors();
  return true;
}

void RltPolicy::read_rotors() {
  int32_t count = 0;
  param_get(param_find("CA_ROTOR_COUNT"), &count);
  Rotor rotors[kRotors] = {};
  for (int i = 0; i < kRotors; i++) {
    const char* suffixes[] = {"PX", "PY", "KM"};
    float* values[] = {&rotors[i].forward, &rotors[i].right, &rotors[i].moment};
    for (int k = 0; k < 3; k++) {
      char name[17];
      snprintf(name, sizeof(name), "CA_ROTOR%d_%s", i, suffixes[k]);
      param_get(param_find(name), values[k]);
    }
  }
  mode_->set_rotors(rotors, static_cast<int>(count));
}

void RltPolicy::stop() {
  ScheduleClear();
  unregister_mode();
#if RLT_PX4_HAS_DESCRIPTOR
  exit_and_cleanup(desc);
#else
  exit_and_cleanup();
#endif
}

// -- 500 times a second
// ---------------------------------------------------------------------------------------

void RltPolicy::Run() {
  if (should_exit()) {
    stop();
    return;
  }
  if (parameter_update_sub_.update(&parameter_update_)) {
    updateParams();
    if (!inputs_.is_armed) read_rotors();
  }
  read_topics();
  register_mode();
  act();
  answer_arming_check();
}

void RltPolicy::read_topics() {
  if (rates_sub_.update(&rates_)) {
    inputs_.rates.taken_us =
        rates_.timestamp_sample != 0 ? rates_.timestamp_sample : rates_.timestamp;
    for (int i = 0; i < 3; i++) inputs_.rates.frd_rad_s[i] = rates_.xyz[i];
  }
  if (attitude_sub_.update(&attitude_)) {
    inputs_.attitude.taken_us =
        attitude_.timestamp_sample != 0 ? attitude_.timestamp_sample : attitude_.timestamp;
    for (int i = 0; i < 4; i++) inputs_.attitude.q[i] = attitude_.q[i];
  }
  if (position_sub_.update(&position_)) {
    const vehicle_local_position_s& from = position_;
    LocalPosition& to = inputs_.position;
    to.taken_us = from.timestamp_sample != 0 ? from.timestamp_sample : from.timestamp;
    to.is_valid = from.xy_valid && from.z_valid && from.v_xy_valid && from.v_z_valid;
    const float position[3] = {from.x, from.y, from.z}, velocity[3] = {from.vx, from.vy, from.vz};
    const float delta[3] = {from.delta_xy[0], from.delta_xy[1], from.delta_z};
    for (int i = 0; i < 3; i++) {
      to.ned_m[i] = position[i];
      to.ned_m_s[i] = velocity[i];
      to.delta_m[i] = delta[i];
    }
    to.heading_rad = from.heading;
    to.delta_heading_rad = from.delta_heading;
    to.xy_resets = from.xy_reset_counter;
    to.z_resets = from.z_reset_counter;
    to.heading_resets = from.heading_reset_counter;
  }
  if (setpoint_sub_.update(&setpoint_)) {
    inputs_.setpoint.taken_us = setpoint_.timestamp;
    for (int i = 0; i < 3; i++) inputs_.setpoint.ned_m[i] = setpoint_.position[i];
  }
  if (hover_sub_.update(&hover_)) {
    inputs_.hover = {hover_.valid ? hover_.timestamp : 0, hover_.hover_thrust};
  }
  if (status_sub_.update(&status_)) {
    const bool was_selected = inputs_.is_selected;
    inputs_.is_armed = status_.arming_state == vehicle_status_s::ARMING_STATE_ARMED;
    inputs_.is_selected = mode_id_ >= 0 && status_.nav_state == mode_id_;
    if (inputs_.is_selected && !was_selected) configure_mode();
  }
}

void RltPolicy::act() {
  int asks = kAsks;
  if (!inputs_.is_armed) guest_.compare_exchange(&asks, kMayWork);
  inputs_.is_loading = guest_.load() == kMayWork;
  inputs_.now_us = hrt_absolute_time();  // after the topics were read
  int offset = offset_.load();
  if (offset != 0 && offset_.compare_exchange(&offset, 0)) {
    mode_->set_offset(offset, inputs_.now_us);
  }
  const Command command = mode_->update(inputs_);
  if (command.has_motors) {
    motors_.timestamp = inputs_.now_us;
    motors_.timestamp_sample = command.taken_us;
    for (float& control : motors_.control) control = NAN;  // no such motor
    for (int i = 0; i < kRotors; i++) motors_.control[i] = command.motors[i];
    motors_pub_.publish(motors_);
    // For the land detector and the estimate of the hover thrust.
    thrust_.timestamp = inputs_.now_us;
    thrust_.timestamp_sample = command.taken_us;
    thrust_.xyz[2] = -command.collective;
    thrust_pub_.publish(thrust_);
  }
  if (command.asks_for_fallback) ask_for_fallback();
  const Reason fault = mode_->fault();
  if (fault != told_ && fault != Reason::none) {
    mavlink_log_critical(&mavlink_log_, "%s: %s", kModeName, reason_text(fault));
  }
  told_ = fault;
}

void RltPolicy::ask_for_fallback() {
  command_ = {};
  command_.timestamp = inputs_.now_us;
  command_.command = vehicle_command_s::VEHICLE_CMD_SET_NAV_STATE;
  command_.param1 = static_cast<float>(fallback_.get());
  command_.target_system = command_.source_system = status_.system_id;
  command_.target_component = status_.component_id;
  command_.source_component = status_.component_id;
  command_pub_.publish(command_);
}

// -- the mode, as the commander sees it
// ---------------------------------------------------------------------------------------

void RltPolicy::register_mode() {
  while (registration_sub_.update(&registration_)) {
    if (registration_.request_id != request_id_ || mode_id_ >= 0) continue;
    if (!registration_.success) continue;
    mode_id_ = registration_.mode_id;
    arming_check_id_ = registration_.arming_check_id;
    configure_mode();
    PX4_INFO("mode %d, arming check %d", mode_id_, arming_check_id_);
  }
  const uint64_t now_us = hrt_absolute_time();
  if (mode_id_ >= 0 || (registered_us_ != 0 && now_us - registered_us_ < kRegisterAgain_us)) return;
  registered_us_ = now_us;
  // Not that of another start: its answer may still be there.
  if (request_id_ == 0) request_id_ = now_us;
  register_request_ = {};
  register_request_.timestamp = now_us;
  register_request_.request_id = request_id_;
  strncpy(register_request_.name, kModeName, sizeof(register_request_.name) - 1);
  register_request_.px4_ros2_api_version =
      register_ext_component_request_s::LATEST_PX4_ROS2_API_VERSION;
  register_request_.register_arming_check = true;
  register_request_.register_mode = true;
  register_pub_.publish(register_request_);
}

void RltPolicy::unregister_mode() {
  if (mode_id_ < 0) return;
  unregister_ext_component_s message{};
  message.timestamp = hrt_absolute_time();
  strncpy(message.name, kModeName, sizeof(message.name) - 1);
  message.arming_check_id = static_cast<int8_t>(arming_check_id_);
  message.mode_id = static_cast<int8_t>(mode_id_);
  message.mode_executor_id = -1;
  unregister_pub_.publish(message);
}

// PX4's controllers rest in this mode: the motors are ours.
void RltPolicy::configure_mode() {
#if RLT_PX4_HAS_SETPOINT_CONFIG
  setpoint_config_s message{};
  message.timestamp = hrt_absolute_time();
  message.source_id = static_cast<uint8_t>(mode_id_);
  message.type = setpoint_config_s::TYPE_DIRECT_ACTUATORS;
  message.should_apply = true;
#else
  vehicle_control_mode_s message{};
  message.timestamp = hrt_absolute_time();
  message.source_id = static_cast<uint8_t>(mode_id_);
  // So that the land detector takes low thrust for landing only where a descent was commanded.
  message.flag_control_climb_rate_enabled = true;
#endif
  configure_pub_.publish(message);
}

void RltPolicy::answer_arming_check() {
  if (mode_id_ < 0 || !arming_request_sub_.update(&arming_request_)) return;
  if (!counts(arming_request_, arming_check_id_, 0)) {  // the commander has forgotten the mode
    mode_id_ = arming_check_id_ = -1;
    request_id_ = 0;
    inputs_.is_selected = false;
    return;
  }
  const Reason refusal = mode_->refusal();
  arming_reply_ = {};
  arming_reply_.timestamp = hrt_absolute_time();
  arming_reply_.request_id = arming_request_.request_id;
  arming_reply_.registration_id = static_cast<uint8_t>(arming_check_id_);
  arming_reply_.health_component_index = arming_check_reply_s::HEALTH_COMPONENT_INDEX_NONE;
  arming_reply_.can_arm_and_run = refusal == Reason::none;
  arming_reply_.mode_req_angular_velocity = true;
  arming_reply_.mode_req_attitude = true;
  arming_reply_.mode_req_local_alt = true;
  arming_reply_.mode_req_local_position = true;
  arming_reply_pub_.publish(arming_reply_);
  if (inputs_.is_selected && refusal != Reason::none && refusal != told_) {
    mavlink_log_critical(&mavlink_log_, "%s: %s", kModeName, reason_text(refusal));
    told_ = refusal;
  }
}

// -- commands, in the shell's task
// ---------------------------------------------------------------------------------------

// Waits until Run() leaves the deployment alone: not while the vehicle is armed.
bool RltPolicy::let_in() {
  guest_.store(kAsks);
  for (int i = 0; i < 50; i++) {
    if (guest_.load() == kMayWork) return true;
    px4_usleep(2000);
  }
  int asks = kAsks;
  if (!guest_.compare_exchange(&asks, kNobody)) return true;  // in the last moment
  PX4_ERR("not while the vehicle is armed");
  return false;
}

int RltPolicy::try_candidate() {
  auto& deployment = mode_->deployment();
  const FileVerdict verdict = stage_file(folder_, kCandidateFile, deployment);
  print_verdict(kCandidateFile, verdict);
  if (!verdict.accepted()) return PX4_ERROR;
  const uint32_t trial_us = 1000000u * static_cast<uint32_t>(trial_s_.get());
  const auto now_us = static_cast<uint32_t>(hrt_absolute_time());
  if (deployment.start_trial(now_us, trial_us) != rlt::SlotError::none) return PX4_ERROR;
  mode_->policy_changed();
  PX4_INFO("on trial for %d s: rlt_policy confirm keeps it", static_cast<int>(trial_s_.get()));
  return PX4_OK;
}

int RltPolicy::confirm() {
  auto& deployment = mode_->deployment();
  if (!deployment.is_in_trial()) {
    PX4_ERR("no policy is on trial");
    return PX4_ERROR;
  }
  const rlt::SlotImage image = deployment.slots().candidate();
  if (!is_candidate(folder_, image.data, image.bytes)) {
    PX4_ERR("%s is not what was tried", kCandidateFile);
    return PX4_ERROR;
  }
  if (deployment.confirm(static_cast<uint32_t>(hrt_absolute_time())) != rlt::SlotError::none) {
    PX4_ERR("the trial is over");
    return PX4_ERROR;
  }
  if (!keep_candidate(folder_)) {
    PX4_ERR("files could not be renamed: after a restart the policy before acts");
    return PX4_ERROR;
  }
  PX4_INFO("kept as %s", kPolicyFile);
  return PX4_OK;
}

// Out of a trial, or to the policy before.
int RltPolicy::roll_back() {
  auto& deployment = mode_->deployment();
  const bool was_in_trial = deployment.is_in_trial();
  if (!was_in_trial) {
    if (!restore_previous(folder_)) {
      PX4_ERR("there is no policy before this one");
      return PX4_ERROR;
    }
    const FileVerdict verdict = load_policy(folder_, deployment);
    print_verdict(kPolicyFile, verdict);
    mode_->policy_changed();
    return verdict.accepted() ? PX4_OK : PX4_ERROR;
  }
  if (deployment.roll_back() != rlt::SlotError::none) return PX4_ERROR;
  mode_->policy_changed();
  PX4_INFO("the policy before acts again");
  return PX4_OK;
}

// Also in the air, since it says where the next target is and not the present one.
int RltPolicy::set_offset(int argc, char* argv[]) {
  float offset[3];
  for (int i = 0; i < 3; i++) {
    char* end = nullptr;
    offset[i] = argc == 4 ? strtof(argv[1 + i], &end) : 0.0f;
    if (end == nullptr || *end != '\0' || end == argv[1 + i]) {
      PX4_ERR("offset X Y Z, in metres");
      return PX4_ERROR;
    }
  }
  const int packed = EntryOffset::pack(offset);
  if (packed == 0) {
    PX4_ERR("an offset has at most %.1f m along an axis",
            static_cast<double>(EntryOffset::kMost_m));
    return PX4_ERROR;
  }
  offset_.store(packed);
  PX4_INFO("next target %.2f %.2f %.2f", static_cast<double>(offset[0]),
           static_cast<double>(offset[1]), static_cast<double>(offset[2]));
  return PX4_OK;
}

int RltPolicy::custom_command(int argc, char* argv[]) {
  if (argc < 1) return print_usage("no command");
  RltPolicy* module = running();
  if (module != nullptr && strcmp(argv[0], "offset") == 0) return module->set_offset(argc, argv);
  int (RltPolicy::*command)() = nullptr;
  if (strcmp(argv[0], "try") == 0) command = &RltPolicy::try_candidate;
  if (strcmp(argv[0], "confirm") == 0) command = &RltPolicy::confirm;
  if (strcmp(argv[0], "rollback") == 0) command = &RltPolicy::roll_back;
  if (command == nullptr && strcmp(argv[0], "offset") != 0) return print_usage("unknown command");
  if (module == nullptr) {
    PX4_ERR("not running");
    return PX4_ERROR;
  }
  if (!module->let_in()) return PX4_ERROR;
  const int result = (module->*command)();
  module->let_out();
  return result;
}

void RltPolicy::print_verdict(const char* name, const FileVerdict& verdict) {
  if (verdict.accepted()) {
    PX4_INFO("%s passed all checks", name);
  } else if (verdict.image.error != rlt::SlotError::none) {
    PX4_WARN("%s: error %d of the slots", name, static_cast<int>(verdict.image.error));
  } else if (!verdict.was_read) {
    PX4_WARN("%s/%s cannot be read", RLT_PX4_FOLDER, name);
  } else {
    PX4_WARN("%s refused: reason %d, at %u", name, static_cast<int>(verdict.image.verdict.reason),
             static_cast<unsigned>(verdict.image.verdict.where));
  }
}

int RltPolicy::print_status() {
  const auto& deployment = mode_->deployment();
  const auto& counts = deployment.executor().counts();
  PX4_INFO("mode %d: %s%s", mode_id_, reason_text(mode_->refusal()),
           mode_->is_acting() ? ", acting" : "");
  PX4_INFO("%s on trial", deployment.is_in_trial() ? "a policy" : "none");
  PX4_INFO("ticks %lu late %lu missed %lu, setpoints refused %lu",
           static_cast<unsigned long>(counts.ticks), static_cast<unsigned long>(counts.late),
           static_cast<unsigned long>(counts.missed),
           static_cast<unsigned long>(mode_->refused_setpoints()));
  return 0;
}

int RltPolicy::print_usage(const char* reason) {
  if (reason != nullptr) PX4_ERR("%s", reason);
  PRINT_MODULE_DESCRIPTION("A trained policy as a flight mode.");
  PRINT_MODULE_USAGE_NAME("rlt_policy", "controller");
  PRINT_MODULE_USAGE_COMMAND("start");
  PRINT_MODULE_USAGE_COMMAND_DESCR("try", "candidate.rltp acts until RLT_TRIAL is over");
  PRINT_MODULE_USAGE_COMMAND_DESCR("confirm", "keep the policy on trial");
  PRINT_MODULE_USAGE_COMMAND_DESCR("rollback", "the policy before");
  PRINT_MODULE_USAGE_COMMAND_DESCR("offset", "X Y Z: the next target, seen from the vehicle, m");
  PRINT_MODULE_USAGE_DEFAULT_COMMANDS();
  return 0;
}

extern "C" __EXPORT int rlt_policy_main(int argc, char* argv[]);
int rlt_policy_main(int argc, char* argv[]) {
#if RLT_PX4_HAS_DESCRIPTOR
  return ModuleBase::main(RltPolicy::desc, argc, argv);
#else
  return RltPolicy::main(argc, argv);
#endif
}
