// The policy's interface to ESP-IDF: a partition, two mutexes, and its functions in C.
#include "rlt_policy.h"

#include "esp_partition.h"
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "rltools/this_processor.h"
#include "sdkconfig.h"
#include "shared_policy.h"

using namespace rlt;

namespace {

class Mutex {
 public:
  void create() { handle_ = xSemaphoreCreateMutexStatic(&memory_); }
  void lock() { xSemaphoreTake(handle_, portMAX_DELAY); }
  void unlock() { xSemaphoreGive(handle_); }

 private:
  StaticSemaphore_t memory_;
  SemaphoreHandle_t handle_;
};

// ESP-IDF keeps what is mapped up to date when the flash is written.
class Partition {
 public:
  static constexpr std::uint32_t kEraseBytes = 4096;
  static constexpr std::uint32_t kProgramBytes = 32;

  esp_err_t open(const char* label) {
    partition_ =
        esp_partition_find_first(ESP_PARTITION_TYPE_DATA, ESP_PARTITION_SUBTYPE_ANY, label);
    if (partition_ == nullptr) return ESP_ERR_NOT_FOUND;
    if (partition_->encrypted || partition_->readonly || partition_->erase_size != kEraseBytes) {
      return ESP_ERR_NOT_SUPPORTED;
    }
    if (size() < 4 * kEraseBytes) return ESP_ERR_INVALID_SIZE;
    esp_partition_mmap_handle_t handle;
    return esp_partition_mmap(partition_, 0, size(), ESP_PARTITION_MMAP_DATA, &data_, &handle);
  }

  std::uint32_t size() const { return partition_->size / kEraseBytes * kEraseBytes; }
  const std::uint8_t* data() const { return static_cast<const std::uint8_t*>(data_); }
  bool erase(std::uint32_t offset) {
    return esp_partition_erase_range(partition_, offset, kEraseBytes) == ESP_OK;
  }
  bool program(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    return esp_partition_write(partition_, offset, source, count) == ESP_OK;
  }

 private:
  const esp_partition_t* partition_ = nullptr;
  const void* data_ = nullptr;
};

constexpr int kMaxActions = CONFIG_RLT_POLICY_MAX_ACTIONS;
constexpr std::size_t kWidest = CONFIG_RLT_POLICY_WIDEST_LAYER;
constexpr std::size_t kUnits = CONFIG_RLT_POLICY_RECURRENT_UNITS;
// Scratch memory that no layers of these sizes exceed: for examples outputs and actions; for steps
// hidden states and the indices of past actions, which are observations.
constexpr std::size_t kToAccept = kWidest + kMaxActions;
constexpr std::size_t kToStep = 4 * kUnits + (kWidest + 1) / 2;
constexpr std::size_t kScratchFloats =
    rlt::scratch_floats_to_run(kWidest, rlt::products_of(rlt::kLstmGates, kUnits), 2 * kUnits) +
    (kToAccept > kToStep ? kToAccept : kToStep);
using SharedPolicy =
    esp_idf::SharedPolicy<ThisProcessor, Partition, Mutex, kMaxActions, kScratchFloats>;

Partition partition;
Mutex receiver, state_of_policies;
SharedPolicy* policy = nullptr;

static_assert(RLT_POLICY_GIVEN_UP == static_cast<int>(ExecutorStatus::given_up) &&
                  RLT_POLICY_NONE == static_cast<int>(ExecutorStatus::no_policy) &&
                  RLT_POLICY_OUTPUT_NOT_FINITE ==
                      static_cast<int>(ExecutorStatus::output_not_finite),
              "rlt_policy_status_t has the numbers of ExecutorStatus");
static_assert(RLT_POLICY_ERR_STORAGE_FAILED - RLT_POLICY_ERR_BASE ==
                      static_cast<int>(SlotError::storage_failed) &&
                  RLT_POLICY_ERR_NO_TRIAL - RLT_POLICY_ERR_BASE ==
                      static_cast<int>(SlotError::no_trial),
              "RLT_POLICY_ERR_* have the numbers of SlotError");

esp_err_t result_of(SlotError error) {
  return error == SlotError::none ? ESP_OK : RLT_POLICY_ERR_BASE + static_cast<int>(error);
}

}  // namespace

esp_err_t rlt_policy_init(const rlt_policy_config_t* config) {
  if (policy != nullptr) return ESP_ERR_INVALID_STATE;
  const PolicyContract& contract = *config->contract;
  if (contract.action_dim < 1 || contract.action_dim > kMaxActions) return ESP_ERR_INVALID_ARG;
  const esp_err_t error = partition.open(config->partition);
  if (error != ESP_OK) return error;
  receiver.create();
  state_of_policies.create();
  static SharedPolicy the_policy(partition, receiver, state_of_policies, contract, config->limits);
  const PolicyVerdict verdict = the_policy.begin(config->built_in, config->built_in_bytes);
  policy = &the_policy;
  return verdict.accepted() ? ESP_OK : RLT_POLICY_ERR_BUILT_IN + static_cast<int>(verdict.reason);
}

