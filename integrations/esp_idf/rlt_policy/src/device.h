// The library's device of the chip that is compiled for: no bit depends on it.
#pragma once

#if defined(__riscv) && defined(__riscv_flen)
#include "rltools/devices/rv32imafc.h"
namespace rlt::esp_idf {
using Device = Rv32imafc;  // ESP32-P4
}
#elif defined(__riscv)
#include "rltools/devices/rv32imc.h"
namespace rlt::esp_idf {
using Device = Rv32imc;  // ESP32-C2, C3, C5, C6, H2
}
#else
#include "rltools/devices/generic.h"
namespace rlt::esp_idf {
using Device = Generic;
}
#endif
