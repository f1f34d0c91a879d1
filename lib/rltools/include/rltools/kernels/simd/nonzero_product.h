// Matrix products that leave out the terms whose first factor is zero, which are about half of them
// behind a ReLU. Bits equal those of product.h but for the sign of a zero (nn/dense.h): what is
// left accumulates in the same order.
//
// Which of a row's factors are not zero is one word of bits, so the depth is at most 64. Rows are
// worked through two at a time, each with its own word, so that two times kNonzeroVectors sums are
// under way.
#pragma once

#include <cstdint>

#include "rltools/kernels/register_tile.h"
#include "rltools/kernels/simd/vector.h"

namespace rlt::kernels {

// Bit k is set where values[k] is not zero (as NaN is not); where it is -0, it may be.
template <int Count>
inline std::uint64_t nonzero_bits(const float* values) {
  static_assert(Count <= 64);
  constexpr int kWhole = Count / kLanes * kLanes;
  std::uint64_t bits = 0;
#pragma GCC unroll 64
  for (int k = 0; k < kWhole; k += kLanes) {
    bits |= std::uint64_t{nonzero_lanes(load(values + k))} << k;
  }
  for (int k = kWhole; k < Count; k++) bits |= std::uint64_t{values[k] != 0.0f} << k;
  return bits;
}

// Bit k of bits[row] is set where a(k, row) is not zero; the rows of a (Depth, Rows) are Stride
// apart.
template <int Rows, int Depth, int Stride>
inline void nonzero_bits_of_columns(const float* a, std::uint64_t* bits) {
  static_assert(Depth <= 64);
  constexpr int kWhole = Rows / kLanes * kLanes;
  for (int first = 0; first < Depth; first += 32) {
    const int count = Depth - first < 32 ? Depth - first : 32;
    const float* a_half = a + first * Stride;
    std::uint32_t half[Rows];
    for (int row = 0; row < kWhole; row += kLanes) {
      Mask result = lanes_of(0), bit = lanes_of(1);
      for (int k = 0; k < count; k++) {
        result = add_where_nonzero(result, bit, load(a_half + k * Stride + row));
        bit = twice(bit);
      }
      store_lanes(half + row, result);
    }
    for (int row = kWhole; row < Rows; row++) {
      half[row] = 0;
      for (int k = 0; k < count; k++) {
        half[row] |= std::uint32_t{a_half[k * Stride + row] != 0.0f} << k;
      }
    }
    for (int row = 0; row < Rows; row++) {
      bits[row] = first == 0 ? half[row] : bits[row] | std::uint64_t{half[row]} << 32;
    }
  }
}

// sum += a[k] * b(k, .) for the lowest bit k, which is cleared
template <int Vectors, class A, class B>
inline __attribute__((always_inline)) void accumulate_lowest(std::uint64_t& bits, const float* a,
                                                             const float* b,
                                                             Vector (&sum)[Vectors]) {
  const int k = __builtin_ctzll(bits);
  bits &= bits - 1;
  const Vector a_value = broadcast_beside_loads(a + k * A::kColumn);
  const float* b_row = b + k * B::kRow;
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; v++) {
    sum[v] = multiply_add(a_value, load(b_row + v * kLanes), sum[v]);
  }
}

// As vector_tile(), for rows of which word[r] tells the nonzero factors.
template <int Rows, int Vectors, class A, class B, class Start, class Finish>
inline __attribute__((always_inline)) void nonzero_tile(const std::uint64_t (&word)[Rows],
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
  std::uint64_t first = word[0];
  if constexpr (Rows == 2) {
    std::uint64_t second = word[1];
    const int first_count = __builtin_popcountll(first);
    const int second_count = __builtin_popcountll(second);
    for (int i = first_count < second_count ? first_count : second_count; i > 0; i--) {
      accumulate_lowest<Vectors, A, B>(first, a_row, b_tile, sum[0]);
      accumulate_lowest<Vectors, A, B>(second, a_row + A::kRow, b_tile, sum[1]);
    }
    while (second != 0) {
      accumulate_lowest<Vectors, A, B>(second, a_row + A::kRow, b_tile, sum[1]);
    }
  }
  while (first != 0) accumulate_lowest<Vectors, A, B>(first, a_row, b_tile, sum[0]);
#pragma GCC unroll 2
  for (int r = 0; r < Rows; r++) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; v++) finish(row + r, column + v * kLanes, sum[r][v]);
  }
}

