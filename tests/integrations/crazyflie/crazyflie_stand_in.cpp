// The Crazyflie's app as a library of this machine, for tests that play its radio: what the
// firmware calls, with a vehicle that hovers at its target. `stand_in_turn` is one turn of the
// stabilizer.
#include "crazyflie_interface.h"
#include "interface.h"

namespace {

uint64_t now_us = 1000000;
const MemoryHandlerDef_t* app_memory = nullptr;
uint32_t turns = 0;

}  // namespace

extern "C" {

uint64_t usecTimestamp() { return now_us; }
TaskHandle_t xTaskGetCurrentTaskHandle() { return nullptr; }
unsigned long uxTaskGetStackHighWaterMark(TaskHandle_t) { return 0; }
void vTaskDelay(uint32_t) {}
void memoryRegisterHandler(const MemoryHandlerDef_t* memory) { app_memory = memory; }
void controllerPidInit() {}
bool controllerPidTest() { return true; }
void controllerPid(control_t* control, const setpoint_t*, const sensorData_t*, const state_t*,
                   const stabilizerStep_t) {
  control->controlMode = controlModeLegacy;
  control->thrust = 30000.0f;
}

void stand_in_boot() {
  controllerOutOfTreeInit();
  rlt_begin();
}

// A millisecond; the app works each 20.
void stand_in_turn() {
  now_us += 1000;
  turns++;
  sensorData_t sensors{};
  sensors.gyro.z = turns % 2 == 0 ? 0.01f : -0.01f;
  sensors.interruptTimestamp = now_us - 300;
  state_t state{};
  state.attitudeQuaternion.w = 1.0f;
  state.position.z = 1.0f + 1e-6f * static_cast<float>(turns / 10);
  setpoint_t setpoint{};
  setpoint.mode.x = setpoint.mode.y = setpoint.mode.z = setpoint.mode.yaw = modeAbs;
  setpoint.position.z = 1.0f;
  control_t control{};
  controllerOutOfTree(&control, &setpoint, &sensors, &state, turns);
  if (turns % 20 == 0) rlt_work(static_cast<uint32_t>(now_us));
}

uint32_t stand_in_memory_bytes() { return app_memory->getSize(0); }
bool stand_in_read(uint32_t address, uint8_t* bytes, uint8_t count) {
  return app_memory->read(0, address, count, bytes);
}
bool stand_in_write(uint32_t address, const uint8_t* bytes, uint8_t count) {
  return app_memory->write(0, address, count, bytes);
}
}
