// Why a board does not train: its processor, compiler or flags give other bits than the core relies
// on (rltools/core/self_test.h). As a STATUSTEXT: at most 50 characters.
#pragma once

#include "rltools/core/self_test.h"

namespace rlt {

// Return the refusal in words; null where nothing is wrong.
constexpr const char* arithmetic_refusal(ArithmeticFault fault) {
  switch (fault) {
    case ArithmeticFault::none: return nullptr;
    case ArithmeticFault::rounding: return "training refused: rounding is not to nearest";
    case ArithmeticFault::subnormal: return "training refused: subnormal numbers become zero";
    case ArithmeticFault::fused_multiply_add:
      return "training refused: fused multiply-add is not exact";
    case ArithmeticFault::contraction: return "training refused: products and sums are contracted";
    case ArithmeticFault::division: return "training refused: division is not exact";
    case ArithmeticFault::square_root: return "training refused: square root is not exact";
    case ArithmeticFault::not_a_number: return "training refused: NaN is lost or changed";
    case ArithmeticFault::double_precision: return "training refused: double is not binary64";
  }
  return "training refused: arithmetic fails";
}

}  // namespace rlt
