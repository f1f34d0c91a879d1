// Boards with an ESP32, ESP32-C3 or another of the family, on Espressif's Arduino core. FreeRTOS
// runs below it, so that its timer is the clock and its task has the stack.
#include "esp32/arduino_core.h"

#include "board_api.h"
#include "esp32/link.h"
#include "processors/xtensa/floating_point.h"

// Return the stack of the task that calls setup(): the core asks for it. The frames of the deepest
// calls add up to 6 KB.
std::size_t getArduinoLoopTaskStackSize() { return 16384; }

namespace rlt::board {

const bool kCountsInstructions = false;

void initialize() {
  xtensa::use_ieee_arithmetic();
  begin_link();
}

std::uint64_t counter() { return static_cast<std::uint64_t>(esp_timer_get_time()); }

// Set the address of the chip's network interfaces, from its fuses.
void unique_id(std::uint8_t (&id)[16]) {
  for (std::uint8_t& byte : id) byte = 0;
  esp_efuse_mac_get_default(id);  // 6 bytes
}

// Return the use of the stack. FreeRTOS fills a task's stack, and finds what was never used;
// ESP-IDF counts in bytes.
StackUse stack_use() {
  const auto capacity = static_cast<std::uint32_t>(getArduinoLoopTaskStackSize());
  return {capacity, capacity - static_cast<std::uint32_t>(uxTaskGetStackHighWaterMark(nullptr))};
}

void idle() { vTaskDelay(1); }  // a millisecond, for the core's other tasks

bool should_exit() { return false; }

}  // namespace rlt::board
