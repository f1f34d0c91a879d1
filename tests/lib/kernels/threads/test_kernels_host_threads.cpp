// Test: as-firmware kernel_agreement
// The kernels that device HostThreads selects: which one for each operation, and the same bits as
// the reference.
#include "dispatch_assertions.h"
#include "kernel_agreement.h"
#include "rltools/devices/host_threads.h"

using namespace rlt;

// A lost optimisation is a failed build. The forward product and the input gradient are split by
// rows before they come to a kernel.
RLT_ASSERT_DISPATCH(HostThreads, HostSimd, HostSimdThreads, Generic, HostSimdThreads,
                    HostSimdThreads);

// The products are those of Host, whose test goes through more shapes; what is shared is not.
TEST_CASE("two threads' kernels give the reference's bits") {
  kernel_agreement::run_briefly<HostThreads>();
  for (const auto& kernels : kernel_agreement::kernels_of_optimizer<HostThreads>()) {
    kernel_agreement::check_optimizer(kernels);
  }
}
