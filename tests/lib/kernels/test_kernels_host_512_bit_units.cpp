// The host's kernels as they are chosen for a core with 512-bit units.
#define RLT_UNIT_BITS 512
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "kernel_agreement.h"

#if defined(__AVX512F__)
#include "rltools/devices/host.h"
static_assert(rlt::kernels::kWideUnits);

TEST_CASE("the kernels for a core with 512-bit units give the reference's bits") {
  kernel_agreement::run_briefly<rlt::Host>();
}
#else
TEST_CASE("vectors of 512 bits are not to be had here" * doctest::skip()) {}
#endif
