// A laptop or workstation with a second thread for what can be done at once; for the rest the
// kernels of devices/host.h. The bits are the same.
#pragma once

#include "rltools/kernels/simd/dense.h"
#include "rltools/kernels/simd/dense_at_run_time.h"
#include "rltools/kernels/threads/dense.h"
#include "rltools/kernels/threads/optimizer.h"
#include "rltools/kernels/threads/second_thread.h"
#include "rltools/nn/optimizer.h"

namespace rlt {
struct HostThreads : HostSimdThreads {};
}  // namespace rlt
