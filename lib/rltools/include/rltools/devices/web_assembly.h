// WebAssembly with SIMD: the host's kernels on vectors of four lanes. Their multiply-add is relaxed
// SIMD's where the module has it, which most processors fuse; else it is exact (core/fma.h).
#pragma once

#include "rltools/kernels/simd/dense.h"
#include "rltools/kernels/simd/dense_at_run_time.h"
#include "rltools/kernels/simd/permutation.h"
#include "rltools/kernels/simd/transpose_words.h"
#include "rltools/nn/optimizer.h"

namespace rlt {
struct WebAssembly : HostSimd {};
}  // namespace rlt
