// Between the operating system's side (crazyflie_os.c) and what decides (controller_logic.h): plain
// structs in the firmware's own units, and functions.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The state that the stabilizer loop knows, in its own signs and units.
struct RltSensed {
  uint32_t now_us;          // usecTimestamp()
  uint32_t gyro_us;         // sensorData_t.interruptTimestamp
  float gyro_deg_s[3];      // sensorData_t.gyro
  float quaternion[4];      // state_t.attitudeQuaternion: w, x, y, z; body to world
  float position_m[3];      // state_t.position, world
  float velocity_m_s[3];    // state_t.velocity, world
  float target_m[3];        // setpoint_t.position
  float target_m_s[3];      // setpoint_t.velocity
  float target_yaw_deg;     // setpoint_t.attitude.yaw
  bool is_position_target;  // x, y, z and yaw are modeAbs, and the velocity is the world's
};

// Parameters, each with its name there. The logic clears those that are asked for once.
struct RltSettings {
  uint8_t enable;      // 1: the policy flies where it may
  uint8_t confirm;     // 1: keep the policy that is on trial
  uint8_t roll_back;   // 1: give it up
  uint8_t max_faults;  // ticks without a usable observation before the stock controller takes over
  uint16_t trial_s;    // how long a policy may fly before it is confirmed
  uint16_t blend_ms;   // how long the thrust takes from the policy's to the stock controller's
  // Distance from the target, along an axis, beyond which the stock controller takes over.
  uint16_t max_error_cm;
};

enum RltPilot { RLT_PILOT_STOCK, RLT_PILOT_POLICY };

// Why the stock controller flies.
enum RltReason {
  RLT_REASON_NONE,          // it does not
  RLT_REASON_NOT_ENABLED,   //
  RLT_REASON_NO_TARGET,     // not a setpoint of a position and yaw
  RLT_REASON_NO_POLICY,     //
  RLT_REASON_UPLOAD,        // one is under way
  RLT_REASON_OBSERVATION,   // max_faults ticks in a row without a usable one, or none at first
  RLT_REASON_OUT_OF_RANGE,  // the contract's, or beyond max_error_cm; at once
  RLT_REASON_OUTPUT,        // not finite; at once
  RLT_REASON_TRIAL_OVER,    // its time, or it was rolled back
  RLT_REASON_RESTARTED,     // another controller has flown meanwhile
  // An entry outside of the policy's envelope (policy/entry_envelope.h).
  RLT_REASON_TOO_FAST,
  RLT_REASON_TOO_FAR,
  RLT_REASON_TOO_TILTED,
  RLT_REASON_TURNS_TOO_FAST,
  RLT_REASON_TOO_LOW,
};

enum RltUpload {
  RLT_UPLOAD_NONE,
  RLT_UPLOAD_RECEIVING,
  RLT_UPLOAD_CHECKING,
  RLT_UPLOAD_ACCEPTED,
  RLT_UPLOAD_REFUSED,  // the image: refusal and refusal_where say why
  RLT_UPLOAD_FAILED,   // bytes that do not fit or follow
};

// Logged values.
struct RltReport {
  uint8_t pilot;            // RltPilot
  uint8_t reason;           // RltReason: why the stock controller flies, or took over last
  uint8_t status;           // rlt::ExecutorStatus of the last tick
  uint8_t upload;           // RltUpload
  uint8_t refusal;          // rlt::PolicyReason
  uint8_t candidate;        // rlt::Candidate
  uint8_t last_drop;        // rlt::DropReason
  uint8_t has_built_in;     // 1 where the compiled-in image was accepted
  uint8_t active;           // 1 where a pushed policy was confirmed, and is kept
  uint16_t refusal_where;   // which layer, channel, number or example
  uint16_t take_overs;      // by the stock controller
  uint32_t received_bytes;  // of an upload
  uint32_t late;            // ticks
  uint32_t missed;          // ticks
};

struct RltDecision {
  enum RltPilot pilot;
  bool stock_begins;  // it has not flown in the tick before: its integrators are reset first
  float thrusts[4];   // of the policy, 0 to 1, M1 to M4
};

extern struct RltSettings rlt_settings;  // crazyflie_os.c
extern struct RltReport rlt_report;

// Functions of the stabilizer's task. rlt_restart() may be called again at any time.
void rlt_restart(void);
void rlt_decide(const struct RltSensed* sensed, struct RltDecision* decision);
float rlt_blend_thrust(float stock_thrust, float full_thrust);
// Functions of the memory's task. An image is written from offset 0 on; false where it is not
// taken.
uint32_t rlt_memory_bytes(void);
bool rlt_write(uint32_t offset, const uint8_t* bytes, uint32_t count);
bool rlt_read(uint32_t offset, uint8_t* bytes, uint32_t count);
// Functions of the app's task: rlt_begin() once, which checks the compiled-in image; then
// rlt_work() again and again, which checks what was uploaded, confirms and rolls back.
void rlt_begin(void);
void rlt_work(uint32_t now_us);

#ifdef __cplusplus
}
#endif
