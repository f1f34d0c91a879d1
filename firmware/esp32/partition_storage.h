// Where these boards keep policies (rltools/policy/storage.h): the partition "policies" of the
// flash (boards/esp32_partitions.csv). The flash is mapped, so that an image is read in place.
//
// While the flash is erased or programmed nothing runs that lies in it, the program included: a
// block takes about 45 ms.
#pragma once

#include <cstdint>

namespace rlt {

class PartitionStorage {
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
