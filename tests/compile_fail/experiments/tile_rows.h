// The batch of 100 cannot be worked through in tiles of 30.
// says: kTileRows does not divide kBatchSize
// says: Size<10>::kIs<0>
#pragma once

#include "pendulum_td3.h"

namespace rlt {

struct TileRows : PendulumTd3 {
#if defined(RLT_CORRECTED)
  static constexpr int kTileRows = 25;
#else
  static constexpr int kTileRows = 30;
#endif
};

}  // namespace rlt
