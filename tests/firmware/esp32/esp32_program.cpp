// firmware/esp32 on this machine: the serial port, the flash and FreeRTOS are played here. Compiled
// twice, for the UART and, with ARDUINO_USB_CDC_ON_BOOT, for the processor's own USB.
#include <doctest/doctest.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <Arduino.h>
#include <esp_partition.h>
#include <esp_timer.h>
#include <freertos/task.h>

#include "board_api.h"
#include "flash_model.h"
#include "processors/sector_flash.h"
#include "rltools/policy/slots.h"
#include "slot_push.h"

using rlt::SectorFlash;
using Slots = rlt::PolicySlots<SectorFlash>;

namespace {

constexpr std::uint32_t kOffset = 0x1f0000;

struct World {
  flash_model::Flash<SectorFlash::kEraseBytes, SectorFlash::kProgramBytes> flash{
      SectorFlash::kBytes / SectorFlash::kEraseBytes};
  esp_partition_t partition{ESP_PARTITION_TYPE_DATA, ESP_PARTITION_SUBTYPE_ANY, kOffset,
                            SectorFlash::kBytes};
  bool is_there = false;
  int mapped = 0;
  std::vector<std::uint8_t> arrived, sent;
  unsigned long baud = 0;
  std::size_t receive_bytes = 0, send_bytes = 0, space = 1000;
  std::vector<std::uint32_t> timeouts;
  std::int64_t now = 0x500000010ll;
  std::uint32_t delay = 0;
};
World world;

struct Abort : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::size_t take(std::uint8_t* destination, std::size_t capacity) {
  const std::size_t count = capacity < world.arrived.size() ? capacity : world.arrived.size();
  std::memcpy(destination, world.arrived.data(), count);
  world.arrived.erase(world.arrived.begin(), world.arrived.begin() + static_cast<long>(count));
  return count;
}
std::size_t put(const std::uint8_t* source, std::size_t count) {
  const std::size_t taken = count < world.space ? count : world.space;
  world.sent.insert(world.sent.end(), source, source + taken);
  world.space -= taken;
  return taken;
}

}  // namespace

#if defined(ARDUINO_USB_CDC_ON_BOOT)
HWCDC Serial;
using Port = HWCDC;
size_t Port::setTxBufferSize(size_t bytes) { return world.send_bytes = bytes; }
void Port::setTxTimeoutMs(uint32_t timeout) { world.timeouts.push_back(timeout); }
#else
HardwareSerial Serial;
using Port = HardwareSerial;
#endif
size_t Port::setRxBufferSize(size_t bytes) { return world.receive_bytes = bytes; }
void Port::begin(unsigned long baud) { world.baud = baud; }
int Port::available() { return static_cast<int>(world.arrived.size()); }
size_t Port::read(uint8_t* destination, size_t capacity) { return take(destination, capacity); }
size_t Port::write(const uint8_t* source, size_t count) { return put(source, count); }

extern "C" {
void esp_system_abort(const char* details) { throw Abort(details); }
esp_err_t esp_efuse_mac_get_default(uint8_t* mac) {
  for (std::uint8_t i = 0; i < 6; i++) mac[i] = static_cast<std::uint8_t>(0xa0 + i);
  return ESP_OK;
}
int64_t esp_timer_get_time() { return world.now; }
UBaseType_t uxTaskGetStackHighWaterMark(TaskHandle_t) { return 1384; }
void vTaskDelay(const TickType_t ticks) { world.delay += ticks; }

const esp_partition_t* esp_partition_find_first(esp_partition_type_t type, esp_partition_subtype_t,
                                                const char* label) {
  const bool is_asked = type == ESP_PARTITION_TYPE_DATA && std::string(label) == "policies";
  return world.is_there && is_asked ? &world.partition : nullptr;
}
esp_err_t esp_partition_write(const esp_partition_t*, size_t offset, const void* source,
                              size_t size) {
  const auto* bytes = static_cast<const std::uint8_t*>(source);
  const auto place = static_cast<std::uint32_t>(offset), count = static_cast<std::uint32_t>(size);
  return world.flash.program(place, bytes, count) ? ESP_OK : -1;
}
esp_err_t esp_partition_erase_range(const esp_partition_t*, size_t offset, size_t size) {
  REQUIRE(size == SectorFlash::kEraseBytes);
  return world.flash.erase(static_cast<std::uint32_t>(offset)) ? ESP_OK : -1;
}
esp_err_t esp_partition_mmap(const esp_partition_t* partition, size_t offset, size_t size,
                             spi_flash_mmap_memory_t memory, const void** out_ptr,
                             spi_flash_mmap_handle_t*) {
  if (partition != &world.partition || size != world.flash.size()) return -1;
  if (memory != SPI_FLASH_MMAP_DATA) return -1;
  world.mapped++;
  *out_ptr = world.flash.data() + offset;
  return ESP_OK;
}
}

