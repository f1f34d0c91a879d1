// Structs into lanes and back (core/lanes.h), by blocks of the host's vectors. The loop that they
// replace is
//
//   for (i = 0; i < kLaneCount; i++)
//     for (k = 0; k < Words; k++) lanes.word[k][i] = word k of structs[i];
#pragma once

#include "rltools/core/lanes.h"
#include "rltools/kernels/simd/vector.h"

namespace rlt {

constexpr std::bool_constant<(kernels::kLanes > 1)> transposes_fast(HostSimd) { return {}; }

namespace kernels {

// Return the word at which a block of a row of `words` begins: the last one ends with the row, and
// overlaps the one before, where the row has a whole one.
constexpr int block_begin(int block, int words) {
  return words < kLanes || (block + 1) * kLanes <= words ? block * kLanes : words - kLanes;
}

}  // namespace kernels

template <int Words>
inline void transpose_words(HostSimd, const void* structs, Lanes<Words>& lanes) {
  constexpr int kPart = Words < kernels::kLanes ? Words : kernels::kLanes;
  const auto* source = static_cast<const float*>(structs);
  for (int block = 0; block * kernels::kLanes < Words; block++) {
    const int begin = kernels::block_begin(block, Words);
    for (int first = 0; first < kLaneCount; first += kernels::kLanes) {
      kernels::Vector rows[kernels::kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kernels::kLanes; i++) {
        const float* row = source + (first + i) * Words + begin;
        if constexpr (kPart == kernels::kLanes) rows[i] = kernels::load(row);
        if constexpr (kPart < kernels::kLanes) rows[i] = kernels::load_first<kPart>(row);
      }
      kernels::transpose(rows);
#pragma GCC unroll 16
      for (int k = 0; k < kPart; k++) kernels::store(lanes.word[begin + k] + first, rows[k]);
    }
  }
}

template <int Words>
inline void transpose_words(HostSimd, const Lanes<Words>& lanes, void* structs) {
  constexpr int kPart = Words < kernels::kLanes ? Words : kernels::kLanes;
  auto* destination = static_cast<float*>(structs);
  for (int block = 0; block * kernels::kLanes < Words; block++) {
    const int begin = kernels::block_begin(block, Words);
    for (int first = 0; first < kLaneCount; first += kernels::kLanes) {
      kernels::Vector rows[kernels::kLanes] = {};
#pragma GCC unroll 16
      for (int k = 0; k < kPart; k++) rows[k] = kernels::load(lanes.word[begin + k] + first);
      kernels::transpose(rows);
#pragma GCC unroll 16
      for (int i = 0; i < kernels::kLanes; i++) {
        float* row = destination + (first + i) * Words + begin;
        if constexpr (kPart == kernels::kLanes) kernels::store(row, rows[i]);
        if constexpr (kPart < kernels::kLanes) kernels::store_first<kPart>(row, rows[i]);
      }
    }
  }
}

}  // namespace rlt
