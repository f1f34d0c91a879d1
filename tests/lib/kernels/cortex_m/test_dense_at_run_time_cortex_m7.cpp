// Test: as-firmware kernel_agreement
// Layers of run-time shape on device CortexM7, what it has in the processor's instructions apart.
#include "dense_at_run_time_agreement.h"
#include "rltools/devices/cortex_m7.h"

RLT_TEST_DENSE_AT_RUN_TIME(CortexM7, rlt::CortexM)
