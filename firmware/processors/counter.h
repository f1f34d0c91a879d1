// 64-bit counts from hardware counters of 32 bits.
#pragma once

#include <cstdint>

namespace rlt {

// Return the count whose low 32 bits are `low` and which is nearest to `coarse`, a second counter's
// reading in the same unit that is wrong by less than 2^31. It keeps no state, and can be called at
// any interval.
constexpr std::uint64_t extend_count(std::uint32_t low, std::uint64_t coarse) {
  const auto difference =
      static_cast<std::int32_t>(low - static_cast<std::uint32_t>(coarse & 0xffffffffu));
  const std::int64_t count = static_cast<std::int64_t>(coarse) + difference;
  return count < 0 ? low : static_cast<std::uint64_t>(count);
}

// A 64-bit counter where there is no second one: it adds up what the first has counted since the
// last call, which must be less than 2^32 ago. Called from one thread only.
class CountExtender {
 public:
  std::uint64_t extend(std::uint32_t low) {
    total_ += low - last_;
    last_ = low;
    return total_;
  }

 private:
  std::uint64_t total_ = 0;
  std::uint32_t last_ = 0;
};

}  // namespace rlt
