// Test: as-firmware kernel_agreement
// The kernels that device Rv32imafc selects: which one for each operation, and the same bits as the
// reference.
#include "dispatch_assertions.h"
#include "kernel_agreement.h"
#include "rltools/devices/rv32imafc.h"

using namespace rlt;

// A lost optimisation is a failed build.
RLT_ASSERT_DISPATCH(Rv32imafc, dense_forward, RiscvF);
RLT_ASSERT_DISPATCH(Rv32imafc, dense_backward_weights, RiscvF);
RLT_ASSERT_DISPATCH(Rv32imafc, dense_backward_input, RiscvF);
RLT_ASSERT_DISPATCH(Rv32imafc, activation_forward, Generic);
RLT_ASSERT_DISPATCH(Rv32imafc, activation_backward, Generic);
RLT_ASSERT_DISPATCH(Rv32imafc, relu_forward, Generic);
RLT_ASSERT_DISPATCH(Rv32imafc, relu_backward, Generic);
RLT_ASSERT_DISPATCH(Rv32imafc, adam_update, Generic);
RLT_ASSERT_DISPATCH(Rv32imafc, polyak_update, Generic);
RLT_ASSERT_BATCH_DISPATCH(Rv32imafc, Generic);
RLT_ASSERT_DISPATCH(Rv32imafc, run_tasks, Generic);
RLT_ASSERT_DISPATCH(Rv32imafc, run_long_tasks, Generic);

TEST_CASE("the RISC-V kernels give the reference's bits") {
  kernel_agreement::run_briefly<Rv32imafc>();
}
