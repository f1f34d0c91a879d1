// The transport of a node's bytes. It is given to a node by the program, which knows the board.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rlt::link {

struct Transport {
  // Read up to `capacity` bytes that have arrived; return their number, 0 when there are none.
  // Never blocks.
  std::size_t (*read)(std::uint8_t* destination, std::size_t capacity);
  // Write a frame. May wait while the host is slow, but gives up when no host reads.
  void (*write)(const std::uint8_t* source, std::size_t count);
};

}  // namespace rlt::link
