// A policy in a control task of ESP-IDF, with two slots for policy images in a partition: C and
// C++.
//
// Two kinds of tasks call it. The control task calls rlt_policy_step() and nothing else. Another
// task takes new images and decides what becomes of them: it alone writes and erases flash. One
// task of each kind at a time needs no further care; the receiving functions wait for each other.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "esp_err.h"

#ifdef __cplusplus
#include "rltools/policy/executor.h"
typedef rlt::Channel rlt_channel_t;
typedef rlt::PolicyContract rlt_contract_t;
typedef rlt::ExecutorLimits rlt_limits_t;
extern "C" {
#else
// The meaning of observations and actions, and the rate: policy/contract.h of the library.
typedef struct {
  const char* name;
  const char* unit;  // SI, "1" where it has none
  float minimum, maximum;
} rlt_channel_t;
typedef struct {
  uint32_t step_interval_us;
  int observation_dim, action_dim;
  const rlt_channel_t* observations;
  const rlt_channel_t* actions;
  const float* safe_action;  // null: the middle of every range
  uint32_t assumed;          // what of these nobody stated; 0: everything is
} rlt_contract_t;
// Limits of the executor; 0 is the default of each: policy/executor.h.
typedef struct {
  uint32_t max_age_us;
  uint32_t jitter_us;
  uint32_t max_equal;
  float range_margin;
  uint32_t recovery_ticks;
  uint32_t give_up_ticks;
} rlt_limits_t;
#endif

// The outcome of a step: docs/executor.md. All from RLT_POLICY_NONE on are faults.
typedef enum {
  RLT_POLICY_ACTED,
  RLT_POLICY_HELD,
  RLT_POLICY_NONE,
  RLT_POLICY_OBSERVATION_MISSING,
  RLT_POLICY_OBSERVATION_STALE,
  RLT_POLICY_OBSERVATION_OUT_OF_ORDER,
  RLT_POLICY_OBSERVATION_FROZEN,
  RLT_POLICY_OBSERVATION_NOT_FINITE,
  RLT_POLICY_OBSERVATION_OUT_OF_RANGE,
  RLT_POLICY_OUTPUT_NOT_FINITE,
  RLT_POLICY_RECOVERING,
  RLT_POLICY_GIVEN_UP,
} rlt_policy_status_t;

// Errors of the receiving functions.
enum {
  RLT_POLICY_ERR_BASE = 0x52000,
  RLT_POLICY_ERR_TOO_LARGE,       // the image exceeds a slot
  RLT_POLICY_ERR_IN_TRIAL,        // a trial is under way
  RLT_POLICY_ERR_NOT_IN_ORDER,    // bytes are missing before these
  RLT_POLICY_ERR_NOT_STAGED,      // there is no image to try
  RLT_POLICY_ERR_NO_TRIAL,        // there is no trial to confirm
  RLT_POLICY_ERR_NO_PREVIOUS,     // there is nothing to roll back to
  RLT_POLICY_ERR_INCOMPLETE,      // there are no bytes of an image
  RLT_POLICY_ERR_STORAGE_FAILED,  // the flash reported a failure, or reads back other bytes
  RLT_POLICY_ERR_REFUSED,         // the image: rlt_policy_verdict_t says why
  // And the number of the reason (docs/policy_image.md): why the built-in image was refused.
  RLT_POLICY_ERR_BUILT_IN = 0x52100,
};

typedef struct {
  const rlt_contract_t* contract;  // with its channels: not copied
  const char* partition;           // label of a data partition
  rlt_limits_t limits;
  const uint8_t* built_in;  // acts where no pushed policy does; four-byte aligned, or null
  uint32_t built_in_bytes;
} rlt_policy_config_t;

// Why an image was refused: docs/policy_image.md.
typedef struct {
  uint8_t reason;
  uint32_t where;
  const char* text;
} rlt_policy_verdict_t;

typedef struct {
  bool acts;                // a policy does
  bool in_trial;            // a pushed one, until it is confirmed or dropped
  uint8_t candidate;        // and why one was dropped last: docs/policy_slots.md
  uint8_t last_drop;        //
  uint32_t acting_crc32;    // the field of its header
  uint32_t received_bytes;  // of the image that is being staged
  uint32_t slot_bytes;
  uint32_t trial_left_us;
  uint32_t ticks, late, missed;
} rlt_policy_state_t;

// Initialize the policy, once, before the tasks start. The last good policy of the partition acts
// then, the built-in one, or none. ESP_ERR_NOT_FOUND: no such partition. ESP_ERR_NOT_SUPPORTED: it
// is encrypted, read-only or has other sectors than 4,096 bytes. ESP_ERR_INVALID_SIZE: it has fewer
// than four sectors. ESP_ERR_INVALID_ARG: the contract has no action, or more than
// CONFIG_RLT_POLICY_MAX_ACTIONS. ESP_ERR_INVALID_STATE: it was called before. Above
// RLT_POLICY_ERR_BUILT_IN: the built-in policy is refused; all else works, and others may act.
esp_err_t rlt_policy_init(const rlt_policy_config_t* config);
// Return an error of these functions in words.
const char* rlt_policy_error_text(esp_err_t error);

// -- control task ---------------------------------------------------------------------------------

// Act, at the contract's rate or faster. `observation` (null where there is none) was taken at
// `taken_us`; times are of one 32-bit clock of microseconds, which wraps. The action is always set:
// finite, within its ranges, and the contract's safe one on a fault.
rlt_policy_status_t rlt_policy_step(uint32_t now_us, const float* observation, uint32_t taken_us,
                                    float* action);
bool rlt_policy_is_fault(rlt_policy_status_t status);
const char* rlt_policy_status_text(rlt_policy_status_t status);

// -- receiving task -------------------------------------------------------------------------------

// Receive a new image: stage, write its bytes in order and in parts of any size, finish. It is then
// whole, checked and staged; what acts is untouched. `verdict` may be null.
esp_err_t rlt_policy_stage(void);
esp_err_t rlt_policy_write(uint32_t offset, const void* bytes, uint32_t count);
esp_err_t rlt_policy_finish(rlt_policy_verdict_t* verdict);

// Let the staged image act for at most `trial_us`; confirmed within that time it stays, else it is
// dropped for the one before. A reset during the trial drops it as well.
esp_err_t rlt_policy_start_trial(uint32_t now_us, uint32_t trial_us);
esp_err_t rlt_policy_confirm(uint32_t now_us);
// End a trial, or return to the policy before the active one.
esp_err_t rlt_policy_roll_back(void);

// End a trial that is over, and write down what the control task has decided meanwhile; to be
// called some times a second.
esp_err_t rlt_policy_poll(uint32_t now_us);

void rlt_policy_state(uint32_t now_us, rlt_policy_state_t* state);

#ifdef __cplusplus
}
#endif