const char* rlt_policy_error_text(esp_err_t error) {
  if (error > RLT_POLICY_ERR_BUILT_IN) {
    return policy_reason_text(static_cast<PolicyReason>(error - RLT_POLICY_ERR_BUILT_IN));
  }
  switch (error) {
    case ESP_OK: return "done";
    case ESP_ERR_NOT_FOUND: return "there is no such partition";
    case ESP_ERR_NOT_SUPPORTED: return "the partition is encrypted, read-only or has other sectors";
    case ESP_ERR_INVALID_SIZE: return "the partition has fewer than four sectors";
    case ESP_ERR_INVALID_ARG: return "the contract has no action, or more than Kconfig says";
    case ESP_ERR_INVALID_STATE: return "it was called before";
    case RLT_POLICY_ERR_TOO_LARGE: return "the image exceeds a slot of the partition";
    case RLT_POLICY_ERR_IN_TRIAL: return "a trial is under way";
    case RLT_POLICY_ERR_NOT_IN_ORDER: return "bytes are missing before these";
    case RLT_POLICY_ERR_NOT_STAGED: return "there is no image to try";
    case RLT_POLICY_ERR_NO_TRIAL: return "there is no trial to confirm";
    case RLT_POLICY_ERR_NO_PREVIOUS: return "there is nothing to roll back to";
    case RLT_POLICY_ERR_INCOMPLETE: return "there are no bytes of an image";
    case RLT_POLICY_ERR_STORAGE_FAILED: return "the flash reported a failure";
    case RLT_POLICY_ERR_REFUSED: return "the image is refused: the verdict says why";
    default: return "unknown";
  }
}

rlt_policy_status_t rlt_policy_step(std::uint32_t now_us, const float* observation,
                                    std::uint32_t taken_us, float* action) {
  return static_cast<rlt_policy_status_t>(policy->step(now_us, {observation, taken_us}, action));
}
bool rlt_policy_is_fault(rlt_policy_status_t status) {
  return is_fault(static_cast<ExecutorStatus>(status));
}
const char* rlt_policy_status_text(rlt_policy_status_t status) {
  return executor_status_text(static_cast<ExecutorStatus>(status));
}

esp_err_t rlt_policy_stage() { return result_of(policy->stage()); }
esp_err_t rlt_policy_write(std::uint32_t offset, const void* bytes, std::uint32_t count) {
  return result_of(policy->write(offset, static_cast<const std::uint8_t*>(bytes), count));
}
esp_err_t rlt_policy_finish(rlt_policy_verdict_t* verdict) {
  const StageVerdict result = policy->finish();
  if (verdict != nullptr) {
    *verdict = {static_cast<std::uint8_t>(result.verdict.reason), result.verdict.where,
                policy_reason_text(result.verdict.reason)};
  }
  if (result.error != SlotError::none) return result_of(result.error);
  return result.accepted() ? ESP_OK : RLT_POLICY_ERR_REFUSED;
}

esp_err_t rlt_policy_start_trial(std::uint32_t now_us, std::uint32_t trial_us) {
  return result_of(policy->start_trial(now_us, trial_us));
}
esp_err_t rlt_policy_confirm(std::uint32_t now_us) { return result_of(policy->confirm(now_us)); }
esp_err_t rlt_policy_roll_back() { return result_of(policy->roll_back()); }
esp_err_t rlt_policy_poll(std::uint32_t now_us) {
  return policy->poll(now_us) ? ESP_OK : RLT_POLICY_ERR_STORAGE_FAILED;
}

void rlt_policy_state(std::uint32_t now_us, rlt_policy_state_t* state) {
  policy->look([&](auto& deployment) {
    const auto& slots = deployment.slots();
    const auto* acting = deployment.acting();
    const ExecutorCounts& counts = deployment.executor().counts();
    *state = {};
    state->acts = acting != nullptr;
    state->in_trial = deployment.is_in_trial();
    state->candidate = static_cast<std::uint8_t>(slots.candidate_state());
    state->last_drop = static_cast<std::uint8_t>(slots.last_drop());
    state->acting_crc32 = acting == nullptr ? 0 : acting->view()->header->crc32;
    state->received_bytes = slots.received();
    state->slot_bytes = slots.slot_bytes();
    state->trial_left_us = slots.trial_left_us(now_us);
    state->ticks = counts.ticks;
    state->late = counts.late;
    state->missed = counts.missed;
  });
}
