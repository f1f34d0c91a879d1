// The interface of a board for the firmware applications: nine functions and a constant, no
// vendor header. Each board implements them in firmware/<board>/; applications include this file
// and nothing of the board.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rlt::board {

// Bring up clock, floating-point mode (round to nearest, no flush to zero, no default NaN), counter
// and link.
void initialize();

// Read up to `capacity` bytes that have arrived; return how many, 0 when none. Never blocks.
std::size_t read(std::uint8_t* destination, std::size_t capacity);

// Write bytes to the link. May wait while the host is slow, but gives up when no host reads:
// training goes on.
void write(const std::uint8_t* source, std::size_t count);

// Return a monotonic counter: microseconds on hardware and host, guest instructions on an emulated
// processor.
std::uint64_t counter();

// True where counter() counts guest instructions and therefore says nothing about time.
extern const bool kCountsInstructions;

// Set 16 bytes that tell this board from others of its kind; zeros where it has no serial number.
void unique_id(std::uint8_t (&id)[16]);

// Size of the stack, and the most that was ever used of it; zeros where the board does not know.
struct StackUse {
  std::uint32_t capacity_bytes;
  std::uint32_t peak_bytes;
};
StackUse stack_use();

// Wait briefly for bytes where that saves power or host time. Called when there is nothing to do
// (idle, paused).
void idle();

// Return true once the link has closed and the program should end: a local process whose pipe is
// closed.
bool should_exit();

}  // namespace rlt::board

namespace rlt {

// Send the host at most 50 characters on a fault of the processor; a board may call it before it
// stops.
void report_fault(const char* text);

}  // namespace rlt

// Placement of the three parts of a training state. The fast part is tightly coupled memory, the
// bulk part any RAM; a board's linker script or core gives the sections their addresses. On the
// host both are ordinary memory.
#if defined(RLT_SECTION_FAST)
#define RLT_FAST __attribute__((section(RLT_SECTION_FAST)))
#else
#define RLT_FAST
#endif
#if defined(RLT_SECTION_BULK)
#define RLT_BULK __attribute__((section(RLT_SECTION_BULK)))
#else
#define RLT_BULK
#endif
