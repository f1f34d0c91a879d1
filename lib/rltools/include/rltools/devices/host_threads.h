// A laptop or workstation with several threads for what can be done at once, as many as
// threads::pool has; for the rest the kernels of devices/host.h. The bits are the same.
#pragma once

#include "rltools/kernels/simd/dense.h"
#include "rltools/kernels/simd/dense_at_run_time.h"
#include "rltools/kernels/simd/transpose_words.h"
#include "rltools/kernels/threads/dense.h"
#include "rltools/kernels/threads/pool.h"

namespace rlt {
struct HostThreads : HostSimdThreads {};
}  // namespace rlt
