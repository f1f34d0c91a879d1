// Matrix products that leave out the terms whose first factor is zero, which are about half of them
// behind a ReLU. What is left accumulates in the same order, so that bits equal those of product.h
// but for the sign of a zero (nn/dense.h). For each row and column the loop is
//
//   for (k = 0; k < Depth; k++)
//     if (a(row, k) != 0) sum += a(row, k) * b(k, column);
//
// Which factors are not zero is a word of bits (nonzero_bits.h), so the depth is at most 64. Where
// kRowsSharingTerms is 1, each row has its word, and two rows with four vectors of sums each are
// worked through side by side, or one row with more. Where it is more, so many rows share a word,
// and a term is left out where all of their factors are zero.
#pragma once

#include "rltools/kernels/simd/nonzero_bits.h"

namespace rlt::kernels {

// ---- Rows that share a word ---------------------------------------------------------------------

// As vector_tile() for the terms whose bit is set in `word`.
template <int Rows, int Vectors, class A, class B, class Start, class Finish>
inline __attribute__((always_inline)) void shared_nonzero_tile(std::uint64_t word, const float* a,
                                                               const float* b, int row, int column,
                                                               const Start& start,
                                                               const Finish& finish) {
  Vector sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; r++) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; v++) sum[r][v] = start(row + r, column + v * kLanes);
  }
  const float* a_tile = a + row * A::kRow;
  const float* b_tile = b + column;
  for (; word != 0; word &= word - 1) {
    const int k = __builtin_ctzll(word);
    Vector b_values[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; v++) {
      b_values[v] = in_register(load(b_tile + k * B::kRow + v * kLanes));
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; r++) {
      const Vector a_value = broadcast_factor(a_tile + r * A::kRow + k * A::kColumn);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; v++) sum[r][v] = multiply_add(a_value, b_values[v], sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; r++) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; v++) finish(row + r, column + v * kLanes, sum[r][v]);
  }
}

// A tile's word is made before the multiply-adds of the tile before it, to be ready in time. The
// last tile has the remaining rows too: a row of its own would wait for its multiply-adds.
template <int Rows, int Vectors, class A, class B, class Words, class Start, class Finish>
inline __attribute__((always_inline)) void rows_sharing_words(const Words& words, const float* a,
                                                              const float* b, int column,
                                                              const Start& start,
                                                              const Finish& finish) {
  constexpr int kTile = Rows < kRowsSharingTerms ? Rows : kRowsSharingTerms;
  constexpr int kLastRow = (Rows / kTile - 1) * kTile;
  constexpr int kLast = Rows - kLastRow;
  if constexpr (kLastRow > 0) {
    std::uint64_t word = words.template of_rows<kTile>(0);
    for (int row = 0; row < kLastRow; row += kTile) {
      const int next = row + kTile < kLastRow ? row + kTile : row;
      const std::uint64_t next_word = words.template of_rows<kTile>(next);
      shared_nonzero_tile<kTile, Vectors, A, B>(word, a, b, row, column, start, finish);
      word = next_word;
    }
  }
  shared_nonzero_tile<kLast, Vectors, A, B>(words.template of_rows<kLast>(kLastRow), a, b, kLastRow,
                                            column, start, finish);
}

// ---- Rows with a word each ----------------------------------------------------------------------

// sum += a[k] * b(k, .) for the lowest bit k, which is cleared
template <int Vectors, class A, class B>
inline __attribute__((always_inline)) void accumulate_lowest(std::uint64_t& bits, const float* a,
                                                             const float* b,
                                                             Vector (&sum)[Vectors]) {
  const int k = __builtin_ctzll(bits);
  bits &= bits - 1;
  const Vector a_value = broadcast_factor(a + k * A::kColumn);
  const float* b_row = b + k * B::kRow;
#pragma GCC unroll 16
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
#pragma GCC unroll 16
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
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; v++) finish(row + r, column + v * kLanes, sum[r][v]);
  }
}

// Words are made before the multiply-adds of the rows before theirs, to be ready in time.
template <int Rows, int Vectors, class A, class B, class Words, class Start, class Finish>
inline __attribute__((always_inline)) void rows_with_own_words(const Words& words, const float* a,
                                                               const float* b, int column,
                                                               const Start& start,
                                                               const Finish& finish) {
  constexpr int kPaired = Vectors > kVectorsOfPairedRow ? 0 : Rows / 2 * 2;
  const auto word_of = [&](int row) { return words.template of_rows<1>(row); };
  if constexpr (kPaired > 0) {
    std::uint64_t word[2] = {word_of(0), word_of(1)};
    for (int row = 0; row < kPaired; row += 2) {
      const int next = row + 2 < kPaired ? row + 2 : row;
      const std::uint64_t next_word[2] = {word_of(next), word_of(next + 1)};
      nonzero_tile<2, Vectors, A, B>(word, a, b, row, column, start, finish);
      word[0] = next_word[0], word[1] = next_word[1];
    }
  }
  if constexpr (kPaired < Rows) {
    std::uint64_t word[1] = {word_of(kPaired)};
    for (int row = kPaired; row < Rows; row++) {
      const std::uint64_t next_word = word_of(row + 1 < Rows ? row + 1 : row);
      nonzero_tile<1, Vectors, A, B>(word, a, b, row, column, start, finish);
      word[0] = next_word;
    }
  }
}

// ---- Products -----------------------------------------------------------------------------------

