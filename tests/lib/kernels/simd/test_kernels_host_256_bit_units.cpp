// Test: kernel_agreement all
// The host's kernels as they are chosen for a core with 256-bit units, with vectors of 512 bits
// where there are some.
#define RLT_UNIT_BITS 256
#include "kernel_agreement.h"

#if defined(__AVX2__)
#include "rltools/devices/host.h"
static_assert(!rlt::kernels::kWideUnits);

TEST_CASE("the kernels for a core with 256-bit units give the reference's bits") {
  CHECK(rlt::kernels::kKindOfCore == doctest::String("256-bit units"));
  kernel_agreement::run_briefly<rlt::Host>();
}
#else
TEST_CASE("vectors of 256 bits are not to be had here" * doctest::skip()) {}
#endif
