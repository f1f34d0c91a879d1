#include <math.h>
#include <pthread.h>
#include <px4_platform_common/posix.h>
#include <stdio.h>
#include <string.h>

#include "rlt_policy_module.h"

using namespace rlt::px4;

namespace {

constexpr uint32_t kTick_us = rlt::contracts::Quadrotor::kStepInterval_us;
// The commander looks at what has been given back a hundred times a second. A start must not come
// first: the mode would be another one of PX4's external modes, and no switch would find it.
constexpr uint32_t kHeard_us = 100000;
// Bit of COM_RC_OVERRIDE: moved sticks end PX4's modes that fly by themselves.
constexpr int32_t kOverridesAuto = 1;

constexpr int32_t kFallbacks[] = {1, 2, 4, 12, 15, 18};  // as module.yaml has them

bool is_fallback(int32_t nav_state) {
  for (const int32_t mode : kFallbacks) {
    if (nav_state == mode) return true;
  }
  return false;
}

// Return whether a parameter is within its bounds, and log one that is not: PX4 stores any value,
// whatever module.yaml says.
bool is_within(const char* name, float value, float minimum, float maximum) {
  if (value >= minimum && value <= maximum) return true;
  PX4_ERR("%s is %g, not %g to %g: set it, then start again", name, static_cast<double>(value),
          static_cast<double>(minimum), static_cast<double>(maximum));
  return false;
}

}  // namespace

// -- start and stop -------------------------------------------------------------------------------

#if RLT_PX4_HAS_DESCRIPTOR
ModuleBase::Descriptor RltPolicy::desc{task_spawn, custom_command, print_usage};
RltPolicy* RltPolicy::running() { return get_instance<RltPolicy>(desc); }
#else
RltPolicy* RltPolicy::running() { return get_instance(); }
#endif

