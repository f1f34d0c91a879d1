// The board that QEMU's machine virt is: the UART is its link, instructions are its clock.
#include "board_api.h"

#include "processors/patient_port.h"
#include "processors/ring_buffer.h"
#include "processors/riscv/control_registers.h"
#include "processors/riscv/floating_point.h"
#include "processors/riscv/memory_protection.h"
#include "processors/stack_paint.h"
#include "qemu_virt/registers.h"

extern "C" {
extern std::uint32_t stack_limit[], stack_top[];
extern std::uint8_t code_begin[], code_bytes[], ram_begin[], ram_bytes[];
}

namespace rlt::board {

namespace {

using namespace virt;

// The interrupt takes each byte out of the UART. Where the buffer is full it turns itself off, and
// QEMU keeps the rest until read() has made space.
RingBuffer<1024> received;
std::atomic<bool> interrupt_is_off{false};

// Under -icount shift=5 an instruction takes 32 ns of the machine's time, and is counted as such.
constexpr std::uint64_t kCountsAnInstruction = 32;

PatientPort<std::uint64_t> port(31'250'000);  // instructions: a second of the machine's

constexpr std::uint32_t kIdle_ticks = 100'000;  // 10 ms

void take_received() {
  while (uart_line_status() & kReceiveFull) {
    if (received.is_full()) {
      uart_interrupt_enable() = 0;
      interrupt_is_off = true;
      return;
    }
    received.put(uart_data());
  }
}

std::uint32_t address(const std::uint8_t* symbol) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(symbol));
}

}  // namespace

const bool kCountsInstructions = true;

void initialize() {
  riscv::use_ieee_arithmetic();
  interrupt_enable() = 1u << kUartIrq;
  uart_priority() = 1;
  uart_interrupt_enable() = kReceiveInterrupt;  // last: QEMU's controller looks at its lines then
  riscv::set_bits<riscv::kMie>(riscv::kExternal);
  riscv::enable_interrupts();
}

std::size_t read(std::uint8_t* destination, std::size_t capacity) {
  const std::size_t count = received.take(destination, capacity);
  if (interrupt_is_off) {
    interrupt_is_off = false;
    uart_interrupt_enable() = kReceiveInterrupt;  // at once, for the byte that waits
  }
  return count;
}

void write(const std::uint8_t* source, std::size_t count) {
  port.write(
      source, count, [] { return (uart_line_status() & kTransmitEmpty) == 0; }, counter,
      [](std::uint8_t byte) { uart_data() = byte; });
}

std::uint64_t counter() { return riscv::executed_instructions() / kCountsAnInstruction; }

void unique_id(std::uint8_t (&id)[16]) {
  for (std::uint8_t& byte : id) byte = 0;
}

StackUse stack_use() { return painted_stack_use(stack_limit, stack_top); }

// Sleep until a byte arrives, or for 10 ms. The timer runs here only, so that it never interrupts
// training.
void idle() {
  const std::uint32_t now_high = timer_high(), now = timer_low();
  timer_compare_high() = 0xffffffffu;  // no time between the two words' stores is the wrong one
  timer_compare_low() = now + kIdle_ticks;
  timer_compare_high() = now_high + (now + kIdle_ticks < now);
  riscv::disable_interrupts();
  riscv::set_bits<riscv::kMie>(riscv::kTimer);
  if (received.is_empty()) __asm__ volatile("wfi");  // a pending interrupt wakes it
  riscv::clear_bits<riscv::kMie>(riscv::kTimer);
  riscv::enable_interrupts();
}

bool should_exit() { return false; }

}  // namespace rlt::board

void rlt::riscv::handle_interrupt() {
  const std::uint32_t irq = virt::interrupt_claim();
  if (irq == virt::kUartIrq) board::take_received();
  virt::interrupt_claim() = irq;
}

// Only the board's memories and what it has of the peripherals can be accessed: QEMU's machine has
// more memory, and swallows stores where it has none. The stack ends at the bottom of RAM, so an
// overflow is a fault.
void rlt::riscv::protect_memory() {
  using board::address;
  protect({
      {address(code_begin), address(code_bytes), kReadable | kExecutable},
      {address(ram_begin), address(ram_bytes), kReadable | kWritable},
      {virt::kClint, 0x10000, kReadable | kWritable},
      {virt::kPlic, 0x400000, kReadable | kWritable},
      {virt::kUart, 0x1000, kReadable | kWritable},
      {virt::kFlash, virt::kFlashBytes, kReadable | kWritable},
  });
}
