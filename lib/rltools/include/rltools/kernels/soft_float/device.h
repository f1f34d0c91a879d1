// Processors without floating-point unit, on which integers compute every operation.
#pragma once

#include "rltools/core/device.h"

namespace rlt {
struct SoftFloat : Generic {};
}  // namespace rlt
