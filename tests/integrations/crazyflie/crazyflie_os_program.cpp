// What crazyflie_os.c tells the logic and the firmware: the logic, the stock controller and the
// operating system are played by this program.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "crazyflie_interface.h"
#include "interface.h"

namespace {

struct PidCall {
  setpoint_t setpoint;
  stabilizerStep_t step;
};

struct World {
  std::uint64_t now = 0x500000010ull;
  RltSensed sensed{};
  RltDecision decision{};
  int restarts = 0, pid_inits = 0, begins = 0, works = 0, delay = 0;
  std::uint32_t worked_at = 0;
  std::vector<PidCall> pid_calls;
  float pid_measured = 21;  // what run() senses of the roll's rate
  float blended = 0;
  std::vector<const MemoryHandlerDef_t*> memories;
  std::string memory_call;
};
World world;

struct End : std::runtime_error {
  End() : std::runtime_error("the app would run forever") {}
};

bool is_empty(const setpoint_t& setpoint) {
  static const setpoint_t none{};
  return setpoint.thrust == 0 && std::memcmp(&setpoint.mode, &none.mode, sizeof none.mode) == 0;
}

}  // namespace

extern "C" {
uint64_t usecTimestamp() { return world.now += 7; }
TaskHandle_t xTaskGetCurrentTaskHandle() { return reinterpret_cast<TaskHandle_t>(&world); }
unsigned long uxTaskGetStackHighWaterMark(TaskHandle_t task) {
  return task == reinterpret_cast<TaskHandle_t>(&world) ? 123 : 0;
}
void vTaskDelay(uint32_t ticks) {
  world.delay = static_cast<int>(ticks);
  if (world.works == 3) throw End();
}
void memoryRegisterHandler(const MemoryHandlerDef_t* memory) { world.memories.push_back(memory); }
void controllerPidInit() { world.pid_inits++; }
bool controllerPidTest() { return true; }
// As the firmware's: another kind of setpoint resets it, and its derivative begins at 0.
void controllerPid(control_t* control, const setpoint_t* setpoint, const sensorData_t* sensors,
                   const state_t*, const stabilizerStep_t step) {
  if (!world.pid_calls.empty()) {
    const setpoint_mode_t& before = world.pid_calls.back().setpoint.mode;
    if (std::memcmp(&setpoint->mode, &before, sizeof before) != 0) world.pid_measured = 0;
  }
  const float change = sensors->gyro.x - world.pid_measured;
  world.pid_measured = sensors->gyro.x;
  world.pid_calls.push_back({*setpoint, step});
  control->controlMode = controlModeLegacy;
  control->roll = static_cast<int16_t>(11 - 100 * change);
  control->pitch = 12;
  control->yaw = 13;
  control->thrust = 30000.0f;
}
void rlt_restart() { world.restarts++; }
void rlt_decide(const RltSensed* sensed, RltDecision* decision) {
  world.sensed = *sensed;
  *decision = world.decision;
}
float rlt_blend_thrust(float stock, float full) {
  world.blended = stock;
  return full / 2;
}
uint32_t rlt_memory_bytes() { return 4711; }
bool rlt_write(uint32_t offset, const uint8_t* bytes, uint32_t count) {
  world.memory_call = "write " + std::to_string(offset) + " " + std::to_string(bytes[0]) + " " +
                      std::to_string(count);
  return offset != 99;
}
bool rlt_read(uint32_t offset, uint8_t* bytes, uint32_t count) {
  world.memory_call = "read " + std::to_string(offset) + " " + std::to_string(count);
  bytes[0] = 77;
  return true;
}
void rlt_begin() { world.begins++; }
void rlt_work(uint32_t now_us) {
  world.works++;
  world.worked_at = now_us;
}
}

namespace {

setpoint_t position_setpoint() {
  setpoint_t setpoint{};
  setpoint.mode.x = setpoint.mode.y = setpoint.mode.z = setpoint.mode.yaw = modeAbs;
  setpoint.position = {0, 1, 2, 3};
  setpoint.velocity = {0, 4, 5, 6};
  setpoint.attitude.yaw = 7;
  return setpoint;
}

control_t run(const setpoint_t& setpoint, stabilizerStep_t step = 3) {
  sensorData_t sensors{};
  sensors.gyro = {21, 22, 23};
  sensors.interruptTimestamp = 0x500000001ull;
  state_t state{};
  state.attitude = {0, 31, 32, 33};
  state.attitudeQuaternion.w = 41;
  state.attitudeQuaternion.x = 42;
  state.attitudeQuaternion.y = 43;
  state.attitudeQuaternion.z = 44;
  state.position = {0, 51, 52, 53};
  state.velocity = {0, 61, 62, 63};
  control_t control{};
  controllerOutOfTree(&control, &setpoint, &sensors, &state, step);
  return control;
}

void check(const float* values, float first, int count = 3) {
  for (int i = 0; i < count; i++) CHECK(values[i] == first + static_cast<float>(i));
}

}  // namespace

