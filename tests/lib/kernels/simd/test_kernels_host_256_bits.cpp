// Test: as-firmware kernel_agreement all
// The host's kernels with vectors of at most 256 bits (AVX2), as on a machine that has no wider
// ones.
#define RLT_VECTOR_BITS 256
#include "kernel_agreement.h"
#include "rltools/devices/host.h"

static_assert(rlt::kernels::kLanes <= 8);

TEST_CASE("the host's kernels with narrower vectors give the reference's bits") {
  kernel_agreement::run_briefly<rlt::Host>();
}
