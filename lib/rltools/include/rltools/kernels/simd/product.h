// Matrix products with the host's vectors. The loop that they replace is
//
//   for each row r, column c:
//     sum = start(r, c)
//     for k = 0 .. Depth-1: sum = fma(a(r, k), b(k, c), sum)
//     finish(r, c, sum)
//
// Lanes are independent elements, tiles of sums stay in registers, and each lane accumulates over k
// in order.
#pragma once

#include "rltools/kernels/register_tile.h"
#include "rltools/kernels/simd/host_core.h"

namespace rlt::kernels {

// Rows x (Vectors * kLanes) sums from (row, column) on; `start(r, c)` gives and `finish(r, c, v)`
// takes a vector.
template <int Rows, int Vectors, int Depth, class A, class B, class Start, class Finish>
inline __attribute__((always_inline)) void vector_tile(const float* a, const float* b, int row,
                                                       int column, const Start& start,
                                                       const Finish& finish) {
  Vector sum[Rows][Vectors];
#pragma GCC unroll 32
  for (int r = 0; r < Rows; r++) {
#pragma GCC unroll 32
    for (int v = 0; v < Vectors; v++) sum[r][v] = start(row + r, column + v * kLanes);
  }
  const float* a_tile = a + row * A::kRow;
  const float* b_tile = b + column;
  for (int k = 0; k < Depth; k++) {
    Vector b_values[Vectors];
#pragma GCC unroll 32
    for (int v = 0; v < Vectors; v++) {
      b_values[v] = load(b_tile + k * B::kRow + v * kLanes);
      if constexpr (Rows > 1 || kLanes != 8) b_values[v] = in_register(b_values[v]);
    }
#pragma GCC unroll 32
    for (int r = 0; r < Rows; r++) {
      const Vector a_value = broadcast(a_tile[r * A::kRow + k * A::kColumn]);
#pragma GCC unroll 32
      for (int v = 0; v < Vectors; v++) {
        sum[r][v] = multiply_add(a_value, b_values[v], sum[r][v]);
      }
    }
  }
#pragma GCC unroll 32
  for (int r = 0; r < Rows; r++) {
#pragma GCC unroll 32
    for (int v = 0; v < Vectors; v++) finish(row + r, column + v * kLanes, sum[r][v]);
  }
}

template <int Rows, int Columns, int Depth, class A, class B, class Start, class Finish>
inline void vector_row_of_tiles(const float* a, const float* b, int row, const Start& start,
                                const Finish& finish) {
  constexpr int kVectors = vectors_of_tile(Rows);
  constexpr int kTileColumns = kVectors * kLanes;
  constexpr int kWhole = Columns / kTileColumns * kTileColumns;
  constexpr int kRest = (Columns - kWhole) / kLanes;
  for (int column = 0; column < kWhole; column += kTileColumns) {
    vector_tile<Rows, kVectors, Depth, A, B>(a, b, row, column, start, finish);
  }
  if constexpr (kRest > 0) {
    vector_tile<Rows, kRest, Depth, A, B>(a, b, row, kWhole, start, finish);
  }
}

// The whole vectors' columns of the product; returns nothing for the columns beyond, see
// vector_columns().
template <int Rows, int Columns, int Depth, class A, class B, class Start, class Finish>
inline void vector_product(const float* a, const float* b, const Start& start,
                           const Finish& finish) {
  static_assert(B::kColumn == 1, "lanes need the second operand's columns side by side");
  constexpr int kTile = rows_of_tile(Depth);
  constexpr int kWhole = Rows / kTile * kTile;
  for (int row = 0; row < kWhole; row += kTile) {
    vector_row_of_tiles<kTile, Columns, Depth, A, B>(a, b, row, start, finish);
  }
  if constexpr (kWhole < Rows) {
    vector_row_of_tiles<Rows - kWhole, Columns, Depth, A, B>(a, b, kWhole, start, finish);
  }
}

// Number of a product's columns that whole vectors cover.
constexpr int vector_columns(int columns) { return kLanes == 1 ? 0 : columns / kLanes * kLanes; }

// The sums of Blocks times kLanes rows from `row` on, for few columns: lanes are rows. Blocks of
// kLanes x kLanes of `a` (contiguous rows) are transposed; several, so that their sums, each of
// which waits for the one before, are under way side by side.
template <int Blocks, int Columns, int Depth, class B, class Start, class Finish>
inline __attribute__((always_inline)) void narrow_tile(const float* a, const float* b, int row,
                                                       const Start& start, const Finish& finish) {
  Vector sum[Blocks][Columns];
#pragma GCC unroll 8
  for (int i = 0; i < Blocks; i++) {
#pragma GCC unroll 16
    for (int c = 0; c < Columns; c++) sum[i][c] = broadcast(start(row, c));
  }
  for (int depth = 0; depth < Depth; depth += kLanes) {
    alignas(64) float transposed[kLanes * Blocks * kLanes];  // (depth, row)
#pragma GCC unroll 8
    for (int i = 0; i < Blocks; i++) {
      transpose_block<Depth, Blocks * kLanes>(a + (row + i * kLanes) * Depth + depth,
                                              transposed + i * kLanes);
    }
#pragma GCC unroll 16
    for (int k = 0; k < kLanes; k++) {
#pragma GCC unroll 16
      for (int c = 0; c < Columns; c++) {
        const Vector weight = broadcast(b[(depth + k) * B::kRow + c * B::kColumn]);
#pragma GCC unroll 8
        for (int i = 0; i < Blocks; i++) {
          const float* values = transposed + (k * Blocks + i) * kLanes;
          sum[i][c] = multiply_add(load(values), weight, sum[i][c]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Blocks; i++) {
#pragma GCC unroll 16
    for (int c = 0; c < Columns; c++) {
      float values[kLanes];
      store(values, sum[i][c]);
      for (int lane = 0; lane < kLanes; lane++) finish(row + i * kLanes + lane, c, values[lane]);
    }
  }
}

// A product with few columns. The last block ends with the last row, and may have rows of the one
// before: finish() takes the same sum twice. A depth that is no multiple of kLanes, and fewer rows,
// go through register tiles.
template <int Rows, int Columns, int Depth, class B, class Start, class Finish>
inline void narrow_product(const float* a, const float* b, const Start& start,
                           const Finish& finish) {
  if constexpr (kLanes > 1 && Depth % kLanes == 0 && Rows >= kLanes) {
    // A block of one column is one chain of sums: with AVX2's short vectors there are rows for six.
    constexpr bool kSix = kLanes == 8 && Columns == 1 && Rows >= 6 * kLanes;
    constexpr int kTile = kSix ? 6 : Rows >= 2 * kLanes && Columns <= 4 ? 2 : 1;
    int row = 0;
    for (; row + kTile * kLanes <= Rows; row += kTile * kLanes) {
      narrow_tile<kTile, Columns, Depth, B>(a, b, row, start, finish);
    }
    if (row + kLanes < Rows) {
      narrow_tile<kTile, Columns, Depth, B>(a, b, Rows - kTile * kLanes, start, finish);
    } else if (row < Rows) {
      narrow_tile<1, Columns, Depth, B>(a, b, Rows - kLanes, start, finish);
    }
  } else {
    constexpr int kTileColumns = Columns < 4 ? Columns : 4;
    product<4, kTileColumns, Rows, 0, Columns, Depth, Strides<Depth, 1>, B>(a, b, start, finish);
  }
}

template <int Rows, int Columns, int Vectors>
inline __attribute__((always_inline)) void add_rows_of_vectors(const float* a, float* sum) {
  Vector total[Vectors];
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; v++) total[v] = load(sum + v * kLanes);
  for (int row = 0; row < Rows; row++) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; v++)
      total[v] = add(total[v], load(a + row * Columns + v * kLanes));
  }
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; v++) store(sum + v * kLanes, total[v]);
}

// sum (Columns) += the rows of a (Rows, Columns), in order
template <int Rows, int Columns>
inline void add_rows(const float* a, float* sum) {
  constexpr int kVectorized = vector_columns(Columns);
  constexpr int kVectors = vectors_of_tile(1);
  constexpr int kTileColumns = kVectors * kLanes;
  constexpr int kWhole = kVectorized / kTileColumns * kTileColumns;
  for (int column = 0; column < kWhole; column += kTileColumns) {
    add_rows_of_vectors<Rows, Columns, kVectors>(a + column, sum + column);
  }
  if constexpr (kWhole < kVectorized) {
    add_rows_of_vectors<Rows, Columns, (kVectorized - kWhole) / kLanes>(a + kWhole, sum + kWhole);
  }
  for (int row = 0; row < Rows; row++) {
    for (int column = kVectorized; column < Columns; column++) {
      sum[column] += a[row * Columns + column];
    }
  }
}

// Return whether a product takes its lanes from the rows: no whole vector lies in its columns.
constexpr bool is_narrow(int columns) { return columns < kLanes; }

}  // namespace rlt::kernels
