// Matrix products for Arm Cortex-M that leave out the terms whose first factor is zero, which are
// about half of them behind a ReLU. Bits equal those of register_tile.h but for the sign of a zero
// (nn/dense.h): what is left accumulates in the same order.
//
// For each row and column the loop is
//
//   for (k = 0; k < Depth; k++)
//     if (a(row, k) != 0) sum += a(row, k) * b(k, column);
//
// A row of the first operand becomes a list of its terms: each factor that is not zero, and where
// its row of the second operand begins. 16 neighboring sums are in registers while the list is
// worked through. On a Cortex-M7 no load goes beside a multiply-add, but one instruction loads
// eight operands, two a cycle; so loads come eight at a time. The steps are plain loops here; those
// in the processor's own instructions are in term_list_thumb.h.
#pragma once

#include <cstdint>

#include "rltools/kernels/cortex_m/term_list_thumb.h"
#include "rltools/kernels/register_tile.h"

namespace rlt::kernels {

// A number as a type (std::integral_constant's header is not everywhere where policies run).
template <int Value>
struct Constant {
  static constexpr int value = Value;
};

constexpr int kListColumns = 16;  // sums under way

// At most Capacity terms; the `count` in use are the last ones.
template <int Capacity>
struct TermList {
  const float* rows[Capacity];
  float factors[Capacity];
  int count;
};

// Start values of 16 sums; the next 16 start `step` floats further.
struct SumStart {
  const float* values;
  int step;
};

inline constexpr float kZeros[kListColumns] = {};

// count - 1 where x is not zero (a NaN is not), without a branch
inline int minus_one_where_nonzero(int count, float x) {
#if defined(__thumb2__)
  return thumb::minus_one_where_nonzero(count, x);
#else
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return count - (bits << 1 != 0);
#endif
}

// Write a term before the `-minus_count` that are there; if its factor is not zero,
// it stays there.
inline __attribute__((always_inline)) int add_term(const float** last_row, float* last_factor,
                                                   int minus_count, const float* row,
                                                   float factor) {
#if defined(__thumb2__)
  return thumb::add_term(last_row, last_factor, minus_count, row, factor);
#else
  last_row[minus_count] = row;
  last_factor[minus_count] = factor;
  return minus_one_where_nonzero(minus_count, factor);
#endif
}

// The terms a(0, k) b(k, .) for k = 0 .. Depth-1; from the last to the first, so that each can be
// written before it is known to count.
template <int Depth, class A, class B>
inline void list_terms(const float* a, const float* b, TermList<Depth>& list) {
  int minus_count = 0;
  a += Depth * A::kColumn;
  b += Depth * B::kRow;
#pragma GCC unroll 4
  for (int k = 0; k < Depth; k++) {
    a -= A::kColumn;
    b -= B::kRow;
    minus_count = add_term(list.rows + Depth - 1, list.factors + Depth - 1, minus_count, b, *a);
  }
  list.count = -minus_count;
}

// sums[c] = start[c]; sums[c] = fma(factors[i], rows[i][c], sums[c]) for i = 0 .. count-1 and 16
// columns c; then the next 16, `blocks` times in all. Afterwards `rows` are behind these columns.
inline void accumulate_terms(SumStart start, float* sums, const float** rows, const float* factors,
                             int count, int blocks) {
#if defined(RLT_THUMB_ACCUMULATES_TERMS)
  thumb::accumulate_terms(start.values, start.step, sums, rows, factors, count, blocks);
#else
  for (; blocks > 0; blocks--, start.values += start.step, sums += kListColumns) {
    float sum[kListColumns];
    for (int c = 0; c < kListColumns; c++) sum[c] = start.values[c];
    for (int i = 0; i < count; i++, rows[i - 1] += kListColumns) {
      for (int c = 0; c < kListColumns; c++) sum[c] = math::fma(factors[i], rows[i][c], sum[c]);
    }
    for (int c = 0; c < kListColumns; c++) sums[c] = sum[c];
  }
#endif
}

// values (count) += 0: -0 becomes 0.
inline void without_negative_zero(float* values, int count) {
#if defined(RLT_THUMB_ACCUMULATES_TERMS)
  for (; count >= 8; count -= 8) values = thumb::add_zero_to_eight(values);
#endif
  for (; count > 0; count--) *values++ += 0.0f;
}

// Number of a product's columns that go by lists, where it does.
constexpr int list_columns(int columns) { return columns / kListColumns * kListColumns; }

// The first list_columns(Columns) columns of the product of a (Rows, Depth) and b (Depth, Columns).
// `start(r)` gives where the sums of row r start, `finish(r)` where they go.
template <int Rows, int Columns, int Depth, class A, class B, class RowStart, class Finish>
inline void list_product(const float* a, const float* b, const RowStart& start,
                         const Finish& finish) {
  static_assert(B::kColumn == 1, "a term's row has its columns side by side");
  for (int row = 0; row < Rows; row++) {
    TermList<Depth> list;
    list_terms<Depth, A, B>(a + row * A::kRow, b, list);
    accumulate_terms(start(row), finish(row), list.rows + Depth - list.count,
                     list.factors + Depth - list.count, list.count, Columns / kListColumns);
  }
}

// The number of columns of a transposed second operand that are copied at a time: as many whole
// sixteens as kTransposedFloats hold, or 0 where the copy is too large or not worth it.
constexpr int kTransposedFloats = 4096;
constexpr int transposed_columns(int rows, int columns, int depth) {
  if (columns < kListColumns || (rows < 8 && depth > 1)) return 0;
  const int fitting = kTransposedFloats / depth;
  return list_columns(fitting < columns ? fitting : columns);
}

// destination (Depth, Columns) = transpose of the first Columns rows of source (, Depth)
template <int Depth, int Columns>
inline void transpose(const float* source, float* destination) {
  for (int column = 0; column < Columns; column++) {
    const float* row = source + column * Depth;
    float* to = destination + column;
    int k = 0;
#if defined(__thumb2__)
    constexpr int kRowBytes = Columns * static_cast<int>(sizeof(float));
    if constexpr (3 * kRowBytes <= thumb::kLargestOffset) {
      for (; k + 4 <= Depth; k += 4, to += 4 * Columns) {
        row = thumb::transpose_four<kRowBytes>(row, to);
      }
    }
#endif
    for (; k < Depth; k++, to += Columns) *to = *row++;
  }
}

// The first list_columns(Columns) columns of the product of a (Rows, Depth) and the transpose of
// b (Columns, Depth), both in contiguous rows; product (Rows, Columns).
template <int Rows, int Columns, int Depth>
inline void list_product_of_transposed(const float* a, const float* b, float* product) {
  constexpr int kBlock =
      Depth == 1 ? list_columns(Columns) : transposed_columns(Rows, Columns, Depth);
  const auto multiply = [=](const float* transposed, int first, auto columns) {
    constexpr int kColumns = decltype(columns)::value;
    list_product<Rows, kColumns, Depth, Strides<Depth, 1>, Strides<kColumns, 1>>(
        a, transposed, [](int) { return SumStart{kZeros, 0}; },
        [=](int row) { return product + row * Columns + first; });
  };
  if constexpr (Depth == 1) {
    multiply(b, 0, Constant<kBlock>{});
  } else {
    float transposed[Depth * kBlock];
    constexpr int kWhole = list_columns(Columns) / kBlock * kBlock;
    constexpr int kRest = list_columns(Columns) - kWhole;
    for (int first = 0; first < kWhole; first += kBlock) {
      transpose<Depth, kBlock>(b + first * Depth, transposed);
      multiply(transposed, first, Constant<kBlock>{});
    }
    if constexpr (kRest > 0) {
      transpose<Depth, kRest>(b + kWhole * Depth, transposed);
      multiply(transposed, kWhole, Constant<kRest>{});
    }
  }
}

// Return whether lists are faster than register tiles, by the share of zeros in up to four rows of
// `a`. On a Cortex-M7 a term of a list takes about 2 cycles, one of a tile 1.5.
template <int Rows, int Depth, class A>
inline bool lists_pay(const float* a) {
  constexpr int kSamples = Rows < 4 ? Rows : 4;
  if constexpr (Rows < 4 || Depth <= 8) return true;  // tiles would be small or short
  int minus_count = 0;
  for (int i = 0; i < kSamples; i++) {
    const float* row = a + i * (Rows / kSamples) * A::kRow;
#pragma GCC unroll 4
    for (int k = 0; k < Depth; k++) {
      minus_count = minus_one_where_nonzero(minus_count, row[k * A::kColumn]);
    }
  }
  return -minus_count <= kSamples * Depth / 4 * 3;
}

}  // namespace rlt::kernels
