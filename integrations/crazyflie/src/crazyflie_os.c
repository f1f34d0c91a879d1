// The policy controller's interface to the Crazyflie's firmware: its entry among the controllers,
// the app's task, a memory that images are written to, parameters and logged values. What it does
// with them is in policy/controller_logic.h.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "FreeRTOS.h"
#include "task.h"

#include "app.h"
#include "controller.h"
#include "controller_pid.h"
#include "log.h"
#include "mem.h"
#include "param.h"
#include "stabilizer_types.h"
#include "usec_time.h"

#include "policy/interface.h"

#define WORK_INTERVAL_MS 20
#define FULL_THRUST 65535.0f  // of controlModeLegacy

struct RltSettings rlt_settings = {
    .max_faults = 5,
    .trial_s = 20,
    .blend_ms = 100,
    .max_error_cm = 200,
};
struct RltReport rlt_report;

static float thrusts[STABILIZER_NR_OF_MOTORS];
static uint16_t decide_us;    // how long the last decision took
static uint16_t stack_words;  // of the stabilizer's task that have never been used
static TaskHandle_t stabilizer;

// -- memory --------------------------------------------------------------------------------------

static uint32_t memory_size(const uint8_t id) {
  (void)id;
  return rlt_memory_bytes();
}
static bool memory_read(const uint8_t id, const uint32_t offset, const uint8_t count,
                        uint8_t* bytes) {
  (void)id;
  return rlt_read(offset, bytes, count);
}
static bool memory_write(const uint8_t id, const uint32_t offset, const uint8_t count,
                         const uint8_t* bytes) {
  (void)id;
  return rlt_write(offset, bytes, count);
}
static const MemoryHandlerDef_t memory = {
    .type = MEM_TYPE_APP,
    .getSize = memory_size,
    .read = memory_read,
    .write = memory_write,
};

// -- the controller ------------------------------------------------------------------------------

// Initialize the controller. Called when the stabilizer starts, before the firmware refuses further
// memories, and again whenever somebody chooses this controller.
void controllerOutOfTreeInit(void) {
  static bool is_registered = false;
  if (!is_registered) {
    memoryRegisterHandler(&memory);
    is_registered = true;
  }
  controllerPidInit();
  rlt_restart();
}

bool controllerOutOfTreeTest(void) { return controllerPidTest(); }

static void sense(struct RltSensed* sensed, const setpoint_t* setpoint, const sensorData_t* sensors,
                  const state_t* state) {
  const setpoint_mode_t* mode = &setpoint->mode;
  *sensed = (struct RltSensed){
      .now_us = (uint32_t)usecTimestamp(),
      .gyro_us = (uint32_t)sensors->interruptTimestamp,
      .gyro_deg_s = {sensors->gyro.x, sensors->gyro.y, sensors->gyro.z},
      .quaternion = {state->attitudeQuaternion.w, state->attitudeQuaternion.x,
                     state->attitudeQuaternion.y, state->attitudeQuaternion.z},
      .position_m = {state->position.x, state->position.y, state->position.z},
      .velocity_m_s = {state->velocity.x, state->velocity.y, state->velocity.z},
      .target_m = {setpoint->position.x, setpoint->position.y, setpoint->position.z},
      .target_m_s = {setpoint->velocity.x, setpoint->velocity.y, setpoint->velocity.z},
      .target_yaw_deg = setpoint->attitude.yaw,
      .is_position_target = mode->x == modeAbs && mode->y == modeAbs && mode->z == modeAbs &&
                            mode->yaw == modeAbs && !setpoint->velocity_body,
  };
}

// Restart the stock controller's integrators at the current state, as when it is on the ground.
static void reset_stock_controller(control_t* control, const sensorData_t* sensors,
                                   const state_t* state) {
  static const setpoint_t off;  // no thrust
  controllerPid(control, &off, sensors, state, 0);
}

