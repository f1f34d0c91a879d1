// Numbers in the text that report_fault() sends.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rlt {

// Put eight hexadecimal digits, of which the last stands before `end`.
inline void put_hexadecimal(char* end, std::uint32_t value) {
  for (int digit = 1; digit <= 8; digit++, value >>= 4)
    end[-digit] = "0123456789abcdef"[value & 15];
}

}  // namespace rlt
