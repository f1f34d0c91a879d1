// A pendulum's policy: a control task acts 20 times a second, the main task receives policies. In
// place of a link it takes the one that is embedded; in place of sensors and a motor: a model.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "freertos/FreeRTOS.h"
#include "freertos/task.h"
#include "rlt_policy.h"

extern const uint8_t received[] asm("_binary_policy_rltp_start");
extern const uint8_t received_end[] asm("_binary_policy_rltp_end");

// CONTRACT: of an exported policy it is its own, and so is the task.
static const rlt_channel_t kSensors[] = {
    {"cos_angle", "1", -1, 1}, {"sin_angle", "1", -1, 1}, {"velocity", "rad/s", -8, 8}};
static const rlt_channel_t kMotors[] = {{"torque", "N*m", -2, 2}};
static const rlt_contract_t kContract = {50000, 3, 1, kSensors, kMotors};

// END CONTRACT

// Return the time. The linux target has no esp_timer; a chip may use esp_timer_get_time().
static uint32_t now_us() { return xTaskGetTickCount() * (1000000 / configTICK_RATE_HZ); }

// TASK
static void control(void*) {
  float angle = 3.0f, velocity = 0, torque_nm = 0;
  TickType_t woken = xTaskGetTickCount();
  for (int i = 0;; i++) {
    const float sensors[] = {cosf(angle), sinf(angle), velocity};
    const rlt_policy_status_t status = rlt_policy_step(now_us(), sensors, now_us(), &torque_nm);
    velocity = fminf(fmaxf(velocity + 0.75f * sinf(angle) + 0.15f * torque_nm, -8), 8);
    angle += 0.05f * velocity;
    if (i % 20 == 0) printf("cos %5.2f: %s\n", cosf(angle), rlt_policy_status_text(status));
    vTaskDelayUntil(&woken, pdMS_TO_TICKS(50));
  }
}

// END TASK

// Receive an image as its bytes come in: here all at once, by parts of 256.
static esp_err_t receive(const uint8_t* image, uint32_t bytes) {
  esp_err_t error = rlt_policy_stage();
  for (uint32_t i = 0; i < bytes && error == ESP_OK; i += 256)
    error = rlt_policy_write(i, image + i, bytes - i < 256 ? bytes - i : 256);
  rlt_policy_verdict_t verdict = {0, 0, ""};
  if (error == ESP_OK) error = rlt_policy_finish(&verdict);
  printf("received %u bytes: %s. %s\n", (unsigned)bytes, rlt_policy_error_text(error),
         verdict.text);
  return error == ESP_OK ? rlt_policy_start_trial(now_us(), 10000000) : error;
}

extern "C" void app_main() {
  const rlt_policy_config_t config = {&kContract, "policies", {}, nullptr, 0};
  if (const esp_err_t error = rlt_policy_init(&config); error != ESP_OK) {
    printf("no policy can act: %s\n", rlt_policy_error_text(error));
    return;
  }
  xTaskCreate(control, "control", 4096, nullptr, configMAX_PRIORITIES - 2, nullptr);
  rlt_policy_state_t state;
  rlt_policy_state(now_us(), &state);
  if (memcmp(&state.acting_crc32, received + 12, 4) != 0 &&
      receive(received, static_cast<uint32_t>(received_end - received)) == ESP_OK) {
    vTaskDelay(pdMS_TO_TICKS(5000));  // the operator watches, and is content
    printf("confirmed: %d\n", rlt_policy_confirm(now_us()));
  }
  for (;; vTaskDelay(pdMS_TO_TICKS(200))) rlt_policy_poll(now_us());
}
