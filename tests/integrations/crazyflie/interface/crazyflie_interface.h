// What the policy controller uses of the Crazyflie's firmware: names and types as they are there,
// declared anew for tests. The firmware's own headers take their place in its build.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// -- FreeRTOS
typedef struct tskTaskControlBlock* TaskHandle_t;
TaskHandle_t xTaskGetCurrentTaskHandle(void);
unsigned long uxTaskGetStackHighWaterMark(TaskHandle_t task);
void vTaskDelay(uint32_t ticks);
#define M2T(X) ((unsigned int)(X))

// -- app.h, usec_time.h
void appMain(void);
uint64_t usecTimestamp(void);

// -- stabilizer_types.h
typedef uint32_t stabilizerStep_t;
typedef struct {
  uint32_t timestamp;
  float roll, pitch, yaw;
} attitude_t;
typedef struct {
  uint32_t timestamp;
  float x, y, z;
} point_t, velocity_t;
typedef struct {
  float x, y, z, w;
} quaternion_t;
typedef struct {
  float x, y, z;
} Axis3f;
typedef struct {
  Axis3f acc, gyro;
  uint64_t interruptTimestamp;
} sensorData_t;
typedef struct {
  attitude_t attitude;
  quaternion_t attitudeQuaternion;
  point_t position;
  velocity_t velocity;
} state_t;
#define STABILIZER_NR_OF_MOTORS 4
typedef enum {
  controlModeLegacy = 0,
  controlModeForceTorque = 1,
  controlModeForce = 2,
} control_mode_t;
typedef struct {
  union {
    struct {
      int16_t roll, pitch, yaw;
      float thrust;
    };
    float normalizedForces[STABILIZER_NR_OF_MOTORS];
  };
  control_mode_t controlMode;
} control_t;
typedef enum { modeDisable = 0, modeAbs, modeVelocity } stab_mode_t;
typedef struct {
  stab_mode_t x, y, z, roll, pitch, yaw, quat;
} setpoint_mode_t;
typedef struct {
  uint32_t timestamp;
  attitude_t attitude, attitudeRate;
  quaternion_t attitudeQuaternion;
  float thrust;
  point_t position;
  velocity_t velocity;
  bool velocity_body;
  setpoint_mode_t mode;
} setpoint_t;

// -- controller.h, controller_pid.h
void controllerOutOfTreeInit(void);
bool controllerOutOfTreeTest(void);
void controllerOutOfTree(control_t* control, const setpoint_t* setpoint,
                         const sensorData_t* sensors, const state_t* state,
                         const stabilizerStep_t stabilizerStep);
void controllerPidInit(void);
bool controllerPidTest(void);
void controllerPid(control_t* control, const setpoint_t* setpoint, const sensorData_t* sensors,
                   const state_t* state, const stabilizerStep_t stabilizerStep);

// -- mem.h
typedef enum { MEM_TYPE_APP = 0x18 } MemoryType_t;
typedef struct {
  MemoryType_t type;
  uint32_t (*getSize)(const uint8_t internal_id);
  bool (*getSerialNbr)(const uint8_t internal_id, const uint8_t max_length, uint8_t* len,
                       uint8_t* buffer);
  bool (*read)(const uint8_t internal_id, const uint32_t memAddr, const uint8_t readLen,
               uint8_t* buffer);
  bool (*write)(const uint8_t internal_id, const uint32_t memAddr, const uint8_t writeLen,
                const uint8_t* buffer);
  uint8_t internal_id;
} MemoryHandlerDef_t;
void memoryRegisterHandler(const MemoryHandlerDef_t* handlerDef);

// -- param.h, log.h: tables of the names
struct named_value {
  const char* name;
  const void* address;
  unsigned bytes;
};
#define PARAM_UINT8 1
#define PARAM_UINT16 2
#define LOG_UINT8 1
#define LOG_UINT16 2
#define LOG_UINT32 4
#define LOG_FLOAT 4
#define PARAM_GROUP_START(NAME) const struct named_value params_##NAME[] = {
#define PARAM_ADD(TYPE, NAME, ADDRESS) {#NAME, ADDRESS, (TYPE) == sizeof(*(ADDRESS)) ? (TYPE) : 0},
#define PARAM_GROUP_STOP(NAME) \
  { 0, 0, 0 }                  \
  }                            \
  ;
#define LOG_GROUP_START(NAME) const struct named_value logs_##NAME[] = {
#define LOG_ADD(TYPE, NAME, ADDRESS) {#NAME, ADDRESS, (TYPE) == sizeof(*(ADDRESS)) ? (TYPE) : 0},
#define LOG_GROUP_STOP(NAME) PARAM_GROUP_STOP(NAME)
extern const struct named_value params_rlt[], logs_rlt[];

#ifdef __cplusplus
}
#endif
