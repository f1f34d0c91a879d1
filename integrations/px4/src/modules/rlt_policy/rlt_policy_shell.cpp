// The module's commands, in the shell's task.
#include <pthread.h>
#include <px4_platform_common/posix.h>
#include <stdlib.h>
#include <string.h>

#include "rlt_policy_module.h"

using namespace rlt::px4;

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

// PX4 deletes a module that does not stop within five seconds, so that it is refused before.
bool RltPolicy::may_be_stopped() {
  pthread_mutex_lock(&px4_modules_mutex);
  RltPolicy* module = running();
  const bool may = module == nullptr || module->let_in();
  pthread_mutex_unlock(&px4_modules_mutex);
  return may;
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
  PX4_INFO("mode %d: %s%s", commander_.id(), reason_text(mode_->refusal()),
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
