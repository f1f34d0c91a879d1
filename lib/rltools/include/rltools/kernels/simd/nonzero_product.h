// Matrix products that leave out the terms whose first factor is zero, which are about half of them
// behind a ReLU. Bits equal those of product.h but for the sign of a zero (nn/dense.h): what is
// left accumulates in the same order.
//
// A row of the first operand is one mask of bits; rows are worked through two at a time, each with
// its own mask, so that two times kNonzeroVectors sums are under way.
#pragma once

#include <cstdint>

#include "rltools/kernels/register_tile.h"
#include "rltools/kernels/simd/vector.h"

namespace rlt::kernels {

// Bit k % 64 of word[row][k / 64] is set where a(row, k) is not zero (a NaN is not).
template <int Rows, int Depth>
struct NonzeroMasks {
  static constexpr int kWords = (Depth + 63) / 64;
  std::uint64_t word[Rows][kWords];

  int count() const {
    int sum = 0;
    for (int row = 0; row < Rows; row++) {
      for (int w = 0; w < kWords; w++) sum += __builtin_popcountll(word[row][w]);
    }
    return sum;
  }
};

// Of a (Rows, Depth), contiguous rows.
template <int Rows, int Depth>
inline void mark_nonzeros(const float* a, NonzeroMasks<Rows, Depth>& masks) {
  for (int row = 0; row < Rows; row++) {
    const float* values = a + row * Depth;
    for (int first = 0; first < Depth; first += 64) {
      const int count = Depth - first < 64 ? Depth - first : 64;
      std::uint64_t word = 0;
      int k = 0;
      for (; k + kLanes <= count; k += kLanes) {
        word |= std::uint64_t{nonzero_lanes(load(values + first + k))} << k;
      }
      for (; k < count; k++) word |= std::uint64_t{values[first + k] != 0.0f} << k;
      masks.word[row][first / 64] = word;
    }
  }
}

// Of the transpose of a (Depth, Rows), contiguous rows.
template <int Rows, int Depth>
inline void mark_nonzeros_of_columns(const float* a, NonzeroMasks<Rows, Depth>& masks) {
  constexpr int kWholeRows = Rows / kLanes * kLanes;
  for (int first = 0; first < Depth; first += 32) {
    const int count = Depth - first < 32 ? Depth - first : 32;
    std::uint32_t half[Rows];
    for (int row = 0; row < kWholeRows; row += kLanes) {
      Mask bits = no_bits();
      for (int k = 0; k < count; k++) {
        bits = set_bit_where_nonzero(bits, load(a + (first + k) * Rows + row), k);
      }
      store_bits(half + row, bits);
    }
    for (int row = kWholeRows; row < Rows; row++) {
      half[row] = 0;
      for (int k = 0; k < count; k++) {
        half[row] |= std::uint32_t{a[(first + k) * Rows + row] != 0.0f} << k;
      }
    }
    for (int row = 0; row < Rows; row++) {
      std::uint64_t& word = masks.word[row][first / 64];
      word = first % 64 == 0 ? half[row] : word | std::uint64_t{half[row]} << 32;
    }
  }
}

// sum += a[k] * b(k, .) for the lowest bit k of the mask, which is cleared
template <int Vectors, class A, class B>
inline __attribute__((always_inline)) void accumulate_lowest(std::uint64_t& mask, const float* a,
                                                             const float* b,
                                                             Vector (&sum)[Vectors]) {
  const int k = __builtin_ctzll(mask);
  mask &= mask - 1;
  const Vector a_value = broadcast_beside_loads(a + k * A::kColumn);
  const float* b_row = b + k * B::kRow;
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; v++) {
    sum[v] = multiply_add(a_value, load(b_row + v * kLanes), sum[v]);
  }
}

