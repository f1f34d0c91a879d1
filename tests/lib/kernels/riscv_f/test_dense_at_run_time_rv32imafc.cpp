// Test: as-firmware kernel_agreement all
// Layers of run-time shape on device Rv32imafc.
#include "dense_at_run_time_agreement.h"
#include "rltools/devices/rv32imafc.h"

RLT_TEST_DENSE_AT_RUN_TIME(Rv32imafc, rlt::RiscvF)
