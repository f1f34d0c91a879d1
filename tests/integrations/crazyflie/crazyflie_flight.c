// A Crazyflie in a test's hands: what its estimator would say comes in, what its motors would get
// goes out, and the app in between is the one that ships. It compiles against the declarations of
// crazyflie_interface and, with RLT_CRAZYFLIE_TREE, against the firmware's own headers: then that
// tree's estimator gives its state out, its stock controller flies where the policy does not, and
// its mixer has the last word.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "FreeRTOS.h"
#include "task.h"

#include "controller.h"
#include "controller_pid.h"
#include "mem.h"
#include "stabilizer_types.h"
#include "usec_time.h"
#ifdef RLT_CRAZYFLIE_TREE
#include "kalman_core.h"
#include "mm_pose.h"
#include "power_distribution.h"
#endif

#include "policy/interface.h"

struct Measured {
  float gyro_deg_s[3];
  float quaternion[4];  // x, y, z, w
  float position_m[3], velocity_m_s[3];
  float target_m[3], target_m_s[3];
  float target_yaw_deg;
};

static uint64_t now_us = 1000000;
static stabilizerStep_t step = 1;
static const MemoryHandlerDef_t* app_memory;

uint64_t usecTimestamp(void) { return now_us; }
TaskHandle_t xTaskGetCurrentTaskHandle(void) { return NULL; }
unsigned long uxTaskGetStackHighWaterMark(TaskHandle_t task) {
  (void)task;
  return 0;
}
void vTaskDelay(uint32_t ticks) { (void)ticks; }
void memoryRegisterHandler(const MemoryHandlerDef_t* memory) { app_memory = memory; }

#ifdef RLT_CRAZYFLIE_TREE
// The firmware's own assertions (cfassert.h).
void assertFail(char* expression, char* file, int line) {
  fprintf(stderr, "%s:%d: %s\n", file, line, expression);
  abort();
}
#else
void controllerPidInit(void) {}
bool controllerPidTest(void) { return true; }
void controllerPid(control_t* control, const setpoint_t* setpoint, const sensorData_t* sensors,
                   const state_t* state, const stabilizerStep_t stabilizerStep) {
  (void)setpoint, (void)sensors, (void)state, (void)stabilizerStep;
  control->controlMode = controlModeLegacy;
  control->roll = control->pitch = control->yaw = 0;
  control->thrust = 30000.0f;
}
#endif

#ifdef RLT_CRAZYFLIE_TREE
static kalmanCoreData_t core;
static kalmanCoreParams_t core_parameters;
static bool filters;  // the estimator has sensors only; else it is told the truth
static uint32_t filtered_ms;

// Its own variables: the velocity is the body's in them, and R comes of the attitude.
static void tell_truth(const struct Measured* m) {
  for (int i = 0; i < 4; i++) core.q[i] = m->quaternion[(i + 3) % 4];
  for (int i = 0; i < 3; i++) {
    core.S[KC_STATE_X + i] = m->position_m[i];
    core.S[KC_STATE_D0 + i] = 0.0f;
  }
  core.isUpdated = true;
  kalmanCoreFinalize(&core);
  for (int i = 0; i < 3; i++) {
    core.S[KC_STATE_PX + i] = 0.0f;
    for (int k = 0; k < 3; k++) core.S[KC_STATE_PX + i] += core.R[k][i] * m->velocity_m_s[k];
  }
}

// From here on the estimator has what flight_sense() gives it, beginning with the truth.
void flight_filter(const struct Measured* m) {
  kalmanCoreDefaultParams(&core_parameters);
  kalmanCoreInit(&core, &core_parameters, filtered_ms);
  tell_truth(m);
  filters = true;
}

// 2 ms: the accelerometer, the gyroscope of `m`, and its pose where a positioning system sees it.
void flight_sense(const struct Measured* m, const float* acc_m_s2, bool has_pose) {
  const float to_rad = 0.017453292f;
  for (int i = 0; i < 2; i++) {
    Axis3f acc = {.x = acc_m_s2[0], .y = acc_m_s2[1], .z = acc_m_s2[2]};
    Axis3f gyro = {.x = to_rad * m->gyro_deg_s[0],
                   .y = to_rad * m->gyro_deg_s[1],
                   .z = to_rad * m->gyro_deg_s[2]};
    filtered_ms++;
    kalmanCorePredict(&core, &core_parameters, &acc, &gyro, filtered_ms, true);
    kalmanCoreAddProcessNoise(&core, &core_parameters, filtered_ms);
    kalmanCoreFinalize(&core);
  }
  if (!has_pose) return;
  poseMeasurement_t pose = {.x = m->position_m[0], .y = m->position_m[1], .z = m->position_m[2]};
  pose.quat.x = m->quaternion[0];
  pose.quat.y = m->quaternion[1];
  pose.quat.z = m->quaternion[2];
  pose.quat.w = m->quaternion[3];
  pose.stdDevPos = 0.005f;
  pose.stdDevQuat = 0.02f;
  kalmanCoreUpdateWithPose(&core, &pose);
  kalmanCoreFinalize(&core);
}
#endif

