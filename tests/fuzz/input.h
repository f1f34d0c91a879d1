// What every fuzz target reads its input with, and how it says what is broken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace fuzz {

using Bytes = std::vector<std::uint8_t>;

// Ends the program where an invariant is broken: libFuzzer then writes the input to a file.
inline void require(bool holds, const char* invariant) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", invariant);
  std::abort();
}

// The fuzzer's bytes, taken from the front; zeros when there are no more.
class Input {
 public:
  Input(const std::uint8_t* bytes, std::size_t count) : bytes_(bytes), left_(count) {}

  bool is_empty() const { return left_ == 0; }

  template <class T>
  T take() {
    T value{};
    const std::size_t count = left_ < sizeof(T) ? left_ : sizeof(T);
    if (count > 0) std::memcpy(&value, bytes_, count);
    bytes_ += count;
    left_ -= count;
    return value;
  }

  Bytes take_bytes(std::size_t count) {
    if (count > left_) count = left_;
    const Bytes taken(bytes_, bytes_ + count);
    bytes_ += count;
    left_ -= count;
    return taken;
  }

  // An element of an array.
  template <class T, std::size_t Count>
  T choose(const T (&values)[Count]) {
    return values[take<std::uint8_t>() % Count];
  }

 private:
  const std::uint8_t* bytes_;
  std::size_t left_;
};

}  // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count);
