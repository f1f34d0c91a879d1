// The board that QEMU's machine netduinoplus2 is: USART 1 is its link, instructions are its clock.
#include "board_api.h"

#include "processors/cortex_m/floating_point.h"
#include "processors/cortex_m/memory_protection.h"
#include "processors/cortex_m/sleep.h"
#include "processors/cortex_m/vector_table.h"
#include "processors/counter.h"
#include "processors/ring_buffer.h"
#include "processors/stack_paint.h"
#include "qemu_stm32f405/registers.h"

extern "C" {
extern std::uint32_t stack_limit[], stack_top[];
void usart_handler();
}

namespace rlt::board {

namespace {

using namespace stm32f405;

// The interrupt takes each byte out of the USART. Where the buffer is full it turns itself off, and
// QEMU keeps the rest until read() has made space.
RingBuffer<1024> received;
std::atomic<bool> interrupt_is_off{false};

// QEMU's timers have a clock of 1 GHz, and under -icount shift=5 an instruction takes 32 ns of the
// machine's time. The fine timer counts instructions, and wraps after 2^32 of them; the coarse one
// counts 2048 at a time.
constexpr std::uint32_t kNanosecondsAnInstruction = 32;
constexpr std::uint32_t kInstructionsACoarseTick = 2048;

constexpr std::uint32_t kIdle_ticks = 1'680'000;  // 10 ms of 168 MHz

void start(const Timer& timer, std::uint32_t nanoseconds_a_tick) {
  timer.prescaler() = nanoseconds_a_tick - 1;
  timer.reload() = 0xffffffffu;
  timer.event() = kUpdateGeneration;  // takes the prescaler
  timer.control_1() = kCounterEnable;
}

void take_received() {
  while (usart_status() & kReceiveFull) {
    if (received.is_full()) {
      cortex_m::disable_interrupt(kUsartIrq);
      interrupt_is_off = true;
      return;
    }
    received.put(static_cast<std::uint8_t>(usart_data()));
  }
}

}  // namespace

const bool kCountsInstructions = true;

void initialize() {
  cortex_m::use_ieee_arithmetic();
  start(kTimer2, kNanosecondsAnInstruction);
  start(kTimer5, kNanosecondsAnInstruction * kInstructionsACoarseTick);
  cortex_m::enable_interrupt(kUsartIrq);
  usart_control_1() = kUsartEnable | kReceiveEnable | kTransmitEnable | kReceiveInterruptEnable;
  __asm__ volatile("cpsie i" : : : "memory");
}

std::size_t read(std::uint8_t* destination, std::size_t capacity) {
  const std::size_t count = received.take(destination, capacity);
  if (interrupt_is_off) {
    interrupt_is_off = false;
    cortex_m::enable_interrupt(kUsartIrq);  // at once, for the byte that waits
  }
  return count;
}

// Write bytes. QEMU's USART takes every byte at once, and drops those that nobody reads.
void write(const std::uint8_t* source, std::size_t count) {
  for (std::size_t i = 0; i < count; i++) {
    while (!(usart_status() & kTransmitEmpty)) {
    }
    usart_data() = source[i];
  }
}

std::uint64_t counter() {
  const std::uint64_t coarse =
      static_cast<std::uint64_t>(kTimer5.count()) * kInstructionsACoarseTick;
  return extend_count(kTimer2.count(), coarse);
}

void unique_id(std::uint8_t (&id)[16]) {
  for (std::uint8_t& byte : id) byte = 0;
}

StackUse stack_use() { return painted_stack_use(stack_limit, stack_top); }

void idle() {
  cortex_m::sleep(kIdle_ticks, [] { return !received.is_empty(); });
}

bool should_exit() { return false; }

}  // namespace rlt::board

// Flash, and the 128 KB of RAM that an STM32F405 has there: QEMU's machine has 192, in place of the
// 64 KB at 0x10000000, which it has not. The stack ends at the bottom of RAM, so an overflow is a
// fault.
void rlt::cortex_m::protect_memory() {
  protect({
      {0x00000000, kNoAccess | kNotExecutable | kSize512Megabytes},
      {0x20000000, kNoAccess | kNotExecutable | kSize512Megabytes},
      {0x00000000, kReadOnly | kSize1Megabyte},  // flash at its other address, with the vectors
      {0x08000000, kReadOnly | kSize1Megabyte},
      {0x20000000, kReadWrite | kNotExecutable | kSize128Kilobytes},
  });
}

extern "C" {

void usart_handler() { rlt::board::take_received(); }

extern const rlt::cortex_m::VectorTable<82> vector_table;
[[gnu::used, gnu::section(".vectors")]] const rlt::cortex_m::VectorTable<82> vector_table =
    rlt::cortex_m::vector_table_with<82>(rlt::stm32f405::kUsartIrq, usart_handler);

}  // extern "C"
