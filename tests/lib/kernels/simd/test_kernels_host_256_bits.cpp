// Test: kernel_agreement all
// The host's kernels with vectors of at most 256 bits (AVX2), as on a machine that has no wider
// ones.
#define RLT_VECTOR_BITS 256
#include "dense_at_run_time_agreement.h"
#include "kernel_agreement.h"
#include "nonzero_bits_agreement.h"
#include "rltools/devices/host.h"
#include "transpose_words_agreement.h"

static_assert(rlt::kernels::kLanes <= 8);

TEST_CASE("the host's kernels with narrower vectors give the reference's bits") {
  kernel_agreement::run_briefly<rlt::Host>();
}

RLT_TEST_DENSE_AT_RUN_TIME(Host, rlt::HostSimd)
