// The sending side of a port that takes one byte at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rlt {

// A host that does not read is waited for once, for so many ticks of a clock; until it reads again
// what finds no room is dropped. What is sent is a part of a message or all of it: checksums tell.
template <class Ticks>
class PatientPort {
 public:
  explicit constexpr PatientPort(Ticks patience) : patience_(patience) {}

  // Write bytes. The functions return whether there is no room and the time, which may wrap, and
  // take a byte.
  template <class IsFull, class Now, class Put>
  void write(const std::uint8_t* source, std::size_t count, IsFull is_full, Now now, Put put) {
    const Ticks start = now();
    for (std::size_t i = 0; i < count; i++) {
      while (is_full()) {
        if (host_absent_ || static_cast<Ticks>(now() - start) > patience_) {
          host_absent_ = true;
          return;
        }
      }
      put(source[i]);
    }
    host_absent_ = false;
  }

 private:
  Ticks patience_;
  bool host_absent_ = false;
};

}  // namespace rlt
