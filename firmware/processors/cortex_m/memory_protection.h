// The memory protection unit of ARMv7-M: Arm DDI 0403, B3.5.
#pragma once

#include "processors/cortex_m/system_registers.h"

namespace rlt::cortex_m {

constexpr std::uint32_t kMpuEnableWithBackground = 1u << 0 | 1u << 2;
constexpr std::uint32_t kNoAccess = 0, kReadWrite = 3u << 24, kReadOnly = 7u << 24;
constexpr std::uint32_t kNotExecutable = 1u << 28;
// log2 of the bytes, less one.
constexpr std::uint32_t kSize128Kilobytes = 16u << 1, kSize512Kilobytes = 18u << 1;
constexpr std::uint32_t kSize1Megabyte = 19u << 1, kSize512Megabytes = 28u << 1;

struct ProtectedRegion {
  std::uint32_t base;
  std::uint32_t attributes;
};

// Protect these regions. Of overlapping ones the later one holds; outside of all, the processor's
// own memory map.
template <int Count>
void protect(const ProtectedRegion (&regions)[Count]) {
  std::uint32_t number = 0;
  for (const ProtectedRegion& region : regions) {
    mpu_base() = region.base | 1u << 4 | number++;  // bit 4: the number is valid
    mpu_attributes() = region.attributes | 1u;
  }
  mpu_control() = kMpuEnableWithBackground;
  __asm__ volatile("dsb\n isb" : : : "memory");
}

// Make accesses fault where the board has no memory, so that an overflow of the stack is noticed.
// Boards define it; startup.cpp calls it once before main(), with faults enabled and memory
// initialized.
void protect_memory();

}  // namespace rlt::cortex_m