TEST_CASE("the memory is registered once, however often the controller is chosen") {
  world = World{};
  controllerOutOfTreeInit();
  controllerOutOfTreeInit();
  CHECK(controllerOutOfTreeTest());
  CHECK(world.restarts == 2);
  CHECK(world.pid_inits == 2);
  REQUIRE(world.memories.size() == 1);
  const MemoryHandlerDef_t& memory = *world.memories[0];
  CHECK(memory.type == MEM_TYPE_APP);
  CHECK(memory.getSize(0) == 4711);
  std::uint8_t bytes[30] = {5};
  CHECK(memory.write(0, 50, 25, bytes));
  CHECK(world.memory_call == "write 50 5 25");
  CHECK_FALSE(memory.write(0, 99, 25, bytes));
  CHECK(memory.read(0, 60, 20, bytes));
  CHECK(world.memory_call == "read 60 20");
  CHECK(bytes[0] == 77);
}

TEST_CASE("the logic sees each number in its place") {
  world = World{};
  run(position_setpoint());
  CHECK(world.sensed.now_us == 0x17);
  CHECK(world.sensed.gyro_us == 1);
  check(world.sensed.gyro_deg_s, 21);
  check(world.sensed.quaternion, 41, 4);
  check(world.sensed.position_m, 51);
  check(world.sensed.velocity_m_s, 61);
  check(world.sensed.target_m, 1);
  check(world.sensed.target_m_s, 4);
  CHECK(world.sensed.target_yaw_deg == 7);
  CHECK(world.sensed.is_position_target);
}

TEST_CASE("a target is a position and a yaw") {
  world = World{};
  const auto is_target = [](auto&& change) {
    setpoint_t setpoint = position_setpoint();
    change(setpoint);
    run(setpoint);
    return world.sensed.is_position_target;
  };
  CHECK(is_target([](setpoint_t&) {}));
  CHECK_FALSE(is_target([](setpoint_t& s) { s = {}; }));
  CHECK_FALSE(is_target([](setpoint_t& s) { s.mode.x = modeVelocity; }));
  CHECK_FALSE(is_target([](setpoint_t& s) { s.mode.y = modeDisable; }));
  CHECK_FALSE(is_target([](setpoint_t& s) { s.mode.z = modeVelocity; }));
  CHECK_FALSE(is_target([](setpoint_t& s) { s.mode.yaw = modeVelocity; }));
  CHECK_FALSE(is_target([](setpoint_t& s) { s.velocity_body = true; }));
}

TEST_CASE("the policy's thrusts go to the rotors of the same number") {
  world = World{};
  world.decision = {RLT_PILOT_POLICY, false, {0.1f, 0.2f, 0.3f, 0.4f}};
  const control_t control = run(position_setpoint());
  CHECK(control.controlMode == controlModeForce);
  for (int i = 0; i < 4; i++) CHECK(control.normalizedForces[i] == world.decision.thrusts[i]);
  CHECK(world.pid_calls.empty());
}

TEST_CASE("the stock controller flies with the setpoint and the step as they are") {
  world = World{};
  const control_t control = run(position_setpoint(), 17);
  REQUIRE(world.pid_calls.size() == 1);
  CHECK(world.pid_calls[0].step == 17);
  CHECK(world.pid_calls[0].setpoint.position.z == 3);
  CHECK(control.controlMode == controlModeLegacy);
  CHECK(control.roll == 11);
  CHECK(control.yaw == 13);
  CHECK(world.blended == 30000.0f);
  CHECK(control.thrust == 65535.0f / 2);
}

TEST_CASE("where the stock controller begins it is reset, and computes all of itself at once") {
  world = World{};
  world.decision.stock_begins = true;
  const control_t control = run(position_setpoint(), 17);
  REQUIRE(world.pid_calls.size() == 3);
  CHECK(is_empty(world.pid_calls[0].setpoint));
  for (int i = 1; i < 3; i++) {
    CHECK_FALSE(is_empty(world.pid_calls[i].setpoint));
    CHECK(world.pid_calls[i].setpoint.position.z == 3);
  }
  CHECK(control.roll == 11);  // and not the kick of its derivative after a reset
  for (const PidCall& call : world.pid_calls) CHECK(call.step == 0);  // of every rate
}

TEST_CASE("the app begins once and works again and again") {
  world = World{};
  run(position_setpoint());
  CHECK_THROWS_AS(appMain(), End);
  CHECK(world.begins == 1);
  CHECK(world.works == 3);
  CHECK(world.delay == 20);
  CHECK(world.worked_at != 0);
  for (const named_value* value = logs_rlt; value->name != nullptr; value++) {
    if (std::strcmp(value->name, "stackLeft") == 0) {
      CHECK(*static_cast<const std::uint16_t*>(value->address) == 123);
    }
  }
}

TEST_CASE("parameters and logged values have the types that they are declared with") {
  int params = 0, logs = 0;
  for (const named_value* value = params_rlt; value->name != nullptr; value++, params++) {
    CAPTURE(value->name);
    CHECK(value->bytes != 0);
    CHECK(std::strlen(value->name) <= 14);
    const auto* address = static_cast<const char*>(value->address);
    const auto* settings = reinterpret_cast<const char*>(&rlt_settings);
    CHECK(address >= settings);
    CHECK(address + value->bytes <= settings + sizeof rlt_settings);
  }
  for (const named_value* value = logs_rlt; value->name != nullptr; value++, logs++) {
    CAPTURE(value->name);
    CHECK(value->bytes != 0);
  }
  CHECK(params == 7);
  CHECK(logs == 20);
  CHECK(rlt_settings.enable == 0);
  CHECK(rlt_settings.max_faults == 5);
  CHECK(rlt_settings.max_error_cm == 200);
}
