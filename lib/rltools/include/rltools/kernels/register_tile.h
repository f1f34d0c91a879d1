// Matrix product in register tiles, plain C++. The loop that it replaces is
//
//   for each row r, column c:
//     sum = start(r, c)
//     for k = 0 .. Depth-1: sum = fma(a(r, k), b(k, c), sum)
//     finish(r, c, sum)
//
// Independent elements are computed side by side, each one accumulating over k in order, so the
// bits are those of this loop for every tile size.
#pragma once

#include "rltools/core/math.h"

namespace rlt::kernels {

// Layout of an operand: element (i, j) is at data[i * RowStride + j * ColumnStride].
template <int RowStride_, int ColumnStride_>
struct Strides {
  static constexpr int kRow = RowStride_;
  static constexpr int kColumn = ColumnStride_;
};

// sum(r, c) = start(r, c); sum(r, c) = fma(a(r, k), b(k, c), sum(r, c)) for k = 0 .. Depth-1;
// finish(r, c, sum) for the Rows x Columns elements whose first is (row, column) of the whole
// product.
template <int Rows, int Columns, int Depth, class A, class B, class Start, class Finish>
inline __attribute__((always_inline)) void product_tile(const float* a, const float* b, int row,
                                                        int column, const Start& start,
                                                        const Finish& finish) {
  float sum[Rows][Columns];
#pragma GCC unroll 32
  for (int r = 0; r < Rows; r++) {
#pragma GCC unroll 32
    for (int c = 0; c < Columns; c++) sum[r][c] = start(row + r, column + c);
  }
  const float* a_tile = a + row * A::kRow;
  const float* b_tile = b + column * B::kColumn;
#if defined(__NVPTX__)  // four operands by one load, and few instructions beside the multiply-adds
#pragma unroll 16
#else
#pragma GCC unroll 4
#endif
  for (int k = 0; k < Depth; k++) {
    float b_values[Columns];
#pragma GCC unroll 32
    for (int c = 0; c < Columns; c++) b_values[c] = b_tile[k * B::kRow + c * B::kColumn];
#pragma GCC unroll 32
    for (int r = 0; r < Rows; r++) {
      const float a_value = a_tile[r * A::kRow + k * A::kColumn];
#pragma GCC unroll 32
      for (int c = 0; c < Columns; c++) sum[r][c] = math::fma(a_value, b_values[c], sum[r][c]);
    }
  }
#pragma GCC unroll 32
  for (int r = 0; r < Rows; r++) {
#pragma GCC unroll 32
    for (int c = 0; c < Columns; c++) finish(row + r, column + c, sum[r][c]);
  }
}

// The columns [FirstColumn, Columns) of the rows [row, row + TileRows), in tiles of TileColumns and
// a narrower rest.
template <int TileRows, int TileColumns, int FirstColumn, int Columns, int Depth, class A, class B,
          class Start, class Finish>
inline void product_row_of_tiles(const float* a, const float* b, int row, const Start& start,
                                 const Finish& finish) {
  constexpr int kWhole = FirstColumn + (Columns - FirstColumn) / TileColumns * TileColumns;
  for (int column = FirstColumn; column < kWhole; column += TileColumns) {
    product_tile<TileRows, TileColumns, Depth, A, B>(a, b, row, column, start, finish);
  }
  if constexpr (kWhole < Columns) {
    product_tile<TileRows, Columns - kWhole, Depth, A, B>(a, b, row, kWhole, start, finish);
  }
}

// The product of a (Rows, Depth) and b (Depth, Columns), columns from FirstColumn on.
template <int TileRows, int TileColumns, int Rows, int FirstColumn, int Columns, int Depth, class A,
          class B, class Start, class Finish>
inline void product(const float* a, const float* b, const Start& start, const Finish& finish) {
  constexpr int kWhole = Rows / TileRows * TileRows;
  for (int row = 0; row < kWhole; row += TileRows) {
    product_row_of_tiles<TileRows, TileColumns, FirstColumn, Columns, Depth, A, B>(a, b, row, start,
                                                                                   finish);
  }
  if constexpr (kWhole < Rows) {
    product_row_of_tiles<Rows - kWhole, TileColumns, FirstColumn, Columns, Depth, A, B>(
        a, b, kWhole, start, finish);
  }
}

}  // namespace rlt::kernels
