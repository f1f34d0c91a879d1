// CRC-32 of IEEE 802.3, as zlib.crc32: polynomial 0x04C11DB7 reflected, initial value and final
// complement all ones. A table of 16 words, one step per half byte: small enough for firmware.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rlt {

// Entry n is the remainder of the four bits n: n, shifted out four times with 0xEDB88320.
inline constexpr std::uint32_t kCrc32Table[16] = {
    0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u,
    0x4db26158u, 0x5005713cu, 0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu,
    0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu};

// crc32(b, m, crc32(a, n)) is the sum over a followed by b.
inline std::uint32_t crc32(const void* data, std::size_t count, std::uint32_t previous = 0) {
  const std::uint8_t* bytes = static_cast<const std::uint8_t*>(data);
  std::uint32_t remainder = ~previous;
  for (std::size_t i = 0; i < count; ++i) {
    remainder ^= bytes[i];
    remainder = (remainder >> 4) ^ kCrc32Table[remainder & 15u];
    remainder = (remainder >> 4) ^ kCrc32Table[remainder & 15u];
  }
  return ~remainder;
}

}  // namespace rlt
