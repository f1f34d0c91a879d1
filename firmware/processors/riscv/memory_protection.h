// Physical memory protection: The RISC-V Instruction Set Manual, volume II, "Physical Memory
// Protection".
#pragma once

#include "processors/riscv/control_registers.h"

namespace rlt::riscv {

constexpr std::uint32_t kReadable = 1u << 0, kWritable = 1u << 1, kExecutable = 1u << 2;

struct ProtectedRegion {
  std::uint32_t base;
  std::uint32_t bytes;
  std::uint32_t access;
};

namespace detail {

constexpr int kPmpConfiguration = 0x3a0, kPmpAddress = 0x3b0;
constexpr std::uint32_t kUpToAddress = 1u << 3, kPowerOfTwo = 3u << 3, kLocked = 1u << 7;

// Protect a region. Entry 2 i begins the region i, entry 2 i + 1 ends it. Locked, they bind the
// machine mode too.
template <int Region>
void protect_region(const ProtectedRegion& region) {
  write_register<kPmpAddress + 2 * Region>(region.base >> 2);
  write_register<kPmpAddress + 2 * Region + 1>((region.base + region.bytes) >> 2);
  const std::uint32_t entry = (region.access | kUpToAddress | kLocked) << 8;
  set_bits<kPmpConfiguration + Region / 2>(entry << (Region % 2 * 16));
}

template <int Region, int Count>
void protect_regions(const ProtectedRegion (&regions)[Count]) {
  if constexpr (Region < Count) {
    protect_region<Region>(regions[Region]);
    protect_regions<Region + 1>(regions);
  }
}

}  // namespace detail

// Protect these regions. Memory in none of them cannot be accessed.
template <int Count>
void protect(const ProtectedRegion (&regions)[Count]) {
  static_assert(Count <= 7, "of 16 entries each region takes two, and everything else takes one");
  detail::protect_regions<0>(regions);
  write_register<detail::kPmpAddress + 15>(0xffffffffu);  // every address
  set_bits<detail::kPmpConfiguration + 3>((detail::kPowerOfTwo | detail::kLocked) << 24);
}

// Make accesses fault where the board has no memory, so that an overflow of the stack is noticed.
// Boards define it; startup.cpp calls it once before main(), with memory initialized.
void protect_memory();

}  // namespace rlt::riscv
