// Xtensa with single-precision floating-point unit: LX6 (ESP32), the LX7 of an ESP32-S3. GCC's fma
// is its instruction madd.s.
#pragma once

#include "rltools/nn/dense.h"
#include "rltools/nn/dense_at_run_time.h"
#include "rltools/nn/optimizer.h"

namespace rlt {
struct XtensaLx6 : Generic {};
}  // namespace rlt
