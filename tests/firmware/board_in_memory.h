// The board of a test's node, which is memory (firmware/board_api.h): a test puts bytes into its
// link and takes out what it sends. Included by a program's one source file.
#pragma once

#include "app/link/revision.h"
#include "board_api.h"
#include "board_memory.h"

namespace board_in_memory {

std::size_t read(std::uint8_t* destination, std::size_t capacity) {
  std::size_t count = 0;
  while (count < capacity && !to_board.empty()) {
    destination[count++] = to_board.front();
    to_board.pop_front();
  }
  return count;
}
void write(const std::uint8_t* source, std::size_t count) {
  from_board.insert(from_board.end(), source, source + count);
}

}  // namespace board_in_memory

namespace rlt {

const char kRevision[] = "test";

namespace board {

const bool kCountsInstructions = false;

std::uint64_t counter() { return board_in_memory::counter_us += 10; }
void unique_id(std::uint8_t (&id)[16]) {
  for (int i = 0; i < 16; i++) id[i] = static_cast<std::uint8_t>(i);
}
StackUse stack_use() { return {4096, 1234}; }
void idle() { board_in_memory::idle_calls++; }

}  // namespace board
}  // namespace rlt
