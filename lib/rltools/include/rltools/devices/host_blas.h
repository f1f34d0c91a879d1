// A laptop or workstation with OpenBLAS: it computes the products of large layers. NOT
// bit-identical to the other devices where a layer is so large (kernels/blas/dense.h says from
// where on); a program with this device links -lopenblas.
#pragma once

#include "rltools/kernels/blas/dense.h"
#include "rltools/kernels/simd/dense_at_run_time.h"
#include "rltools/kernels/simd/transpose_words.h"
#include "rltools/nn/optimizer.h"

namespace rlt {
struct HostBlas : Blas {};
}  // namespace rlt
