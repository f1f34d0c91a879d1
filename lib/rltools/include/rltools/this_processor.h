// ThisProcessor: the device whose kernels suit the processor that is compiled for, as far as the
// compiler's macros tell. No bit depends on the choice. RLT_DEVICE_HEADER and RLT_DEVICE name
// another device: one for a Cortex-M7 with single precision only, which no macro tells from an M4.
#pragma once

#if defined(RLT_DEVICE_HEADER)
#include RLT_DEVICE_HEADER
#define RLT_THIS_PROCESSOR RLT_DEVICE
#elif defined(__ARM_ARCH_7EM__) && defined(__ARM_FP) && (__ARM_FP & 8)
#include "rltools/devices/cortex_m7.h"
#define RLT_THIS_PROCESSOR CortexM7
#elif defined(__ARM_ARCH_7EM__) && defined(__ARM_FP)
#include "rltools/devices/cortex_m4.h"
#define RLT_THIS_PROCESSOR CortexM4
#elif defined(__arm__) && !defined(__ARM_FP)
#include "rltools/devices/cortex_m3.h"
#define RLT_THIS_PROCESSOR CortexM3
#elif defined(__riscv) && __riscv_xlen == 32 && defined(__riscv_flen)
#include "rltools/devices/rv32imafc.h"
#define RLT_THIS_PROCESSOR Rv32imafc
#elif defined(__riscv) && __riscv_xlen == 32
#include "rltools/devices/rv32imc.h"
#define RLT_THIS_PROCESSOR Rv32imc
#elif defined(__XTENSA__) && defined(__XTENSA_SOFT_FLOAT__)
#include "rltools/devices/xtensa_lx106.h"
#define RLT_THIS_PROCESSOR XtensaLx106
#elif defined(__XTENSA__)
#include "rltools/devices/xtensa_lx6.h"
#define RLT_THIS_PROCESSOR XtensaLx6
#else
#include "rltools/devices/generic.h"
#define RLT_THIS_PROCESSOR Generic
#endif

namespace rlt {
using ThisProcessor = RLT_THIS_PROCESSOR;
}  // namespace rlt
#undef RLT_THIS_PROCESSOR