TEST_CASE("flash: without its partition the board stops, and says why") {
  SectorFlash storage;
  CHECK_THROWS_WITH_AS(storage.data(), doctest::Contains("esp32_partitions.csv"), Abort);
  world.is_there = true;
  world.partition.size = 4096;
  CHECK_THROWS_AS(storage.data(), Abort);
  world.partition.size = SectorFlash::kBytes;
  CHECK(storage.data() == world.flash.data());
}

TEST_CASE("flash: policies outlive a reset, and are read in place") {
  world.is_there = true;
  const std::vector<std::uint8_t> image(23'000, 0x11);
  {
    SectorFlash storage;
    Slots slots(storage);
    REQUIRE(slots.begin());
    REQUIRE(slots.active().data == nullptr);
    REQUIRE(slots.slot_bytes() == 60 * 1024);
    REQUIRE(slot_push::push(slots, image) == rlt::SlotError::none);
  }
  SectorFlash storage;
  Slots slots(storage);
  REQUIRE(slots.begin());
  REQUIRE(slots.active().bytes == image.size());
  CHECK(std::memcmp(slots.active().data, image.data(), image.size()) == 0);
  CHECK(slots.active().data > world.flash.data());
  CHECK(slots.active().data < world.flash.data() + world.flash.size());
  CHECK(world.mapped == 1);
}

TEST_CASE("flash: a failure is told") {
  world.is_there = true;
  SectorFlash storage;
  std::uint8_t bytes[32] = {1, 2, 3, 4};
  CHECK(storage.erase(4096));
  CHECK(storage.program(4096, bytes, 32));
  CHECK(storage.data()[4098] == 3);
  world.flash.fail(true);
  CHECK_FALSE(storage.erase(4096));
  CHECK_FALSE(storage.program(4096 + 32, bytes, 32));
  world.flash.fail(false);
}

TEST_CASE("link: bytes arrive as far as there is room, and none without waiting") {
  rlt::board::initialize();
  CHECK(world.receive_bytes >= 1024);
  std::uint8_t bytes[4] = {};
  CHECK(rlt::board::read(bytes, 4) == 0);
  world.arrived = {1, 2, 3, 4, 5};
  CHECK(rlt::board::read(bytes, 4) == 4);
  CHECK(bytes[3] == 4);
  CHECK(rlt::board::read(bytes, 4) == 1);
  CHECK(bytes[0] == 5);
}

#if defined(ARDUINO_USB_CDC_ON_BOOT)
TEST_CASE("link: a host that does not read is waited for once") {
  const std::vector<std::uint8_t> frame(280, 7);
  CHECK(world.send_bytes >= frame.size());
  world.timeouts.clear();
  world.space = 300;
  for (int i = 0; i < 4; i++) rlt::board::write(frame.data(), frame.size());
  world.space = 1000;
  for (int i = 0; i < 2; i++) rlt::board::write(frame.data(), frame.size());
  REQUIRE(world.timeouts.size() == 6);
  CHECK(world.timeouts[1] > 0);  // the buffer is full in this one
  CHECK(world.timeouts[1] <= 200);
  CHECK(world.timeouts[2] == 0);
  CHECK(world.timeouts[4] == 0);
  CHECK(world.timeouts[5] > 0);  // it reads again
}
#else
TEST_CASE("link: the UART has the rate of the board's description, and gets every byte") {
  CHECK(world.baud == RLT_BAUD);
  const std::uint8_t bytes[] = {9, 8, 7};
  world.sent.clear();
  rlt::board::write(bytes, 3);
  CHECK(world.sent == std::vector<std::uint8_t>{9, 8, 7});
}
#endif

TEST_CASE("clock, number, stack and rest") {
  CHECK(rlt::board::counter() == 0x500000010ull);
  CHECK_FALSE(rlt::board::kCountsInstructions);
  std::uint8_t id[16];
  std::memset(id, 0xee, sizeof id);
  rlt::board::unique_id(id);
  CHECK(id[0] == 0xa0);
  CHECK(id[5] == 0xa5);
  for (int i = 6; i < 16; i++) CHECK(id[i] == 0);
  const auto stack = rlt::board::stack_use();
  CHECK(stack.capacity_bytes == getArduinoLoopTaskStackSize());
  CHECK(stack.capacity_bytes - stack.peak_bytes == 1384);
  rlt::board::idle();
  CHECK(world.delay == 1);
  CHECK_FALSE(rlt::board::should_exit());
}
