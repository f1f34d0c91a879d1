// Test: kernel_agreement address
// The kernels that device Rv32imafc selects: which one for each operation, and the same bits as the
// reference.
#include "dense_at_run_time_agreement.h"
#include "dispatch_assertions.h"
#include "kernel_agreement.h"
#include "rltools/devices/rv32imafc.h"

using namespace rlt;

RLT_ASSERT_DISPATCH(Rv32imafc, RiscvF, RiscvF, Generic, Generic, Generic);

TEST_CASE("the RISC-V kernels give the reference's bits") {
  kernel_agreement::run_briefly<Rv32imafc>();
}

RLT_TEST_DENSE_AT_RUN_TIME(Rv32imafc, rlt::RiscvF)
