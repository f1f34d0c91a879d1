// The Teensy 4.1 board: USB serial is its link, SysTick its clock. All that touches its hardware is
// in this file.
#include "teensy41/teensy_core.h"

#include "processors/cortex_m/floating_point.h"
#include "processors/counter.h"
#include "processors/stack_paint.h"

// From the core's linker script. The core makes 32 bytes at _ebss inaccessible, to trap an overflow
// of the stack.
extern "C" unsigned long _ebss, _estack;

namespace rlt::board {

namespace {

constexpr std::uintptr_t kTrapBytes = 32;

std::uint32_t* stack_limit() {
  return reinterpret_cast<std::uint32_t*>(reinterpret_cast<std::uintptr_t>(&_ebss) + kTrapBytes);
}
std::uint32_t* stack_top() { return reinterpret_cast<std::uint32_t*>(&_estack); }

void copy_word(std::uint8_t* destination, std::uint32_t word) {
  __builtin_memcpy(destination, &word, sizeof(word));
}

}  // namespace

const bool kCountsInstructions = false;

void initialize() {
  cortex_m::use_ieee_arithmetic();
  const auto* own_frame = static_cast<std::uint32_t*>(__builtin_frame_address(0)) - 16;
  paint_stack(stack_limit(), own_frame);
}

std::size_t read(std::uint8_t* destination, std::size_t capacity) {
  if (usb_serial_available() <= 0) return 0;
  const int count = usb_serial_read(destination, capacity);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

// Write bytes. The core waits 120 ms for a host that does not read, once, and then drops what is
// written until the host reads again.
void write(const std::uint8_t* source, std::size_t count) { usb_serial_write(source, count); }

std::uint64_t counter() {
  static CountExtender extender;
  return extender.extend(micros());  // wraps after 71 minutes; every turn of the main loop asks
}

// Set the fuses of the i.MX RT1062: its 64-bit unique number, and the MAC address, whose low half
// is the USB serial number.
void unique_id(std::uint8_t (&id)[16]) {
  copy_word(id, HW_OCOTP_CFG0);
  copy_word(id + 4, HW_OCOTP_CFG1);
  copy_word(id + 8, HW_OCOTP_MAC0);
  copy_word(id + 12, HW_OCOTP_MAC1);
}

StackUse stack_use() { return painted_stack_use(stack_limit(), stack_top()); }

void idle() { __asm__ volatile("wfi"); }  // until the next interrupt: USB, or SysTick's millisecond

bool should_exit() { return false; }

}  // namespace rlt::board
