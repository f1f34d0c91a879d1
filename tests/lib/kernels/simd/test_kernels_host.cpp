// Test: kernel_agreement also-as-firmware
// The kernels that device Host selects: which one for each operation, and the same bits as the
// reference.
#include "dense_at_run_time_agreement.h"
#include "dispatch_assertions.h"
#include "kernel_agreement.h"
#include "nonzero_bits_agreement.h"
#include "rltools/devices/host.h"
#include "transpose_words_agreement.h"

using namespace rlt;

RLT_ASSERT_DISPATCH(Host, HostSimd, HostSimd, Generic, Generic, Generic);

TEST_CASE("the host's kernels give the reference's bits") { kernel_agreement::run<Host>(); }

RLT_TEST_DENSE_AT_RUN_TIME(Host, rlt::HostSimd)

TEST_CASE("permuted indices at once are those of one at a time, and nothing beyond is written") {
  constexpr std::uint32_t kUntouched = 0xdeadbeefu;
  // Counts that fill the network's bits, fill a little more than a quarter of them, and others.
  for (const std::uint32_t count : {1u, 2u, 5u, 64u, 65u, 1000u, 4096u, 4097u, 8192u, 1u << 20u}) {
    for (const int rows : {0, 1, 15, 16, 17, 255, 256, 257, 600}) {
      for (const std::uint32_t first : {0u, 1u, count / 2}) {
        if (first + static_cast<std::uint32_t>(rows) > count) continue;
        CAPTURE(count);
        CAPTURE(rows);
        CAPTURE(first);
        const RandomStream stream{11, Purpose::shuffle, count, first};
        std::vector<std::uint32_t> one_at_a_time(rows + 1, kUntouched), at_once = one_at_a_time;
        for (int i = 0; i < rows; i++) {
          one_at_a_time[i] = permuted_index(stream, first + static_cast<std::uint32_t>(i), count);
        }
        permuted_indices(Host{}, stream, first, at_once.data(), rows, count);
        CHECK(at_once == one_at_a_time);
        at_once.assign(rows + 1, kUntouched);
        permuted_indices(Generic{}, stream, first, at_once.data(), rows, count);
        CHECK(at_once == one_at_a_time);
      }
    }
  }
}
