// Test: as-firmware kernel_agreement
// The kernels that device HostThreads selects: which one for each operation, and the same bits as
// the reference.
#include "dispatch_assertions.h"
#include "kernel_agreement.h"
#include "rltools/devices/host_threads.h"

using namespace rlt;

// A lost optimization is a failed build. The forward product and the input gradient are split by
// rows before they come to a kernel.
RLT_ASSERT_DISPATCH(HostThreads, HostSimd, HostSimdThreads, Generic, HostSimdThreads,
                    HostSimdThreads);

// Of a shape that is worth sharing; smaller ones are kernels of Host, which its test goes through.
TEST_CASE("two threads' kernels give the reference's bits") {
  constexpr int kBatch = 100, kIn = 64, kOut = 64;
  static_assert(parts_of_product<HostThreads>(long{kBatch} * kIn * kOut) > 1);
  using kernel_agreement::dense_kernels;
  kernel_agreement::check_dense(dense_kernels<HostThreads, Activation::relu, kBatch, kIn, kOut>());
  for (const auto& kernels : kernel_agreement::kernels_of_optimizer<HostThreads>()) {
    kernel_agreement::check_optimizer(kernels);
  }
}
