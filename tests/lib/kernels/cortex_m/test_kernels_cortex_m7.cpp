// Test: kernel_agreement address
// The kernels that device CortexM7 selects: which one for each operation, and the same bits as the
// reference, what it has in the processor's instructions apart.
#include <cmath>

#include "dense_at_run_time_agreement.h"
#include "dispatch_assertions.h"
#include "kernel_agreement.h"
#include "rltools/devices/cortex_m7.h"

using namespace rlt;

//                            products  weights  ReLU     Adam     tasks
RLT_ASSERT_DISPATCH(CortexM7, CortexM, CortexM, CortexM, CortexM, Generic);

TEST_CASE("the Cortex-M kernels give the reference's bits") { kernel_agreement::run<CortexM7>(); }

// Which no result shows: a product with a zero adds nothing to a sum.
TEST_CASE("a factor of either zero is no term of a list, and a NaN is one") {
  const float factors[] = {1.0f, 0.0f, -0.0f, NAN, 1e-45f};
  const float rows[5] = {};
  kernels::TermList<5> list;
  kernels::list_terms<5, kernels::Strides<5, 1>, kernels::Strides<1, 1>>(factors, rows, list);
  REQUIRE(list.count == 3);
  CHECK(list.rows[2] == rows);
  CHECK(list.rows[3] == rows + 3);
  CHECK(list.rows[4] == rows + 4);
}

RLT_TEST_DENSE_AT_RUN_TIME(CortexM7, rlt::CortexM)
static_assert(
    std::is_same_v<decltype(gates_at_run_time(rlt::CortexM7{}, 1, nullptr, nullptr)), rlt::CortexM>,
    "CortexM7 does not select the kernel for a recurrent layer's gates");
