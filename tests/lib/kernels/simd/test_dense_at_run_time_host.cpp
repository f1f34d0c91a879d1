// Test: as-firmware kernel_agreement
// Layers of run-time shape on device Host.
#include "dense_at_run_time_agreement.h"
#include "rltools/devices/host.h"

RLT_TEST_DENSE_AT_RUN_TIME(Host, rlt::HostSimd)
