// The innermost loops of a layer of 64 by 64 on a host with vectors: a tile of sums with all terms,
// and a row of sums without those whose factor is zero (benchmarks/neon.py).
#include "rltools/devices/host.h"
#include "rltools/kernels/simd/dense.h"

namespace {

using Square = rlt::kernels::Strides<64, 1>;
using rlt::kernels::Vector;

}  // namespace

extern "C" void all_terms(const float* a, const float* b, float* output) {
  rlt::kernels::vector_tile<rlt::kernels::kTileRows, rlt::kernels::kTileVectors, 64, Square,
                            Square>(
      a, b, 0, 0, [](int, int) { return rlt::kernels::broadcast(0.0f); },
      [=](int row, int column, Vector sum) {
        rlt::kernels::store(output + row * 64 + column, sum);
      });
}

extern "C" void nonzero_terms(std::uint64_t bits, const float* a, const float* b, float* output) {
  const std::uint64_t word[1] = {bits};
  rlt::kernels::nonzero_tile<1, rlt::kernels::kVectorsOfNonzeroRow, Square, Square>(
      word, a, b, 0, 0, [](int, int) { return rlt::kernels::broadcast(0.0f); },
      [=](int row, int column, Vector sum) {
        rlt::kernels::store(output + row * 64 + column, sum);
      });
}
