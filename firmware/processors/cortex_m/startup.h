// What startup.cpp asks of a board.
#pragma once

namespace rlt::cortex_m {

// Called once before main(), with faults enabled and memory initialised: makes accesses fault where
// the board has no memory, so that an overflow of the stack is noticed.
void protect_memory();

}  // namespace rlt::cortex_m
