// Test: as-firmware kernel_agreement all
// Layers of run-time shape on device Host with vectors of at most 256 bits.
#define RLT_VECTOR_BITS 256
#include "dense_at_run_time_agreement.h"
#include "rltools/devices/host.h"

RLT_TEST_DENSE_AT_RUN_TIME(Host, rlt::HostSimd)
