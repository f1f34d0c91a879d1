// The link of a board on whose USB is the processor's own serial port.
#include "esp32/arduino_core.h"

#include "board_api.h"
#include "esp32/link.h"

namespace rlt::board {

namespace {

constexpr std::size_t kReceived_bytes = 2048;
constexpr std::size_t kSent_bytes = 1024;  // whole frames, of 280 bytes at most
constexpr std::uint32_t kPatience_ms = 100;

bool host_absent = false;

}  // namespace

void begin_link() {
  Serial.setRxBufferSize(kReceived_bytes);
  Serial.setTxBufferSize(kSent_bytes);
  Serial.begin();
}

std::size_t read(std::uint8_t* destination, std::size_t capacity) {
  const int available = Serial.available();
  if (available <= 0) return 0;
  const auto count = static_cast<std::size_t>(available);
  return Serial.read(destination, count < capacity ? count : capacity);
}

// Wait for a host that does not read once, and drop what is written until it reads again.
void write(const std::uint8_t* source, std::size_t count) {
  Serial.setTxTimeoutMs(host_absent ? 0 : kPatience_ms);
  host_absent = Serial.write(source, count) != count;
}

}  // namespace rlt::board