int RltPolicy::task_spawn(int, char*[]) {
  RltPolicy* instance = new RltPolicy();
  if (instance == nullptr) PX4_ERR("not enough memory");
  if (instance == nullptr || !instance->init()) {
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

// Initialize the module. Files are read here, in the shell's task, before Run() is called.
bool RltPolicy::init() {
  const bool fits = is_within("RLT_HEADING", heading_.get(), 0, 1) &&
                    is_within("RLT_SAFE_THR", safe_thrust_.get(), 0, 1) &&
                    is_within("RLT_AGE_RATES", age_rates_ms_.get(), 1, 100) &&
                    is_within("RLT_AGE_ATT", age_attitude_ms_.get(), 1, 200) &&
                    is_within("RLT_AGE_POS", age_position_ms_.get(), 1, 1000) &&
                    is_within("RLT_AGE_SP", age_setpoint_ms_.get(), 1, 5000);
  if (!fits) return false;
  if (!is_fallback(fallback_.get())) {
    PX4_ERR("RLT_FALLBACK is %d, none of its modes", static_cast<int>(fallback_.get()));
    return false;
  }
  ModeSettings settings;
  settings.limits.rates_us = 1000u * static_cast<uint32_t>(age_rates_ms_.get());
  settings.limits.attitude_us = 1000u * static_cast<uint32_t>(age_attitude_ms_.get());
  settings.limits.position_us = 1000u * static_cast<uint32_t>(age_position_ms_.get());
  settings.limits.setpoint_us = 1000u * static_cast<uint32_t>(age_setpoint_ms_.get());
  settings.turns_to_heading = heading_.get() == 1;
  settings.safe_thrust = safe_thrust_.get();
  mode_ = new Mode(settings);
  if (mode_ == nullptr) {
    PX4_ERR("not enough memory");
    return false;
  }
  folder_.make();
  print_verdict(kPolicyFile, load_policy(folder_, mode_->deployment()));
  read_rotors(false);
  read_override();
  read_own();
  return true;
}

// Read the parameters that count at once. Another value than theirs changes nothing, and the ground
// hears it.
void RltPolicy::read_own() {
  if (is_fallback(fallback_.get())) {
    fallback_mode_ = fallback_.get();
  } else {
    mavlink_log_critical(&mavlink_log_, "RLT_FALLBACK stays %d", static_cast<int>(fallback_mode_));
  }
  if (heading_.get() == 0 || heading_.get() == 1) {
    mode_->hold_heading(heading_.get() == 1);
  } else {
    mavlink_log_critical(&mavlink_log_, "RLT_HEADING stays as it was");
  }
}

// Read the parameters of the sticks' override. PX4 takes the vehicle to Position when the sticks
// move, in its own modes and not in this one: what it asks for, flag_control_auto_enabled, no mode
// from outside is given (PX4 of 2026-08-13; older ones would give it, and then fly by their own
// controllers). So the module asks for it, by the same parameters: MAN_OVERRIDE_SPD decides what
// moves; before it there was COM_RC_OVERRIDE.
void RltPolicy::read_override() {
  int32_t bits = kOverridesAuto;
  const param_t parameter = param_find("COM_RC_OVERRIDE");
  if (parameter != PARAM_INVALID) param_get(parameter, &bits);
  sticks_take_it_ = (bits & kOverridesAuto) != 0;
}

void RltPolicy::read_rotors(bool is_armed) {
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
  mode_->set_rotors(rotors, static_cast<int>(count), is_armed);
}

void RltPolicy::stop() {
  if (stops_us_ == 0) stops_us_ = hrt_absolute_time();
  commander_.give_back();
  if (hrt_absolute_time() - stops_us_ < kHeard_us) return;
  ScheduleClear();
#if RLT_PX4_HAS_DESCRIPTOR
  exit_and_cleanup(desc);
#else
  exit_and_cleanup();
#endif
}

// -- 500 times a second ---------------------------------------------------------------------------

void RltPolicy::Run() {
  if (should_exit()) {
    stop();
    return;
  }
  if (parameter_update_sub_.update(&parameter_update_)) {
    updateParams();
    read_rotors(inputs_.is_armed);
    read_override();
    read_own();
  }
  read_topics();
  commander_.ask();
  const CommanderMode::Question question = commander_.question();
  if (question == CommanderMode::Question::forgotten) inputs_.is_selected = false;
  if (question == CommanderMode::Question::arming_check) read_rotors(inputs_.is_armed);
  act();
  if (question == CommanderMode::Question::arming_check) answer_arming_check();
}

void RltPolicy::read_topics() {
  measurements_.read(inputs_);
  inputs_.sticks_move = inputs_.sticks_move && sticks_take_it_;
  if (status_sub_.update(&status_)) {
    const bool was_selected = inputs_.is_selected, was_armed = inputs_.is_armed;
    inputs_.is_armed = status_.arming_state == vehicle_status_s::ARMING_STATE_ARMED;
    inputs_.is_selected = commander_.is_selected(status_.nav_state);
    const bool is_entered = inputs_.is_selected && !was_selected;
    if (is_entered) commander_.configure();
    // Those that it has when it is armed are the vehicle's.
    if (is_entered || inputs_.is_armed != was_armed) read_rotors(inputs_.is_armed && was_armed);
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
  if (command.asks_for_fallback) ask_for(fallback_mode_);
  if (command.asks_for_position) {
    ask_for(vehicle_status_s::NAVIGATION_STATE_POSCTL);
    mavlink_log_info(&mavlink_log_, "Pilot took over using sticks");
  }
  const Reason fault = mode_->fault();
  if (fault != reported_ && fault != Reason::none) {
    mavlink_log_critical(&mavlink_log_, "%s: %s", kModeName, reason_text(fault));
  }
  reported_ = fault;
}

void RltPolicy::ask_for(int32_t nav_state) {
  command_ = {};
  command_.timestamp = inputs_.now_us;
  command_.command = vehicle_command_s::VEHICLE_CMD_SET_NAV_STATE;
  command_.param1 = static_cast<float>(nav_state);
  command_.target_system = command_.source_system = status_.system_id;
  command_.target_component = status_.component_id;
  command_.source_component = status_.component_id;
  command_pub_.publish(command_);
}

void RltPolicy::answer_arming_check() {
  const Reason refusal = mode_->refusal();
  commander_.answer(refusal == Reason::none);
  if (inputs_.is_selected && refusal != Reason::none && refusal != reported_) {
    mavlink_log_critical(&mavlink_log_, "%s: %s", kModeName, reason_text(refusal));
    reported_ = refusal;
  }
}

// -- commands, in the shell's task ----------------------------------------------------------------

// Wait until Run() leaves the deployment alone: not while the vehicle is armed.
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

// Return whether the module may be stopped. PX4 deletes one that does not stop within five seconds,
// so that it is refused before.
bool RltPolicy::may_be_stopped() {
  pthread_mutex_lock(&px4_modules_mutex);
  RltPolicy* module = running();
  const bool may = module == nullptr || module->let_in();
  pthread_mutex_unlock(&px4_modules_mutex);
  return may;
}

// Run a command of the shell. An offset is taken in the air as well, since it is that of the next
// target and not of the current one.
int RltPolicy::custom_command(int argc, char* argv[]) {
  enum : int { kTry, kConfirm, kRollBack, kOffset, kCommands };
  const char* const names[kCommands] = {"try", "confirm", "rollback", "offset"};
  if (argc < 1) return print_usage("no command");
  int command = 0;
  while (command < kCommands && strcmp(argv[0], names[command]) != 0) command++;
  if (command == kCommands) return print_usage("unknown command");
  RltPolicy* module = running();
  if (module == nullptr) {
    PX4_ERR("not running");
    return PX4_ERROR;
  }
  if (command == kOffset) {
    const int packed = packed_offset(argc, argv, module->mode_->envelope());
    if (packed == 0) return PX4_ERROR;
    module->offset_.store(packed);
    return PX4_OK;
  }
  if (!module->let_in()) return PX4_ERROR;
  Mode& mode = *module->mode_;
  const int result = command == kTry ? try_candidate(mode, module->folder_, module->trial_s_.get())
                     : command == kConfirm ? confirm(mode, module->folder_)
                                           : roll_back(mode, module->folder_);
  module->let_out();
  return result;
}

int RltPolicy::print_status() {
  const auto& deployment = mode_->deployment();
  const auto& counts = deployment.executor().counts();
  PX4_INFO("mode %d: %s%s", commander_.id(), reason_text(mode_->refusal()),
           mode_->is_acting() ? ", acting" : "");
  PX4_INFO("%s on trial", deployment.is_in_trial() ? "a policy" : "none");
  print_envelope(*mode_);
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
  const bool stops = argc > 1 && strcmp(argv[1], "stop") == 0;
  if (stops && !RltPolicy::may_be_stopped()) return PX4_ERROR;
#if RLT_PX4_HAS_DESCRIPTOR
  return ModuleBase::main(RltPolicy::desc, argc, argv);
#else
  return RltPolicy::main(argc, argv);
#endif
}
