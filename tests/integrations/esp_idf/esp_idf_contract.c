// A contract and a configuration as a program in C states them.
#include "esp_idf_contract.h"

static const rlt_channel_t sensors[] = {
    {"height", "m", 0.0f, 3.5f}, {"speed", "m/s", -4.0f, 4.0f}, {"angle", "rad", -3.0f, 3.0f}};
static const rlt_channel_t motors[] = {{"valve", "1", 0.0f, 1.0f},
                                       {"torque", "N*m", -0.25f, 0.75f}};
static const float safe[] = {0.0f, 0.125f};

const rlt_contract_t contract_in_c = {.step_interval_us = 2500,
                                      .observation_dim = 3,
                                      .action_dim = 2,
                                      .observations = sensors,
                                      .actions = motors,
                                      .safe_action = safe};

esp_err_t init_in_c(const char* partition, const uint8_t* built_in, uint32_t bytes) {
  const rlt_policy_config_t config = {.contract = &contract_in_c,
                                      .partition = partition,
                                      .limits = {.max_equal = 7, .recovery_ticks = 2},
                                      .built_in = built_in,
                                      .built_in_bytes = bytes};
  return rlt_policy_init(&config);
}
