// The policies of firmware/teensy41 on this machine: memory at the addresses of its program flash,
// which the core's two functions, played here, erase and program.
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include <sys/mman.h>

#include "processors/sector_flash.h"
#include "rltools/policy/slots.h"
#include "slot_push.h"

using rlt::SectorFlash;
using Slots = rlt::PolicySlots<SectorFlash>;

namespace {

// Of PJRC's imxrt1062_t41.ld: a program ends here at the latest, and the EEPROM's sectors begin.
constexpr std::uintptr_t kEndOfProgram = 0x60000000 + 7936 * 1024;
constexpr std::uintptr_t kBegin = kEndOfProgram - SectorFlash::kBytes;

bool is_in_flash(std::uintptr_t address, std::uint32_t count) {
  return address >= kBegin && address + count <= kEndOfProgram;
}

}  // namespace

extern "C" {
void eepromemu_flash_write(void* address, const void* data, std::uint32_t count);
void eepromemu_flash_erase_sector(void* address);
}

void eepromemu_flash_write(void* address, const void* data, std::uint32_t count) {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  REQUIRE(is_in_flash(place, count));
  REQUIRE(place / 256 == (place + count - 1) / 256);  // a page: the flash would begin it again
  for (std::uint32_t i = 0; i < count; i++) {         // flash is programmed from 1 to 0
    static_cast<std::uint8_t*>(address)[i] &= static_cast<const std::uint8_t*>(data)[i];
  }
}

void eepromemu_flash_erase_sector(void* address) {
  REQUIRE(is_in_flash(reinterpret_cast<std::uintptr_t>(address), 4096));
  REQUIRE(reinterpret_cast<std::uintptr_t>(address) % 4096 == 0);
  std::memset(address, 0xff, 4096);
}

TEST_CASE("policies lie at the end of the program flash, and outlive a reset") {
  void* memory = mmap(reinterpret_cast<void*>(kBegin), SectorFlash::kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  REQUIRE(memory == reinterpret_cast<void*>(kBegin));
  std::memset(memory, 0x5a, SectorFlash::kBytes);
  SectorFlash flash;
  const std::uint8_t units[96] = {1, 2, 3};
  REQUIRE(flash.erase(4096));
  REQUIRE(flash.program(4096 + 224, units, sizeof units));  // into the next page
  CHECK(std::memcmp(flash.data() + 4096 + 224, units, sizeof units) == 0);
  CHECK(flash.data()[4096 + 224 + sizeof units] == 0xff);

  std::vector<std::uint8_t> image(60 * 1024);
  for (std::size_t i = 0; i < image.size(); i++) image[i] = static_cast<std::uint8_t>(i * 7);
  for (int reset = 0; reset < 5; reset++) {
    SectorFlash storage;
    Slots slots(storage);
    REQUIRE(slots.begin());
    REQUIRE(slots.slot_bytes() == image.size());
    if (reset > 0) {
      REQUIRE(slots.active().bytes == image.size());
      CHECK(std::memcmp(slots.active().data, image.data(), image.size()) == 0);
      image[0]++;
    }
    REQUIRE(slot_push::push(slots, image) == rlt::SlotError::none);
  }
}
