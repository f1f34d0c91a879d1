// Test: kernel_agreement all
// The host's kernels as they are chosen for a core with 512-bit units whose loads do not delay
// multiply-adds. Where this machine's core is one, test_kernels_host.cpp compiles and tests these
// already.
#include "kernel_agreement.h"

#if defined(__AVX512F__) && \
    !(defined(__znver5__) || (defined(__AVX512VP2INTERSECT__) && defined(__AVXVNNI__)))
#define RLT_UNIT_BITS 512
#include "rltools/devices/host.h"
static_assert(rlt::kernels::kWideUnits);

TEST_CASE("the kernels for a core with 512-bit units give the reference's bits") {
  CHECK(rlt::kernels::kKindOfCore == doctest::String("512-bit units"));
  kernel_agreement::run_briefly<rlt::Host>();
}
#else
TEST_CASE("no vectors of 512 bits, or tested with the host's kernels" * doctest::skip()) {}
#endif
