// A laptop or workstation: dense products with the machine's vectors. The element-wise operations
// are the reference loops, which the compiler vectorizes.
#pragma once

#include "rltools/kernels/simd/dense.h"
#include "rltools/kernels/simd/dense_at_run_time.h"
#include "rltools/kernels/simd/permutation.h"
#include "rltools/kernels/simd/transpose_words.h"
#include "rltools/nn/optimizer.h"

namespace rlt {
struct Host : HostSimd {};
}  // namespace rlt