// What the estimator says.
static void estimate(const struct Measured* m, const sensorData_t* sensors, state_t* state) {
#ifdef RLT_CRAZYFLIE_TREE
  if (!filters) tell_truth(m);
  kalmanCoreExternalizeState(&core, state, &sensors->acc);
#else
  (void)sensors;
  state->attitudeQuaternion.x = m->quaternion[0];
  state->attitudeQuaternion.y = m->quaternion[1];
  state->attitudeQuaternion.z = m->quaternion[2];
  state->attitudeQuaternion.w = m->quaternion[3];
  state->position.x = m->position_m[0];
  state->position.y = m->position_m[1];
  state->position.z = m->position_m[2];
  state->velocity.x = m->velocity_m_s[0];
  state->velocity.y = m->velocity_m_s[1];
  state->velocity.z = m->velocity_m_s[2];
#endif
}

// Each motor's part of its greatest thrust.
static void distribute(const control_t* control, float* motors) {
#ifdef RLT_CRAZYFLIE_TREE
  motors_thrust_uncapped_t uncapped;
  motors_thrust_pwm_t capped;
  powerDistribution(control, &uncapped);
  powerDistributionCap(&uncapped, &capped);
  for (int i = 0; i < STABILIZER_NR_OF_MOTORS; i++) motors[i] = capped.list[i] / 65535.0f;
#else
  for (int i = 0; i < STABILIZER_NR_OF_MOTORS; i++) {
    motors[i] = control->controlMode == controlModeForce ? control->normalizedForces[i]
                                                         : control->thrust / 65535.0f;
  }
#endif
}

#ifdef RLT_CRAZYFLIE_TREE
// What the firmware's mixer gives the motors for a lift, N, and torques about x, y and z, N m.
void flight_mix(float lift_n, const float* torque_nm, float* motors) {
  control_t control = {.controlMode = controlModeForceTorque};
  control.thrustSi = lift_n;
  for (int i = 0; i < 3; i++) control.torque[i] = torque_nm[i];
  distribute(&control, motors);
}
#endif

void flight_boot(void) {
#ifdef RLT_CRAZYFLIE_TREE
  filters = false;
#endif
  controllerOutOfTreeInit();
  rlt_begin();
}

// Pushes an image to a vehicle that the policy does not fly; true where it was accepted.
bool flight_push(const uint8_t* image, uint32_t bytes) {
  rlt_settings.max_error_cm = 500;  // the contract's range
  rlt_settings.roll_back = 1;        // what is on trial keeps its slot
  rlt_work((uint32_t)now_us);
  for (uint32_t at = 0; at < bytes; at += 24) {
    const uint32_t left = bytes - at;
    if (!app_memory->write(0, at, (uint8_t)(left < 24 ? left : 24), image + at)) return false;
  }
  rlt_work((uint32_t)now_us);
  return rlt_report.upload == RLT_UPLOAD_ACCEPTED;
}

// The policy may fly from the next turn on, or must not.
void flight_enable(bool enable) { rlt_settings.enable = enable; }

// A turn of the stabilizer, a millisecond after the last. True where the policy flies.
bool flight_turn(const struct Measured* m, float* motors) {
  now_us += 1000;
  sensorData_t sensors = {.interruptTimestamp = now_us - 300};
  sensors.gyro.x = m->gyro_deg_s[0];
  sensors.gyro.y = m->gyro_deg_s[1];
  sensors.gyro.z = m->gyro_deg_s[2];
  sensors.acc.z = 1.0f;
  state_t state = {0};
  estimate(m, &sensors, &state);
  setpoint_t setpoint = {0};
  setpoint.mode.x = setpoint.mode.y = setpoint.mode.z = setpoint.mode.yaw = modeAbs;
  setpoint.position.x = m->target_m[0];
  setpoint.position.y = m->target_m[1];
  setpoint.position.z = m->target_m[2];
  setpoint.velocity.x = m->target_m_s[0];
  setpoint.velocity.y = m->target_m_s[1];
  setpoint.velocity.z = m->target_m_s[2];
  setpoint.attitude.yaw = m->target_yaw_deg;
  static control_t control;  // what a controller leaves alone stays, as in the stabilizer's loop
  controllerOutOfTree(&control, &setpoint, &sensors, &state, step++);
  distribute(&control, motors);
  return rlt_report.pilot == RLT_PILOT_POLICY;
}

// A turn in which it hovers at its target; the app works each 20.
void flight_hover(void) {
  static uint32_t turns;
  turns++;
  struct Measured m = {.quaternion = {0, 0, 0, 1}, .target_m = {0, 0, 1}};
  m.gyro_deg_s[2] = turns % 2 == 0 ? 0.01f : -0.01f;
  m.position_m[2] = 1.0f + 1e-6f * (float)(turns / 10);
  float motors[STABILIZER_NR_OF_MOTORS];
  flight_turn(&m, motors);
  if (turns % 20 == 0) rlt_work((uint32_t)now_us);
}

// -- the app's memory, for a radio
uint32_t flight_memory_bytes(void) { return app_memory->getSize(0); }
bool flight_read(uint32_t address, uint8_t* bytes, uint8_t count) {
  return app_memory->read(0, address, count, bytes);
}
bool flight_write(uint32_t address, const uint8_t* bytes, uint8_t count) {
  return app_memory->write(0, address, count, bytes);
}