// A pair's words are made before the multiply-adds of the pair before it, to be ready in time.
template <int Rows, int Vectors, class A, class B, class Bits, class Start, class Finish>
inline void nonzero_column_of_tiles(const Bits& bits, const float* a, const float* b, int column,
                                    const Start& start, const Finish& finish) {
  constexpr int kPaired = Rows / 2 * 2;
  if constexpr (kPaired > 0) {
    std::uint64_t word[2] = {bits(0), bits(1)};
    for (int row = 0; row < kPaired; row += 2) {
      const int next = row + 2 < kPaired ? row + 2 : row;
      const std::uint64_t next_word[2] = {bits(next), bits(next + 1)};
      nonzero_tile<2, Vectors, A, B>(word, a, b, row, column, start, finish);
      word[0] = next_word[0], word[1] = next_word[1];
    }
  }
  if constexpr (kPaired < Rows) {
    const std::uint64_t word[1] = {bits(kPaired)};
    nonzero_tile<1, Vectors, A, B>(word, a, b, kPaired, column, start, finish);
  }
}

// The whole vectors' columns of the product, as vector_product(); `bits(row)` are those of a's row.
template <int Rows, int Columns, class A, class B, class Bits, class Start, class Finish>
inline void nonzero_product(const Bits& bits, const float* a, const float* b, const Start& start,
                            const Finish& finish) {
  static_assert(B::kColumn == 1, "lanes need the second operand's columns side by side");
  constexpr int kTileColumns = kNonzeroVectors * kLanes;
  constexpr int kWhole = Columns / kTileColumns * kTileColumns;
  constexpr int kRest = (Columns - kWhole) / kLanes;
  for (int column = 0; column < kWhole; column += kTileColumns) {
    nonzero_column_of_tiles<Rows, kNonzeroVectors, A, B>(bits, a, b, column, start, finish);
  }
  if constexpr (kRest > 0) {
    nonzero_column_of_tiles<Rows, kRest, A, B>(bits, a, b, kWhole, start, finish);
  }
}

template <int Columns>
inline __attribute__((always_inline)) void accumulate_lowest_of_row(std::uint64_t& bits,
                                                                    const float* a, const float* b,
                                                                    float (&sum)[Columns]) {
  const int k = __builtin_ctzll(bits);
  bits &= bits - 1;
  const float a_value = a[k];
#pragma GCC unroll 8
  for (int c = 0; c < Columns; c++) sum[c] = math::fma(a_value, b[k * Columns + c], sum[c]);
}

// A row's few sums, over its nonzero factors: sum(c) += a(k) * b(k, c), contiguous rows of b.
template <int Columns, int Depth>
inline void nonzero_row(const float* a, const float* b, float (&sum)[Columns]) {
  for (int first = 0; first < Depth / 64 * 64; first += 64) {
    std::uint64_t bits = nonzero_bits<64>(a + first);
    while (bits != 0) accumulate_lowest_of_row<Columns>(bits, a + first, b + first * Columns, sum);
  }
  if constexpr (Depth % 64 != 0) {
    constexpr int kRest = Depth / 64 * 64;
    std::uint64_t bits = nonzero_bits<Depth % 64>(a + kRest);
    while (bits != 0) accumulate_lowest_of_row<Columns>(bits, a + kRest, b + kRest * Columns, sum);
  }
}

// Whether looking for zeros can pay: a row of sums is long enough to hide the search, and a tile
// has as many sums under way as the multiply-adds' latency needs.
constexpr bool may_skip_zeros(int columns, int depth) {
  return kLanes > 1 && columns >= kNonzeroVectors * kLanes && depth >= kLanes;
}

// Whether it does, judged by 16 of the rows of a (Rows, Columns): a term that is not left out costs
// about 1.2 times as much as in vector_product(). A single row is a matter of latency, not of terms
// a second, and then always.
template <int Rows, int Columns>
inline bool skipping_pays(const float* a) {
  if constexpr (Rows == 1) return true;
  constexpr int kApart = Rows < 16 ? 1 : Rows / 16;
  constexpr int kLooked = (Rows + kApart - 1) / kApart;
  constexpr int kCount = Columns < 64 ? Columns : 64;
  int nonzero = 0;
  for (int row = 0; row < Rows; row += kApart) {
    nonzero += __builtin_popcountll(nonzero_bits<kCount>(a + row * Columns));
  }
  return nonzero <= kLooked * kCount / 16 * 13;
}

}  // namespace rlt::kernels
