// Test: as-firmware kernel_agreement
// The reference of layers of run-time shape.
#include "dense_at_run_time_agreement.h"
#include "rltools/devices/generic.h"

RLT_TEST_DENSE_AT_RUN_TIME(Generic, rlt::Generic)
