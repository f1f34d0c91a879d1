// Test: kernel_agreement address all
// The host's kernels with no vectors: plain register tiles, as on a machine that has no others.
#define RLT_VECTOR_BITS 0
#include "dense_at_run_time_agreement.h"
#include "kernel_agreement.h"
#include "rltools/devices/host.h"
#include "transpose_words_agreement.h"

static_assert(rlt::kernels::kLanes <= 1);

TEST_CASE("the host's kernels with no vectors give the reference's bits") {
  kernel_agreement::run_briefly<rlt::Host>();
}

RLT_TEST_DENSE_AT_RUN_TIME(Host, rlt::HostSimd)