template <int Rows, int Vectors, class A, class B, class Words, class Start, class Finish>
inline __attribute__((always_inline)) void nonzero_column(const Words& words, const float* a,
                                                          const float* b, int column,
                                                          const Start& start,
                                                          const Finish& finish) {
  if constexpr (kRowsSharingTerms > 1 && Rows > 1) {
    rows_sharing_words<Rows, Vectors, A, B>(words, a, b, column, start, finish);
  } else {
    rows_with_own_words<Rows, Vectors, A, B>(words, a, b, column, start, finish);
  }
}

// The whole vectors' columns of the product, as vector_product(); `words` are those of a's rows.
// Inlined, as all that it calls is: compilers then know where start and finish read and write.
template <int Rows, int Columns, class A, class B, class Words, class Start, class Finish>
inline __attribute__((always_inline)) void nonzero_product(const Words& words, const float* a,
                                                           const float* b, const Start& start,
                                                           const Finish& finish) {
  static_assert(B::kColumn == 1, "lanes need the second operand's columns side by side");
  constexpr int kTileColumns = kVectorsOfNonzeroRow * kLanes;
  constexpr int kWhole = Columns / kTileColumns * kTileColumns;
  constexpr int kRest = (Columns - kWhole) / kLanes;
  for (int column = 0; column < kWhole; column += kTileColumns) {
    nonzero_column<Rows, kVectorsOfNonzeroRow, A, B>(words, a, b, column, start, finish);
  }
  if constexpr (kRest > 0) {
    nonzero_column<Rows, kRest, A, B>(words, a, b, kWhole, start, finish);
  }
}

// add(k) for each nonzero factor of a row.
template <int Depth, class Add>
inline __attribute__((always_inline)) void for_each_nonzero(const float* a, Add&& add) {
  const auto add_terms = [&](std::uint64_t bits, int first) __attribute__((always_inline)) {
    for (; bits != 0; bits &= bits - 1) add(first + __builtin_ctzll(bits));
  };
  constexpr int kWhole = Depth / 64 * 64;
  for (int first = 0; first < kWhole; first += 64) {
    add_terms(nonzero_bits<1, 64, 0>(a + first), first);
  }
  if constexpr (kWhole < Depth) {
    add_terms(nonzero_bits<1, Depth - kWhole, 0>(a + kWhole), kWhole);
  }
}

// A row's few sums, over its nonzero factors: sum(c) += a(k) * b(k, c), contiguous rows of b.
template <int Columns, int Depth>
inline void nonzero_row(const float* a, const float* b, float (&sum)[Columns]) {
  for_each_nonzero<Depth>(a, [&](int k) __attribute__((always_inline)) {
    const float a_value = a[k];
#pragma GCC unroll 8
    for (int c = 0; c < Columns; c++) sum[c] = math::fma(a_value, b[k * Columns + c], sum[c]);
  });
}

// The same in the first lanes of a vector.
template <int Columns, int Depth>
inline Vector nonzero_row(const float* a, const float* b, Vector sum) {
  for_each_nonzero<Depth>(a, [&](int k) __attribute__((always_inline)) {
    sum = multiply_add(broadcast(a[k]), load_first<Columns>(b + k * Columns), sum);
  });
  return sum;
}

// Return whether looking for zeros can pay: a row of sums is long enough to hide the search, and a
// tile has as many sums under way as the multiply-adds' latency needs.
constexpr bool may_skip_zeros(int columns, int depth) {
  return kLanes > 1 && columns >= kVectorsOfPairedRow * kLanes && depth >= kLanes;
}

// Who shares terms: rows of the first operand, which are contiguous, or its columns.
enum class Sharing : unsigned char { rows, columns };

static_assert(!kLoadsDelay || kRowsSharingTerms == 4, "terms_left() takes columns by fours");

// The terms of at most 64 that are left of each of Rows rows of `a`, which are Columns long. Where
// loads delay multiply-adds, those of all of them, or of each four columns, count together.
template <int Rows, int Columns, Sharing By>
inline int terms_left(const float* a) {
  constexpr int kCount = Columns < 64 ? Columns : 64;
  std::uint64_t bits = nonzero_bits<Rows, kCount, Columns>(a);
  if constexpr (kLoadsDelay && By == Sharing::columns) {
    bits |= bits >> 1;
    bits |= bits >> 2;
    return 4 * __builtin_popcountll(bits & 0x1111111111111111u);
  }
  return __builtin_popcountll(bits);
}

// Return whether it does, judged by about 16 of the rows of a (Rows, Columns), or so many times
// four: a term that is not left out costs about 1.2 times as much as in vector_product(). (Of two
// rows that share terms it is enough to look at each.) A single row is a matter of latency, not of
// terms a second, and then always.
template <int Rows, int Columns, Sharing By>
inline bool skipping_pays(const float* a) {
  if constexpr (Rows == 1) return true;
  constexpr int kShared = kLoadsDelay && By == Sharing::rows ? kRowsSharingTerms : 1;
  constexpr int kTile = kShared < Rows ? kShared : Rows;
  constexpr int kTiles = Rows / kTile;
  constexpr int kApart = kTiles < 16 ? 1 : kTiles / 16;
  constexpr int kLooked = (kTiles + kApart - 1) / kApart;
  constexpr int kCount = Columns < 64 ? Columns : 64;
  int left = 0;
  for (int tile = 0; tile < kTiles; tile += kApart) {
    left += terms_left<kTile, Columns, By>(a + tile * kTile * Columns);
  }
  return left <= kLooked * kCount / 16 * 13;
}

}  // namespace rlt::kernels
