// The board that QEMU's machine mps2-an500 is: UART 0 is its link, instructions are its clock.
#include "board_api.h"

#include "qemu_cortex_m7/registers.h"
#include "qemu_cortex_m7/stack_paint.h"

extern "C" {
extern std::uint32_t stack_limit[], stack_top[];
void uart_receive_handler();
}

namespace rlt::board {

namespace {

using namespace mps2;

// QEMU's UART holds one byte: the interrupt takes it. A full ring leaves it there, and QEMU then
// keeps the rest.
constexpr std::uint32_t kRingBytes = 1024;
std::uint8_t ring[kRingBytes];
volatile std::uint32_t ring_begin = 0,
                       ring_end =
                           0;  // running counts; begin belongs to read(), end to the interrupt
volatile bool ring_overfull = false;  // a byte waits in the UART, without an interrupt

// Ticks of 25 MHz that write() waits for a host that does not read, once.
constexpr std::uint32_t kPatience_ticks = 25'000'000;
bool host_absent = false;

constexpr std::uint32_t kIdle_ticks = 250'000;  // 10 ms

// The interrupt, or read() with interrupts off. The flag is cleared first: a byte that comes
// meanwhile sets it again.
void take_received() {
  uart_interrupt_clear() = kReceiveInterrupt;
  ring_overfull = false;
  while (uart_state() & kReceiveFull) {
    if (ring_end - ring_begin == kRingBytes) {
      ring_overfull = true;
      return;
    }
    ring[ring_end % kRingBytes] = static_cast<std::uint8_t>(uart_data());
    ring_end = ring_end + 1;
  }
}

}  // namespace

const bool kCountsInstructions = true;

void initialize() {
  // Round to nearest, subnormals kept, NaNs passed on; also for code in interrupts.
  __asm__ volatile("vmsr fpscr, %0" : : "r"(0));
  float_default_status() = 0;
  uart_baud_divisor() = 16;  // the smallest; QEMU needs one but is not slowed by it
  uart_control() = kTransmitEnable | kReceiveEnable | kReceiveInterruptEnable;
  interrupt_set_enable() = 1u << kUartReceiveIrq;
  __asm__ volatile("cpsie i");
}

std::size_t read(std::uint8_t* destination, std::size_t capacity) {
  std::uint32_t begin = ring_begin;
  const std::uint32_t end = ring_end;
  std::size_t count = 0;
  while (begin != end && count < capacity) destination[count++] = ring[begin++ % kRingBytes];
  ring_begin = begin;
  if (ring_overfull) {
    __asm__ volatile("cpsid i");
    take_received();
    __asm__ volatile("cpsie i");
  }
  return count;
}

void write(const std::uint8_t* source, std::size_t count) {
  const std::uint32_t start = cycle_counter();
  for (std::size_t i = 0; i < count; i++) {
    while (uart_state() & kTransmitFull) {
      if (host_absent || cycle_counter() - start > kPatience_ticks) {
        host_absent = true;
        return;
      }
    }
    uart_data() = source[i];
  }
  host_absent = false;
}

// Under -icount shift=5 an instruction takes 32 ns of the machine's time, and a tick of 25 MHz
// takes 40 ns.
std::uint64_t counter() {
  static std::uint32_t last = 0;
  static std::uint64_t ticks = 0;
  const std::uint32_t now = cycle_counter();  // wraps after 171 s: asked for more often than that
  ticks += now - last;
  last = now;
  return ticks * 5 / 4;
}

void unique_id(std::uint8_t (&id)[16]) {
  for (std::uint8_t& byte : id) byte = 0;
}

StackUse stack_use() {
  const std::uint32_t* used = stack_limit;
  while (used < stack_top && *used == kStackPaint) used++;
  return {static_cast<std::uint32_t>((stack_top - stack_limit) * 4),
          static_cast<std::uint32_t>((stack_top - used) * 4)};
}

// Sleeps until a byte arrives, or for 10 ms. The timer runs here only, so that it never interrupts
// training.
void idle() {
  systick_reload() = kIdle_ticks;
  systick_value() = 0;
  systick_control() = 7;  // processor clock, interrupt, enable
  __asm__ volatile("cpsid i");
  if (ring_begin == ring_end) __asm__ volatile("wfi");  // a pending interrupt wakes it
  __asm__ volatile("cpsie i");
  systick_control() = 0;
}

bool should_exit() { return false; }

}  // namespace rlt::board

void uart_receive_handler() { rlt::board::take_received(); }
