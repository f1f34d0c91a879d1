// What startup.cpp and trap.cpp ask of a board.
#pragma once

namespace rlt::riscv {

// Called once before main(), with memory initialised: makes accesses fault where the board has no
// memory, so that an overflow of the stack is noticed.
void protect_memory();

// Called for an interrupt, with others off.
void handle_interrupt();

}  // namespace rlt::riscv
