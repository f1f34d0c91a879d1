// The link of a board with a USB bridge: UART0, on which the boot loader prints before.
#include "esp32/arduino_core.h"

#include "board_api.h"
#include "esp32/link.h"

namespace rlt::board {

namespace {

constexpr std::size_t kReceived_bytes = 2048;  // 44 ms at 460,800 baud

}  // namespace

void begin_link() {
  Serial.setRxBufferSize(kReceived_bytes);
  Serial.begin(RLT_BAUD);
}

std::size_t read(std::uint8_t* destination, std::size_t capacity) {
  const int available = Serial.available();
  if (available <= 0) return 0;
  const auto count = static_cast<std::size_t>(available);
  return Serial.read(destination, count < capacity ? count : capacity);
}

// The bridge takes every byte, whether a host reads or not: this waits for the UART only.
void write(const std::uint8_t* source, std::size_t count) { Serial.write(source, count); }

}  // namespace rlt::board
