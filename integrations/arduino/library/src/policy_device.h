// The processor's kernels, by what the compiler says of it (no bit depends on them), and where
// constants stay in flash.
#pragma once

#if defined(__IMXRT1062__)
#include "rltools/devices/cortex_m7.h"
#define RLT_DEVICE rlt::CortexM7
#elif defined(__ARM_ARCH_7EM__) && defined(__ARM_FP)
#include "rltools/devices/cortex_m4.h"
#define RLT_DEVICE rlt::CortexM4
#elif defined(__arm__) && !defined(__ARM_FP)
#include "rltools/devices/cortex_m3.h"
#define RLT_DEVICE rlt::CortexM3
#elif defined(__riscv) && __riscv_xlen == 32 && defined(__riscv_flen)
#include "rltools/devices/rv32imafc.h"
#define RLT_DEVICE rlt::Rv32imafc
#elif defined(__riscv) && __riscv_xlen == 32
#include "rltools/devices/rv32imc.h"
#define RLT_DEVICE rlt::Rv32imc
#else
#include "rltools/devices/generic.h"
#define RLT_DEVICE rlt::Generic
#endif

// A Teensy 4 copies constants to its fast memory unless they are told to stay.
#if defined(__IMXRT1062__)
#define RLT_IN_FLASH __attribute__((section(".progmem")))
#else
#define RLT_IN_FLASH
#endif
