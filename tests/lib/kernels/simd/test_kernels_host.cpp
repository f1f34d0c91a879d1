// Test: as-firmware kernel_agreement more
// The kernels that device Host selects: which one for each operation, and the same bits as the
// reference.
#include "dispatch_assertions.h"
#include "kernel_agreement.h"
#include "rltools/devices/host.h"

using namespace rlt;

// A lost optimisation is a failed build.
RLT_ASSERT_DISPATCH(Host, dense_forward, HostSimd);
RLT_ASSERT_DISPATCH(Host, dense_backward_weights, HostSimd);
RLT_ASSERT_DISPATCH(Host, dense_backward_input, HostSimd);
RLT_ASSERT_DISPATCH(Host, activation_forward, Generic);
RLT_ASSERT_DISPATCH(Host, activation_backward, Generic);
RLT_ASSERT_DISPATCH(Host, adam_update, Generic);
RLT_ASSERT_DISPATCH(Host, polyak_update, Generic);
RLT_ASSERT_BATCH_DISPATCH(Host, Generic);
RLT_ASSERT_DISPATCH(Host, run_tasks, Generic);
RLT_ASSERT_DISPATCH(Host, run_long_tasks, Generic);

TEST_CASE("the host's kernels give the reference's bits") { kernel_agreement::run<Host>(); }
