// The kernels that device CortexM7 selects: which one for each operation, and the same bits as the
// reference.
#include "dispatch_assertions.h"
#include "kernel_agreement.h"
#include "rltools/devices/cortex_m7.h"

using namespace rlt;

// A lost optimisation is a failed build.
RLT_ASSERT_DISPATCH(CortexM7, dense_forward, CortexM);
RLT_ASSERT_DISPATCH(CortexM7, dense_backward_weights, CortexM);
RLT_ASSERT_DISPATCH(CortexM7, dense_backward_input, CortexM);
RLT_ASSERT_DISPATCH(CortexM7, activation_forward, Generic);  // tanh
RLT_ASSERT_DISPATCH(CortexM7, relu_forward, CortexM);
RLT_ASSERT_DISPATCH(CortexM7, relu_backward, CortexM);
RLT_ASSERT_DISPATCH(CortexM7, activation_backward, Generic);
RLT_ASSERT_DISPATCH(CortexM7, adam_update, CortexM);
RLT_ASSERT_DISPATCH(CortexM7, polyak_update, Generic);

TEST_CASE("the Cortex-M kernels give the reference's bits") { kernel_agreement::run<CortexM7>(); }
