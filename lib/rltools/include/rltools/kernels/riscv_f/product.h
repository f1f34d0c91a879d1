// Matrix products for RISC-V with floating-point unit: 16 neighbouring sums of a row stay in
// registers, and a term whose first factor is zero, as about half of them are behind a ReLU, is
// left out by a branch. Bits equal those of register_tile.h but for the sign of a zero
// (nn/dense.h): what is left accumulates in the same order.
#pragma once

#include "rltools/kernels/register_tile.h"

namespace rlt::kernels {

constexpr int kRowColumns = 16;  // sums under way

// sum(row, c) = start(row, c); for k = 0 .. Depth-1 with a(row, k) != 0
// sum(row, c) = fma(a(row, k), b(k, c), sum(row, c)); finish(row, c, sum), for `Columns` columns c
// from `column` on.
template <int Columns, int Depth, class A, class B, class Start, class Finish>
inline void product_of_row(const float* a, const float* b, int row, int column, const Start& start,
                           const Finish& finish) {
  float sum[Columns];
#pragma GCC unroll 16
  for (int c = 0; c < Columns; c++) sum[c] = start(row, column + c);
  const float* factor = a + row * A::kRow;
  const float* others = b + column * B::kColumn;
  for (const float* const end = factor + Depth * A::kColumn; factor != end;
       factor += A::kColumn, others += B::kRow) {
    if (math::is_zero(*factor)) continue;
#pragma GCC unroll 16
    for (int c = 0; c < Columns; c++) {
      sum[c] = math::fma(*factor, others[c * B::kColumn], sum[c]);
    }
  }
#pragma GCC unroll 16
  for (int c = 0; c < Columns; c++) finish(row, column + c, sum[c]);
}

// The product of a (Rows, Depth) and b (Depth, Columns).
template <int Rows, int Columns, int Depth, class A, class B, class Start, class Finish>
inline void product_by_rows(const float* a, const float* b, const Start& start,
                            const Finish& finish) {
  constexpr int kWhole = Columns / kRowColumns * kRowColumns;
  for (int row = 0; row < Rows; row++) {
    for (int column = 0; column < kWhole; column += kRowColumns) {
      product_of_row<kRowColumns, Depth, A, B>(a, b, row, column, start, finish);
    }
  }
  // Few columns: tiles of several rows share what they load.
  if constexpr (kWhole < Columns) {
    product<5, 4, Rows, kWhole, Columns, Depth, A, B>(a, b, start, finish);
  }
}

}  // namespace rlt::kernels
