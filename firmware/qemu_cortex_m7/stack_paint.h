// Start-up fills the stack with this word; what still holds it was never used.
#pragma once

#include <cstdint>

namespace rlt {
constexpr std::uint32_t kStackPaint = 0xc5a3c5a3u;
}  // namespace rlt
