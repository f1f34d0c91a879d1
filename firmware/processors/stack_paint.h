// The stack that was ever used: start-up fills the stack with a word; memory that still holds that
// word was never used.
#pragma once

#include "board_api.h"

namespace rlt {

constexpr std::uint32_t kStackPaint = 0xc5a3c5a3u;

// Fill the stack from its lowest word to `end`. Not for memory that holds the frame of a caller.
inline void paint_stack(std::uint32_t* limit, const std::uint32_t* end) {
  for (volatile std::uint32_t* word = limit; word < end; word++) *word = kStackPaint;
}

inline board::StackUse painted_stack_use(const std::uint32_t* limit, const std::uint32_t* top) {
  const std::uint32_t* used = limit;
  while (used < top && *used == kStackPaint) used++;
  return {static_cast<std::uint32_t>((top - limit) * 4),
          static_cast<std::uint32_t>((top - used) * 4)};
}

}  // namespace rlt
