// The part of a serial flash in which a board keeps policies (rltools/policy/storage.h), mapped, so
// that an image is read in place. Such flash has sectors of 4 KB. Each board defines data(),
// erase() and program() with its vendor's functions.
//
// While the flash is erased or programmed nothing runs that lies in it, the program included: a
// sector takes about 45 ms.
#pragma once

#include <cstdint>

namespace rlt {

class SectorFlash {
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
