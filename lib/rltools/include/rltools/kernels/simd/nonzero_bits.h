// Words of bits that tell which factors of a product are not zero. The loop for a row's word is
//
//   for (k = 0; k < Depth; k++) word |= uint64(a(row, k) != 0) << k;
//
// NaN is not zero; where a factor is -0, its bit may be set. Words of several rows tell where any
// of their factors is not zero.
#pragma once

#include <cstdint>

#include "rltools/kernels/register_tile.h"
#include "rltools/kernels/simd/host_core.h"

namespace rlt::kernels {

// Bit k is set where values[r * Stride + k] is not zero in any of the rows r.
template <int Rows, int Count, int Stride>
inline std::uint64_t nonzero_bits(const float* values) {
  static_assert(Count <= 64);
  constexpr int kWhole = Count / kLanes * kLanes;
  std::uint64_t bits = 0;
#pragma GCC unroll 64
  for (int k = 0; k < kWhole; k += kLanes) {
    Vector any = load(values + k);
#pragma GCC unroll 8
    for (int r = 1; r < Rows; r++) any = bits_of_either(any, load(values + r * Stride + k));
    bits |= std::uint64_t{nonzero_lanes(any)} << k;
  }
  for (int k = kWhole; k < Count; k++) {
    for (int r = 0; r < Rows; r++) bits |= std::uint64_t{values[r * Stride + k] != 0.0f} << k;
  }
  return bits;
}

// The words of the rows of `a`, whose rows are contiguous and Stride apart; made when asked for.
template <int Depth, int Stride>
struct WordsOfRows {
  const float* a;
  template <int Rows>
  std::uint64_t of_rows(int row) const {
    return nonzero_bits<Rows, Depth, Stride>(a + row * Stride);
  }
};

// The words of the rows of `a` (Rows, Depth) where its columns are contiguous, and Stride apart.
template <int Rows, int Depth, int Stride>
class WordsOfColumns {
 public:
  explicit WordsOfColumns(const float* a) {
    static_assert(Depth <= 64);
    for (int first = 0; first < Depth; first += 32) {
      const int count = Depth - first < 32 ? Depth - first : 32;
      std::uint32_t half[Rows];
      half_words(a + first * Stride, count, half);
      for (int row = 0; row < Rows; row++) {
        words_[row] = first == 0 ? half[row] : words_[row] | std::uint64_t{half[row]} << 32;
      }
    }
  }

  template <int Count>
  std::uint64_t of_rows(int row) const {
    std::uint64_t any = words_[row];
#pragma GCC unroll 8
    for (int r = 1; r < Count; r++) any |= words_[row + r];
    return any;
  }

 private:
  static void half_words(const float* a, int count, std::uint32_t (&half)[Rows]) {
    constexpr int kWhole = Rows / kLanes * kLanes;
    for (int row = 0; row < kWhole; row += kLanes) {
      Mask result = lanes_of(0), bit = lanes_of(1);
      for (int k = 0; k < count; k++) {
        result = add_where_nonzero(result, bit, load(a + k * Stride + row));
        bit = twice(bit);
      }
      store_lanes(half + row, result);
    }
    for (int row = kWhole; row < Rows; row++) {
      half[row] = 0;
      for (int k = 0; k < count; k++) half[row] |= std::uint32_t{a[k * Stride + row] != 0.0f} << k;
    }
  }

  std::uint64_t words_[Rows];
};

}  // namespace rlt::kernels
