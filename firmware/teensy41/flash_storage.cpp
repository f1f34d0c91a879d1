// The storage of policies of a Teensy 4.1: the last 128 KB of its program flash, below the sectors
// that the core uses as EEPROM. Interrupts are off while it is erased or programmed.
#include "processors/sector_flash.h"

// Functions of the core for its EEPROM and for file systems in program flash; no header declares
// them. They wait until the flash has done it, and drop the addresses from the processor's cache.
extern "C" {
void eepromemu_flash_write(void* address, const void* data, std::uint32_t count);
void eepromemu_flash_erase_sector(void* address);
}

namespace rlt {

namespace {

constexpr std::uintptr_t kEeprom = 0x607c0000;  // where a program ends at the latest
constexpr std::uintptr_t kBegin = kEeprom - SectorFlash::kBytes;
constexpr std::uint32_t kPageBytes = 256;  // what is programmed at once lies in one of these
static_assert(kPageBytes % SectorFlash::kProgramBytes == 0, "a unit lies in one page");

void* address_of(std::uint32_t offset) { return reinterpret_cast<void*>(kBegin + offset); }

}  // namespace

const std::uint8_t* SectorFlash::data() const {
  return reinterpret_cast<const std::uint8_t*>(kBegin);
}

// Erase a block. The core's functions report nothing: slots.h compares what it reads back.
bool SectorFlash::erase(std::uint32_t offset) {
  eepromemu_flash_erase_sector(address_of(offset));
  return true;
}

bool SectorFlash::program(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
  while (count > 0) {
    eepromemu_flash_write(address_of(offset), source, kProgramBytes);
    offset += kProgramBytes;
    source += kProgramBytes;
    count -= kProgramBytes;
  }
  return true;
}

}  // namespace rlt
