// Test: -O1 kernel_agreement address
// The reference device selects the reference implementation of every operation; the layer of
// run-time shape is the one of fixed shape.
#include "dense_at_run_time_agreement.h"
#include "dispatch_assertions.h"
#include "rltools/devices/generic.h"

using namespace rlt;

//                           products  weights  ReLU     Adam     tasks
RLT_ASSERT_DISPATCH(Generic, Generic, Generic, Generic, Generic, Generic);

RLT_TEST_DENSE_AT_RUN_TIME(Generic, rlt::Generic)
