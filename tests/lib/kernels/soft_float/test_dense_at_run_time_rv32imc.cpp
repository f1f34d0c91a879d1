// Test: as-firmware kernel_agreement all
// Layers of run-time shape on processors without floating-point unit.
#include "dense_at_run_time_agreement.h"
#include "rltools/devices/rv32imc.h"

RLT_TEST_DENSE_AT_RUN_TIME(Rv32imc, rlt::SoftFloat)