void controllerOutOfTree(control_t* control, const setpoint_t* setpoint,
                         const sensorData_t* sensors, const state_t* state,
                         const stabilizerStep_t step) {
  // Not on the stack, of which the policy needs 0.9 KB of the task's 1.8 KB.
  static struct RltSensed sensed;
  static struct RltDecision decision;
  sense(&sensed, setpoint, sensors, state);
  rlt_decide(&sensed, &decision);
  decide_us = (uint16_t)((uint32_t)usecTimestamp() - sensed.now_us);
  stabilizer = xTaskGetCurrentTaskHandle();
  for (int i = 0; i < STABILIZER_NR_OF_MOTORS; i++) thrusts[i] = decision.thrusts[i];

  if (decision.pilot == RLT_PILOT_POLICY) {
    control->controlMode = controlModeForce;
    for (int i = 0; i < STABILIZER_NR_OF_MOTORS; i++) {
      control->normalizedForces[i] = decision.thrusts[i];
    }
    return;
  }
  if (decision.stock_begins) {
    reset_stock_controller(control, sensors, state);
    // Steps in which all of it computes. The first one after a reset, which another setpoint is as
    // well, takes the whole angular velocity for a change of it: a kick, which is not flown.
    controllerPid(control, setpoint, sensors, state, 0);
    controllerPid(control, setpoint, sensors, state, 0);
  } else {
    controllerPid(control, setpoint, sensors, state, step);
  }
  control->thrust = rlt_blend_thrust(control->thrust, FULL_THRUST);
}

// -- the app -------------------------------------------------------------------------------------

void appMain(void) {
  rlt_begin();
  while (true) {
    rlt_work((uint32_t)usecTimestamp());
    if (stabilizer != NULL) stack_words = (uint16_t)uxTaskGetStackHighWaterMark(stabilizer);
    vTaskDelay(M2T(WORK_INTERVAL_MS));
  }
}

// -- parameters and logged values ----------------------------------------------------------------

// The names by which the client has them on a vehicle stay: mostFaults and mostError are max_….
PARAM_GROUP_START(rlt)
PARAM_ADD(PARAM_UINT8, enable, &rlt_settings.enable)
PARAM_ADD(PARAM_UINT8, confirm, &rlt_settings.confirm)
PARAM_ADD(PARAM_UINT8, rollBack, &rlt_settings.roll_back)
PARAM_ADD(PARAM_UINT8, mostFaults, &rlt_settings.max_faults)
PARAM_ADD(PARAM_UINT16, trial, &rlt_settings.trial_s)
PARAM_ADD(PARAM_UINT16, blend, &rlt_settings.blend_ms)
PARAM_ADD(PARAM_UINT16, mostError, &rlt_settings.max_error_cm)
PARAM_GROUP_STOP(rlt)

LOG_GROUP_START(rlt)
LOG_ADD(LOG_UINT8, pilot, &rlt_report.pilot)
LOG_ADD(LOG_UINT8, reason, &rlt_report.reason)
LOG_ADD(LOG_UINT8, status, &rlt_report.status)
LOG_ADD(LOG_UINT8, upload, &rlt_report.upload)
LOG_ADD(LOG_UINT8, refusal, &rlt_report.refusal)
LOG_ADD(LOG_UINT16, refusalAt, &rlt_report.refusal_where)
LOG_ADD(LOG_UINT8, candidate, &rlt_report.candidate)
LOG_ADD(LOG_UINT8, lastDrop, &rlt_report.last_drop)
LOG_ADD(LOG_UINT8, builtIn, &rlt_report.has_built_in)
LOG_ADD(LOG_UINT8, active, &rlt_report.active)
LOG_ADD(LOG_UINT16, takeOvers, &rlt_report.take_overs)
LOG_ADD(LOG_UINT32, received, &rlt_report.received_bytes)
LOG_ADD(LOG_UINT32, late, &rlt_report.late)
LOG_ADD(LOG_UINT32, missed, &rlt_report.missed)
LOG_ADD(LOG_FLOAT, m1, &thrusts[0])
LOG_ADD(LOG_FLOAT, m2, &thrusts[1])
LOG_ADD(LOG_FLOAT, m3, &thrusts[2])
LOG_ADD(LOG_FLOAT, m4, &thrusts[3])
LOG_ADD(LOG_UINT16, decideUs, &decide_us)
LOG_ADD(LOG_UINT16, stackLeft, &stack_words)
LOG_GROUP_STOP(rlt)
