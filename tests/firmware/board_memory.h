// What the board of a test's node consists of (board_in_memory.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace board_in_memory {

using Bytes = std::vector<std::uint8_t>;

inline std::deque<std::uint8_t> to_board;
inline Bytes from_board;
inline std::uint64_t counter_us = 0;
inline int idle_calls = 0;

std::size_t read(std::uint8_t* destination, std::size_t capacity);
void write(const std::uint8_t* source, std::size_t count);

}  // namespace board_in_memory
