// Xtensa without floating-point unit: LX106 (ESP8266), the LX7 of an ESP32-S2.
#pragma once

#include "rltools/kernels/soft_float/dense.h"
#include "rltools/nn/optimizer.h"

namespace rlt {
struct XtensaLx106 : SoftFloat {};
}  // namespace rlt
