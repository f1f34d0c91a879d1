// The storage in which a board keeps policy images: memory that is erased in blocks and then
// programmed, as flash is. slots.h needs a type with
//   static constexpr std::uint32_t kEraseBytes;     a block, which erase() sets to 0xff
//   static constexpr std::uint32_t kProgramBytes;   what is programmed at once: 1, 2, 4 … 32
//   std::uint32_t size() const;                     bytes, a multiple of kEraseBytes
//   const std::uint8_t* data() const;               all of it, to be read in place
//   bool erase(std::uint32_t offset);               the block that begins at `offset`
//   bool program(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count);
// data() lies on a four-byte boundary. `offset` and `count` of program() are multiples of
// kProgramBytes; a byte is programmed once after it was erased. Both functions wait until it is
// done, and return false where the storage reports a failure. What is being erased or programmed
// while the power fails may hold anything afterwards; the rest is as it was.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rlt {

// Memory that a reset may clear. `Size` is a multiple of 256.
template <std::uint32_t Size>
class RamStorage {
 public:
  static constexpr std::uint32_t kEraseBytes = 256;
  static constexpr std::uint32_t kProgramBytes = 4;
  static_assert(Size % kEraseBytes == 0, "a RamStorage has whole blocks of 256 bytes");

  std::uint32_t size() const { return Size; }
  const std::uint8_t* data() const { return bytes_; }
  bool erase(std::uint32_t offset) {
    __builtin_memset(bytes_ + offset, 0xff, kEraseBytes);
    return true;
  }
  bool program(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    __builtin_memcpy(bytes_ + offset, source, count);
    return true;
  }

 private:
  alignas(8) std::uint8_t bytes_[Size];
};

}  // namespace rlt
