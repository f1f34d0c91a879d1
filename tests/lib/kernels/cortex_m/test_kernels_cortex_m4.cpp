// Test: kernel_agreement
// Device CortexM4 selects the kernels of device CortexM7, whose test compares their bits.
#include "dense_at_run_time_agreement.h"
#include "dispatch_assertions.h"
#include "rltools/devices/cortex_m4.h"

using namespace rlt;

//                            products  weights  ReLU     Adam     tasks
RLT_ASSERT_DISPATCH(CortexM4, CortexM, CortexM, CortexM, CortexM, Generic);

RLT_TEST_DENSE_AT_RUN_TIME(CortexM4, rlt::CortexM)
static_assert(
    std::is_same_v<decltype(gates_at_run_time(rlt::CortexM4{}, 1, nullptr, nullptr)), rlt::CortexM>,
    "CortexM4 does not select the kernel for a recurrent layer's gates");
