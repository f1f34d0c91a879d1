// RISC-V of 32 bits without floating-point unit, with multiplication: ESP32-C3, GD32VF103.
#pragma once

#include "rltools/kernels/soft_float/dense.h"
#include "rltools/nn/optimizer.h"

namespace rlt {
struct Rv32imc : SoftFloat {};
}  // namespace rlt
