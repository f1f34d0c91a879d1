// The words that tell which factors are not zero, against one factor after the other.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "rltools/core/random.h"
#include "rltools/devices/host.h"
#include "rltools/kernels/simd/nonzero_bits.h"

namespace rlt::kernels {

// About half of them zero, some negative, and one of them no number.
inline std::vector<float> factors(int count) {
  std::vector<float> result(static_cast<std::size_t>(count));
  fill_standard_normal(Generic{}, {5, Purpose::shuffle, 1}, result.data(), count);
  for (float& value : result) value = value < 0.0f && value > -1.0f ? 0.0f : value;
  result[result.size() / 2] = std::numeric_limits<float>::quiet_NaN();
  return result;
}

// Words of the rows row .. row+rows-1, for each row; a(row, k) lies at row * row_step + k *
// column_step.
inline void check_words(const std::vector<std::uint64_t>& words, const std::vector<float>& a,
                        int rows, int depth, int row_step, int column_step) {
  CAPTURE(rows);
  CAPTURE(depth);
  for (std::size_t row = 0; row < words.size(); row++) {
    std::uint64_t expected = 0;
    for (int k = 0; k < depth; k++) {
      for (int r = 0; r < rows; r++) {
        const int place = (static_cast<int>(row) + r) * row_step + k * column_step;
        expected |= std::uint64_t{a[static_cast<std::size_t>(place)] != 0.0f} << k;
      }
    }
    CHECK(words[row] == expected);
  }
}

template <int Rows, int Depth>
void check_both() {
  constexpr int kRowStride = Depth + 3, kColumnStride = Rows + 2;
  const auto by_rows = factors(Rows * kRowStride), by_columns = factors(Depth * kColumnStride);
  const WordsOfRows<Depth, kRowStride> of_rows{by_rows.data()};
  const WordsOfColumns<Rows, Depth, kColumnStride> of_columns(by_columns.data());
  std::vector<std::uint64_t> one, three, one_by_columns, three_by_columns;
  for (int row = 0; row < Rows; row++) {
    one.push_back(of_rows.template of_rows<1>(row));
    one_by_columns.push_back(of_columns.template of_rows<1>(row));
  }
  for (int row = 0; row + 3 <= Rows; row++) {
    three.push_back(of_rows.template of_rows<3>(row));
    three_by_columns.push_back(of_columns.template of_rows<3>(row));
  }
  check_words(one, by_rows, 1, Depth, kRowStride, 1);
  check_words(three, by_rows, 3, Depth, kRowStride, 1);
  check_words(one_by_columns, by_columns, 1, Depth, 1, kColumnStride);
  check_words(three_by_columns, by_columns, 3, Depth, 1, kColumnStride);
}

TEST_CASE("a word has a bit for each factor that is not zero, of one row or any of several") {
  check_both<5, 7>();
  check_both<35, 64>();
}

}  // namespace rlt::kernels
