// Device CortexM4 selects the kernels of device CortexM7, whose test compares their bits.
#include <doctest/doctest.h>

#include "dispatch_assertions.h"
#include "rltools/devices/cortex_m4.h"

using namespace rlt;

// A lost optimisation is a failed build.
RLT_ASSERT_DISPATCH(CortexM4, dense_forward, CortexM);
RLT_ASSERT_DISPATCH(CortexM4, dense_backward_weights, CortexM);
RLT_ASSERT_DISPATCH(CortexM4, dense_backward_input, CortexM);
RLT_ASSERT_DISPATCH(CortexM4, activation_forward, Generic);  // tanh
RLT_ASSERT_DISPATCH(CortexM4, relu_forward, CortexM);
RLT_ASSERT_DISPATCH(CortexM4, relu_backward, CortexM);
RLT_ASSERT_DISPATCH(CortexM4, activation_backward, Generic);
RLT_ASSERT_DISPATCH(CortexM4, adam_update, CortexM);
RLT_ASSERT_DISPATCH(CortexM4, polyak_update, Generic);
RLT_ASSERT_DISPATCH(CortexM4, run_tasks, Generic);

TEST_CASE("a product by the device of a Cortex-M4") {
  const float weights[] = {1, 2, 3, 4}, bias[] = {10, 20}, input[] = {1, -1};  // (in, out)
  float output[2];
  const CortexM selected =
      dense_forward<Activation::identity, 1, 2, 2>(CortexM4{}, weights, bias, input, output);
  (void)selected;
  CHECK(output[0] == 8.0f);
  CHECK(output[1] == 18.0f);
}
