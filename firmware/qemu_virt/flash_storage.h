// The storage of policies of a board that is QEMU's machine virt (rltools/policy/storage.h): the
// first megabyte of the machine's second flash, which no code is in. QEMU keeps it in a file where
// it is given one, and else in memory.
#pragma once

#include "processors/cfi_flash.h"
#include "qemu_virt/registers.h"

namespace rlt {

namespace virt {

struct FlashBus {
  static constexpr std::uint32_t kBytes = kFlashBytes, kEraseBytes = kFlashBlockBytes;
  static constexpr std::uint32_t kMaxPolls = 1'000'000;  // QEMU's chips are never busy

  const std::uint8_t* data() const { return reinterpret_cast<const std::uint8_t*>(kFlash); }
  void write(std::uint32_t offset, std::uint32_t word) {
    at<std::uint32_t>(kFlash + offset) = word;
    fence();
  }
  std::uint32_t read(std::uint32_t offset) {
    const std::uint32_t word = at<std::uint32_t>(kFlash + offset);
    fence();
    return word;
  }

 private:
  // Order memory accesses: a cycle changes what data() reads elsewhere in the flash too.
  static void fence() { __asm__ volatile("fence" ::: "memory"); }
};

}  // namespace virt

using FlashStorage = CfiFlash<virt::FlashBus>;

}  // namespace rlt
