#include "rlt_policy_shell.h"

#include <drivers/drv_hrt.h>
#include <px4_platform_common/log.h>
#include <stdlib.h>

namespace rlt::px4 {

int try_candidate(Mode& mode, PolicyFolder& folder, int trial_s) {
  if (trial_s < 10 || trial_s > 1800) {
    PX4_ERR("RLT_TRIAL is %d, not 10 to 1800", trial_s);
    return PX4_ERROR;
  }
  auto& deployment = mode.deployment();
  const FileVerdict verdict = stage_file(folder, kCandidateFile, deployment);
  print_verdict(kCandidateFile, verdict);
  if (!verdict.accepted()) return PX4_ERROR;
  const uint32_t trial_us = 1000000u * static_cast<uint32_t>(trial_s);
  const auto now_us = static_cast<uint32_t>(hrt_absolute_time());
  if (deployment.start_trial(now_us, trial_us) != SlotError::none) return PX4_ERROR;
  mode.policy_changed();
  PX4_INFO("on trial for %d s: rlt_policy confirm keeps it", trial_s);
  return PX4_OK;
}

int confirm(Mode& mode, PolicyFolder& folder) {
  auto& deployment = mode.deployment();
  if (!deployment.is_in_trial()) {
    PX4_ERR("no policy is on trial");
    return PX4_ERROR;
  }
  const SlotImage image = deployment.slots().candidate();
  if (!is_candidate(folder, image.data, image.bytes)) {
    PX4_ERR("%s is not what was tried", kCandidateFile);
    return PX4_ERROR;
  }
  if (deployment.confirm(static_cast<uint32_t>(hrt_absolute_time())) != SlotError::none) {
    PX4_ERR("the trial is over");
    return PX4_ERROR;
  }
  if (!keep_candidate(folder)) {
    PX4_ERR("files could not be renamed: after a restart the policy before acts");
    return PX4_ERROR;
  }
  PX4_INFO("kept as %s", kPolicyFile);
  return PX4_OK;
}

int roll_back(Mode& mode, PolicyFolder& folder) {
  auto& deployment = mode.deployment();
  const bool was_in_trial = deployment.is_in_trial();
  if (!was_in_trial) {
    if (!restore_previous(folder)) {
      PX4_ERR("there is no policy before this one");
      return PX4_ERROR;
    }
    const FileVerdict verdict = load_policy(folder, deployment);
    print_verdict(kPolicyFile, verdict);
    mode.policy_changed();
    return verdict.accepted() ? PX4_OK : PX4_ERROR;
  }
  if (deployment.roll_back() != SlotError::none) return PX4_ERROR;
  mode.policy_changed();
  PX4_INFO("the policy before acts again");
  return PX4_OK;
}

int packed_offset(int argc, char* argv[], const EntryEnvelope& envelope) {
  float offset[3];
  for (int i = 0; i < 3; i++) {
    char* end = nullptr;
    offset[i] = argc == 4 ? strtof(argv[1 + i], &end) : 0.0f;
    if (end == nullptr || *end != '\0' || end == argv[1 + i]) {
      PX4_ERR("offset X Y Z, in meters");
      return 0;
    }
  }
  const int packed = EntryOffset::pack(offset);
  if (packed == 0 || EntryOffset::distance_m(packed) > envelope.offset_m) {
    PX4_ERR("this policy may be handed a target at most %.2f m away",
            static_cast<double>(envelope.offset_m));
    return 0;
  }
  PX4_INFO("next target %.2f %.2f %.2f", static_cast<double>(offset[0]),
           static_cast<double>(offset[1]), static_cast<double>(offset[2]));
  return packed;
}

// Print the states in which the policy may be handed the vehicle, and whether its image states
// them.
void print_envelope(Mode& mode) {
  const EntryEnvelope& envelope = mode.envelope();
  const auto* policy = mode.deployment().acting();
  PX4_INFO("entry %.2f m/s %.2f m %.0f deg %.2f rad/s, from %.2f m up: %s",
           static_cast<double>(envelope.speed_m_s), static_cast<double>(envelope.offset_m),
           static_cast<double>(envelope.tilt_rad / vehicles::kRadians),
           static_cast<double>(envelope.rate_rad_s), static_cast<double>(envelope.height_m),
           policy != nullptr && policy->view()->states_entry ? "stated by the policy"
                                                             : "assumed, the policy states none");
}

void print_verdict(const char* name, const FileVerdict& verdict) {
  if (!verdict.is_there) {
    PX4_INFO("no policy yet: %s has no %s", RLT_PX4_FOLDER, name);
  } else if (verdict.accepted()) {
    PX4_INFO("%s passed all checks", name);
  } else if (verdict.image.error != SlotError::none) {
    PX4_WARN("%s: error %d of the slots", name, static_cast<int>(verdict.image.error));
  } else if (!verdict.was_read) {
    PX4_WARN("%s/%s cannot be read", RLT_PX4_FOLDER, name);
  } else {
    PX4_WARN("%s refused: reason %d, at %u", name, static_cast<int>(verdict.image.verdict.reason),
             static_cast<unsigned>(verdict.image.verdict.where));
  }
}

}  // namespace rlt::px4
