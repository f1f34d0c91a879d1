// A queue of bytes between one writer and one reader, of which one may be an interrupt: Lamport's
// ring with running counts ("Specifying Concurrent Program Modules", 1983).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rlt {

template <std::uint32_t Bytes>
class RingBuffer {
 public:
  static_assert((Bytes & (Bytes - 1)) == 0, "the counts wrap at 2^32: Bytes is a power of two");

  // Put a byte, in the writer. Return false where the buffer is full.
  bool put(std::uint8_t byte) {
    const std::uint32_t end = end_.load(std::memory_order_relaxed);
    if (end - begin_.load(std::memory_order_acquire) == Bytes) return false;
    bytes_[end % Bytes] = byte;
    end_.store(end + 1, std::memory_order_release);
    return true;
  }

  // Take bytes, in the reader. Return their number.
  std::size_t take(std::uint8_t* destination, std::size_t capacity) {
    std::uint32_t begin = begin_.load(std::memory_order_relaxed);
    const std::uint32_t end = end_.load(std::memory_order_acquire);
    std::size_t count = 0;
    while (begin != end && count < capacity) destination[count++] = bytes_[begin++ % Bytes];
    begin_.store(begin, std::memory_order_release);
    return count;
  }

  // Return whether it is empty, in either side.
  bool is_empty() const {
    return begin_.load(std::memory_order_acquire) == end_.load(std::memory_order_acquire);
  }
  bool is_full() const {
    return end_.load(std::memory_order_acquire) - begin_.load(std::memory_order_acquire) == Bytes;
  }

 private:
  std::uint8_t bytes_[Bytes];
  std::atomic<std::uint32_t> begin_{0}, end_{0};  // running counts
};

}  // namespace rlt
