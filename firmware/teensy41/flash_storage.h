// Where a Teensy 4.1 keeps policies (rltools/policy/storage.h): the last 128 KB of its program
// flash, below the sectors that the core uses as EEPROM. An image is read in place.
//
// Interrupts are off while the flash is erased or programmed: a block takes about 45 ms.
#pragma once

#include <cstdint>

namespace rlt {

class ProgramFlashStorage {
 public:
  static constexpr std::uint32_t kEraseBytes = 4096;
  static constexpr std::uint32_t kProgramBytes = 32;
  static constexpr std::uint32_t kBytes = 128 * 1024;

  std::uint32_t size() const { return kBytes; }
  const std::uint8_t* data() const;
  bool erase(std::uint32_t offset);
  bool program(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count);
};

}  // namespace rlt
