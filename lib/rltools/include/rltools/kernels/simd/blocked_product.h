// Matrix products in blocks that suit the caches. The loop that they replace is
//
//   for each row r, column c:
//     sum = start(r, c)
//     for k = 0 .. Depth-1: sum = fma(a(r, k), b(k, c), sum)
//     finish(r, c, sum)
//
// A block is 64 columns of the second operand, which all rows are multiplied with before the next
// ones. Where zeros are left out, a block is 64 terms deep too (16 KB, for the first-level cache):
// each term is a load for each multiply-add. Where they are not, a tile of several rows shares the
// loads, and the second-level cache will do. Sums wait in the result between the blocks of a
// column. Bits are those of product.h, since a sum's order stays.
#pragma once

#include <type_traits>

#include "rltools/kernels/simd/nonzero_product.h"
#include "rltools/kernels/simd/product.h"

namespace rlt::kernels {

constexpr int kBlock = 64;
constexpr int kLongBlock = 1024;

// The length of the equal blocks of at most `longest` that `count` is cut into; the last may be
// shorter.
constexpr int block_length(int count, int longest) {
  const int blocks = (count + longest - 1) / longest;
  return (count + blocks - 1) / blocks;
}

// The second operand (Depth, Columns), contiguous rows. Blocks of wide rows are copied, as rows a
// power of two apart compete for the same lines of the cache.
template <int Depth, int Columns, bool Copy>
class RowPanels {
 public:
  explicit RowPanels(const float* b) : b_(b) {}

  template <int Width>
  using Strides = kernels::Strides<Copy ? Width : Columns, 1>;

  template <int Length, int Width>
  const float* panel(int depth, int column) {
    const float* source = b_ + depth * Columns + column;
    if constexpr (Copy) {
      for (int k = 0; k < Length; k++) {
#pragma GCC unroll 16
        for (int c = 0; c < Width; c += kLanes) {
          store(copy_ + k * Width + c, load(source + k * Columns + c));
        }
      }
      return copy_;
    } else {
      return source;
    }
  }

 private:
  const float* b_;
  alignas(64) float copy_[Copy ? block_length(Depth, kLongBlock) * kBlock : 1];
};

// The second operand is the transpose of (Columns, Depth), contiguous rows.
template <int Depth>
class TransposedPanels {
 public:
  explicit TransposedPanels(const float* b) : b_(b) {}

  template <int Width>
  using Strides = kernels::Strides<Width, 1>;

  template <int Length, int Width>
  const float* panel(int depth, int column) {
    transpose<Width, Length, Depth, Width>(b_ + column * Depth + depth, copy_);
    return copy_;
  }

 private:
  const float* b_;
  alignas(64) float copy_[block_length(Depth, kLongBlock) * kBlock];
};

// One product's operands and the memory of its sums. A are the strides of `a`; start(r, c) gives
// the vector that the sums from (r, c) on begin with, finish(r, c, vector) takes their end.
template <int Rows, int Columns, int Depth, class A, class Panels, class Start, class Finish>
struct BlockedProduct {
  const float* a;
  Panels& panels;
  float* sums;  // (Rows, Columns), where finish() writes its result
  Start start;
  Finish finish;
  bool skip_zeros;

  __attribute__((always_inline)) void operator()() const {
    constexpr int kVectorized = vector_columns(Columns);
    constexpr int kWhole = kVectorized / kBlock * kBlock;
    for (int column = 0; column < kWhole; column += kBlock) panel_column<kBlock>(column);
    if constexpr (kWhole < kVectorized) panel_column<kVectorized - kWhole>(kWhole);
  }

 private:
  template <int Width>
  __attribute__((always_inline)) void panel_column(int column) const {
    if constexpr (may_skip_zeros(Columns, Depth)) {
      if (skip_zeros) return blocks<Width, kBlock, true>(column);
    }
    blocks<Width, kLongBlock, false>(column);
  }

  template <int Width, int Longest, bool SkipZeros>
  __attribute__((always_inline)) void blocks(int column) const {
    constexpr int kLength = block_length(Depth, Longest);
    constexpr int kLast = (Depth - 1) / kLength * kLength;
    for (int depth = 0; depth < kLast; depth += kLength) {
      block<kLength, Width, SkipZeros, false>(depth, column);
    }
    block<Depth - kLast, Width, SkipZeros, true>(kLast, column);
  }

  template <int Length, int Width, bool SkipZeros, bool IsLast>
  __attribute__((always_inline)) void block(int depth, int column) const {
    using B = typename Panels::template Strides<Width>;
    const float* b = panels.template panel<Length, Width>(depth, column);
    const float* a_block = a + depth * A::kColumn;
    const auto begin = [&](int r, int c) {
      return depth == 0 ? start(r, column + c) : load(sums + r * Columns + column + c);
    };
    const auto end = [&](int r, int c, Vector sum) {
      if constexpr (IsLast) {
        finish(r, column + c, sum);
      } else {
        store(sums + r * Columns + column + c, sum);
      }
    };
    if constexpr (!SkipZeros) {
      vector_product<Rows, Width, Length, A, B>(a_block, b, begin, end);
    } else if constexpr (A::kColumn == 1) {
      nonzero_product<Rows, Width, A, B>(WordsOfRows<Length, A::kRow>{a_block}, a_block, b, begin,
                                         end);
    } else {
      static_assert(A::kRow == 1, "the words are made of contiguous columns");
      nonzero_product<Rows, Width, A, B>(WordsOfColumns<Rows, Length, A::kColumn>(a_block), a_block,
                                         b, begin, end);
    }
  }
};

template <int Rows, int Columns, int Depth, class A, class Panels, class Start, class Finish>
inline void blocked_product(const float* a, Panels&& panels, float* sums, bool skip_zeros,
                            const Start& start, const Finish& finish) {
  using Product =
      BlockedProduct<Rows, Columns, Depth, A, std::remove_reference_t<Panels>, Start, Finish>;
  Product{a, panels, sums, start, finish, skip_zeros}();
}

}  // namespace rlt::kernels
