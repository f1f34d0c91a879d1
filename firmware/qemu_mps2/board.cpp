// The board that QEMU's MPS2 machines are (mps2-an386 with a Cortex-M4, mps2-an500 with an M7):
// UART 0 is its link, instructions are its clock.
#include "board_api.h"

#include "processors/cortex_m/floating_point.h"
#include "processors/cortex_m/memory_protection.h"
#include "processors/cortex_m/sleep.h"
#include "processors/cortex_m/vector_table.h"
#include "processors/counter.h"
#include "processors/patient_port.h"
#include "processors/ring_buffer.h"
#include "processors/stack_paint.h"
#include "qemu_mps2/registers.h"

extern "C" {
extern std::uint32_t stack_limit[], stack_top[];
void uart_receive_handler();
}

namespace rlt::board {

namespace {

using namespace mps2;

// QEMU's UART holds one byte, which the interrupt takes. Where the buffer is full it stays there,
// and QEMU then keeps the rest.
RingBuffer<1024> received;
std::atomic<bool> byte_left_in_uart{false};  // without an interrupt for it

PatientPort<std::uint32_t> port(25'000'000);  // a second

constexpr std::uint32_t kIdle_ticks = 250'000;  // 10 ms

// Take received bytes, in the interrupt, or in read() with interrupts off. The interrupt is cleared
// first: a byte that comes meanwhile sets it again.
void take_received() {
  uart_interrupt_clear() = kReceiveInterrupt;
  byte_left_in_uart = false;
  while (uart_state() & kReceiveFull) {
    if (received.is_full()) {
      byte_left_in_uart = true;
      return;
    }
    received.put(static_cast<std::uint8_t>(uart_data()));
  }
}

}  // namespace

const bool kCountsInstructions = true;

void initialize() {
  cortex_m::use_ieee_arithmetic();
  uart_baud_divisor() = 16;  // the smallest; QEMU needs one but is not slowed by it
  uart_control() = kTransmitEnable | kReceiveEnable | kReceiveInterruptEnable;
  cortex_m::enable_interrupt(kUartReceiveIrq);
  __asm__ volatile("cpsie i" : : : "memory");
}

std::size_t read(std::uint8_t* destination, std::size_t capacity) {
  const std::size_t count = received.take(destination, capacity);
  if (byte_left_in_uart) {
    __asm__ volatile("cpsid i" : : : "memory");
    take_received();
    __asm__ volatile("cpsie i" : : : "memory");
  }
  return count;
}

void write(const std::uint8_t* source, std::size_t count) {
  port.write(
      source, count, [] { return (uart_state() & kTransmitFull) != 0; },
      [] { return +cycle_counter(); }, [](std::uint8_t byte) { uart_data() = byte; });
}

// Return the instructions executed. Under -icount shift=5 an instruction takes 32 ns of the
// machine's time, and a tick of 25 MHz takes 40 ns. The fast counter wraps after 171 s; the slow
// one, after 497 days.
std::uint64_t counter() {
  const std::uint64_t coarse = static_cast<std::uint64_t>(hundredths()) * kCyclesAHundredth;
  return extend_count(cycle_counter(), coarse) * 5 / 4;
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

// Allow accesses only to what a Teensy 4.1 has of the first gigabyte can be accessed: QEMU's
// machine has more memory, and swallows stores where it has none. The stack ends at the bottom of
// DTCM, so an overflow is a fault.
void rlt::cortex_m::protect_memory() {
  protect({
      {0x00000000, kNoAccess | kNotExecutable | kSize512Megabytes},
      {0x20000000, kNoAccess | kNotExecutable | kSize512Megabytes},
      {0x00000000, kReadOnly | kSize512Kilobytes},                    // ITCM
      {0x20000000, kReadWrite | kNotExecutable | kSize512Kilobytes},  // DTCM
      {0x20200000, kReadWrite | kNotExecutable | kSize512Kilobytes},  // RAM2
  });
}

extern "C" {

void uart_receive_handler() { rlt::board::take_received(); }

extern const rlt::cortex_m::VectorTable<32> vector_table;
[[gnu::used, gnu::section(".vectors")]] const rlt::cortex_m::VectorTable<32> vector_table = {
    {}, {uart_receive_handler, fault_handler}};

}  // extern "C"
