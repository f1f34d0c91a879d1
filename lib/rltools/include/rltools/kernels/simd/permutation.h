// Permutations of core/random.h, many indices at a time. The loop that they replace is
//
//   for (i = 0; i < rows; i++) to[i] = permuted_index(stream, first + i, count);
#pragma once

#include "rltools/core/lanes.h"
#include "rltools/core/random.h"
#include "rltools/kernels/simd/vector.h"

namespace rlt {

namespace kernels {

// Once through the network with each of `count` indices.
RLT_LOOP_OVER_LANES inline void permute_once(RandomStream stream, std::uint32_t half_bits,
                                             std::uint32_t* __restrict indices, int count) {
  for (int i = 0; i < count; i++) indices[i] = permuted_once(stream, indices[i], half_bits);
}

}  // namespace kernels

inline void permuted_indices(HostSimd, RandomStream stream, std::uint32_t first, std::uint32_t* to,
                             int rows, std::uint32_t count) {
  constexpr int kBlock = 256;
  const std::uint32_t half_bits = permutation_half_bits(count);
  std::uint32_t index[kBlock];
  int position[kBlock];
  for (int begin = 0, block = 0; begin != rows; begin += block) {
    block = math::minimum(kBlock, rows - begin);
    int waiting = block;
    for (int i = 0; i < waiting; i++) {
      position[i] = begin + i;
      index[i] = first + static_cast<std::uint32_t>(begin + i);
    }
    // Those that come out beyond close up, and go through the network again.
    while (waiting > 0) {
      kernels::permute_once(stream, half_bits, index, waiting);
      int beyond = 0;
      for (int i = 0; i < waiting; i++) {
        const std::uint32_t reached = index[i];
        const int where = position[i];
        to[where] = reached;
        index[beyond] = reached;
        position[beyond] = where;
        beyond += reached >= count ? 1 : 0;
      }
      waiting = beyond;
    }
  }
}

}  // namespace rlt
