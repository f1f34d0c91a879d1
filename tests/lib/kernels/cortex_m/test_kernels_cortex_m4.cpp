// Test: as-firmware
// Device CortexM4 selects the kernels of device CortexM7, whose test compares their bits.
#include <doctest/doctest.h>

#include "cortex_m_dispatch.h"
#include "rltools/devices/cortex_m4.h"

using namespace rlt;

RLT_ASSERT_CORTEX_M_DISPATCH(CortexM4);

TEST_CASE("a product by the device of a Cortex-M4") {
  const float weights[] = {1, 2, 3, 4}, bias[] = {10, 20}, input[] = {1, -1};  // (in, out)
  float output[2];
  const CortexM selected =
      dense_forward<Activation::identity, 1, 2, 2>(CortexM4{}, weights, bias, input, output);
  (void)selected;
  CHECK(output[0] == 8.0f);
  CHECK(output[1] == 18.0f);
}