template <int Rows, int Vectors, int Words, class A, class B, class Start, class Finish>
inline __attribute__((always_inline)) void nonzero_tile(const std::uint64_t (*masks)[Words],
                                                        const float* a, const float* b, int row,
                                                        int column, const Start& start,
                                                        const Finish& finish) {
  static_assert(Rows == 1 || Rows == 2);
  Vector sum[Rows][Vectors];
#pragma GCC unroll 2
  for (int r = 0; r < Rows; r++) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; v++) sum[r][v] = start(row + r, column + v * kLanes);
  }
  const float* a_row = a + row * A::kRow;
  const float* b_tile = b + column;
  for (int w = 0; w < Words; w++) {
    std::uint64_t mask = masks[row][w];
    if constexpr (Rows == 2) {
      std::uint64_t second_mask = masks[row + 1][w];
      const int count = __builtin_popcountll(mask), second = __builtin_popcountll(second_mask);
      for (int i = 0; i < (count < second ? count : second); i++) {
        accumulate_lowest<Vectors, A, B>(mask, a_row, b_tile, sum[0]);
        accumulate_lowest<Vectors, A, B>(second_mask, a_row + A::kRow, b_tile, sum[1]);
      }
      while (second_mask != 0) {
        accumulate_lowest<Vectors, A, B>(second_mask, a_row + A::kRow, b_tile, sum[1]);
      }
    }
    while (mask != 0) accumulate_lowest<Vectors, A, B>(mask, a_row, b_tile, sum[0]);
    a_row += 64 * A::kColumn;
    b_tile += 64 * B::kRow;
  }
#pragma GCC unroll 2
  for (int r = 0; r < Rows; r++) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; v++) finish(row + r, column + v * kLanes, sum[r][v]);
  }
}

template <int Rows, int Vectors, int Depth, class A, class B, class Start, class Finish>
inline void nonzero_column_of_tiles(const NonzeroMasks<Rows, Depth>& masks, const float* a,
                                    const float* b, int column, const Start& start,
                                    const Finish& finish) {
  constexpr int kWords = NonzeroMasks<Rows, Depth>::kWords;
  for (int row = 0; row + 2 <= Rows; row += 2) {
    nonzero_tile<2, Vectors, kWords, A, B>(masks.word, a, b, row, column, start, finish);
  }
  if constexpr (Rows % 2 == 1) {
    nonzero_tile<1, Vectors, kWords, A, B>(masks.word, a, b, Rows - 1, column, start, finish);
  }
}

// The whole vectors' columns of the product, as vector_product().
template <int Rows, int Columns, int Depth, class A, class B, class Start, class Finish>
inline void nonzero_product(const NonzeroMasks<Rows, Depth>& masks, const float* a, const float* b,
                            const Start& start, const Finish& finish) {
  static_assert(B::kColumn == 1, "lanes need the second operand's columns side by side");
  constexpr int kTileColumns = kNonzeroVectors * kLanes;
  constexpr int kWhole = Columns / kTileColumns * kTileColumns;
  constexpr int kRest = (Columns - kWhole) / kLanes;
  for (int column = 0; column < kWhole; column += kTileColumns) {
    nonzero_column_of_tiles<Rows, kNonzeroVectors, Depth, A, B>(masks, a, b, column, start, finish);
  }
  if constexpr (kRest > 0) {
    nonzero_column_of_tiles<Rows, kRest, Depth, A, B>(masks, a, b, kWhole, start, finish);
  }
}

// Whether looking for zeros can pay: a row of sums is long enough to hide the search, and a tile
// has as many sums under way as the multiply-adds' latency needs.
constexpr bool may_skip_zeros(int columns, int depth) {
  return kLanes > 1 && columns >= kNonzeroVectors * kLanes && depth >= kLanes;
}

// Whether it does: a term costs about 1.2 of those of vector_product().
template <int Rows, int Depth>
inline bool skipping_pays(const NonzeroMasks<Rows, Depth>& masks) {
  return Rows == 1 || masks.count() <= Rows * Depth / 16 * 13;
}

}  // namespace rlt::kernels
