// Counter-based random numbers, Philox4x32-10: Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011. A number is a pure function of seed, purpose, step,
// substream and index; there is no state to save, and neither threads nor order change it.
#pragma once

#include <cstdint>

#include "rltools/core/device.h"
#include "rltools/core/math.h"
#include "rltools/core/unrolled.h"

namespace rlt {

// Purposes for which numbers are drawn; streams of different purposes have different keys.
enum class Purpose : std::uint32_t {
  initialize = 1,
  environment_reset,
  exploration,
  warmup_action,
  replay_sample,
  target_noise,
  policy_sample,
  evaluation_reset,
  shuffle,
  environment_parameters,
  environment_step,
  first_observation,
  observation,
  evaluation_parameters,
  evaluation_step,
  evaluation_observation,
  teacher_observation,
  retry
};

struct RandomWords {
  std::uint32_t word[4];
};

struct RandomCounter {
  std::uint32_t word[4];
};

struct RandomKey {
  std::uint32_t word[2];
};

// Key {seed, purpose}; counter {block, step, substream, 0}. Block b holds the indices 4 b ... 4 b
// + 3.
struct RandomStream {
  std::uint32_t seed;
  Purpose purpose;
  std::uint32_t step;
  std::uint32_t substream = 0;
};

[[gnu::always_inline]] inline RandomWords philox4x32_10(RandomCounter counter, RandomKey key) {
  std::uint32_t c0 = counter.word[0], c1 = counter.word[1];
  std::uint32_t c2 = counter.word[2], c3 = counter.word[3];
  std::uint32_t k0 = key.word[0], k1 = key.word[1];
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = static_cast<std::uint64_t>(c0) * 0xd2511f53u;
    const std::uint64_t product1 = static_cast<std::uint64_t>(c2) * 0xcd9e8d57u;
    c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(product1);
    c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(product0);
    k0 += 0x9e3779b9u;  // Weyl sequences: the golden ratio
    k1 += 0xbb67ae85u;  // and sqrt(3) - 1
  }
  return {{c0, c1, c2, c3}};
}

[[gnu::always_inline]] inline RandomWords random_block(RandomStream stream, std::uint32_t block) {
  return philox4x32_10({{block, stream.step, stream.substream, 0u}},
                       {{stream.seed, static_cast<std::uint32_t>(stream.purpose)}});
}

// Word index % 4 of block index / 4.
inline std::uint32_t random_word(RandomStream stream, std::uint32_t index) {
  return random_block(stream, index / 4u).word[index % 4u];
}

// ---- Uniform -----------------------------------------------------------------------------------

// The largest number below a finite x.
inline float predecessor(float x) {
  const std::uint32_t bits = math::to_bits(x);
  return x > 0.0f ? math::from_bits(bits - 1u) : x < 0.0f ? math::from_bits(bits + 1u) : -0x1p-149f;
}

inline double predecessor(double x) { return __builtin_nextafter(x, -__builtin_inf()); }

// fma(floor(word / 2^8) / 2^24, span, low), and highest where that rounds beyond it. A double comes
// from the same 24 bits: a run in double precision draws the numbers of the run in float.
template <class T>
[[gnu::always_inline]] inline T uniform_from_word(std::uint32_t word, T low, T span, T highest) {
  const T unit = static_cast<T>(static_cast<std::int32_t>(word >> 8)) * static_cast<T>(0x1p-24f);
  return math::minimum(math::fma(unit, span, low), highest);
}

// In [low, high), for low < high and a finite high - low.
template <class T>
inline T uniform(RandomStream stream, std::uint32_t index, T low, T high) {
  return uniform_from_word(random_word(stream, index), low, high - low, predecessor(high));
}

// The high word of word * bound: in [0, bound), for bound > 0. The bias is below bound / 2^32.
[[gnu::always_inline]] inline std::uint32_t index_from_word(std::uint32_t word,
                                                            std::uint32_t bound) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(word) * bound >> 32);
}

inline std::uint32_t uniform_index(RandomStream stream, std::uint32_t index, std::uint32_t bound) {
  return index_from_word(random_word(stream, index), bound);
}

// destination[i] = uniform_index(stream, i, bound)
inline void fill_uniform_index(Generic, RandomStream stream, std::uint32_t* destination, int count,
                               std::uint32_t bound) {
  const int blocks = count / 4;
  for (int block = 0; block < blocks; ++block) {
    const RandomWords words = random_block(stream, static_cast<std::uint32_t>(block));
    destination[4 * block] = index_from_word(words.word[0], bound);
    destination[4 * block + 1] = index_from_word(words.word[1], bound);
    destination[4 * block + 2] = index_from_word(words.word[2], bound);
    destination[4 * block + 3] = index_from_word(words.word[3], bound);
  }
  for (int i = 4 * blocks; i < count; ++i) {
    destination[i] = uniform_index(stream, static_cast<std::uint32_t>(i), bound);
  }
}

// destination[i] = uniform(stream, i, low, high)
template <class T>
inline void fill_uniform(Generic, RandomStream stream, T* destination, int count, T low, T high) {
  const T span = high - low;
  const T highest = predecessor(high);
  const int blocks = count / 4;
  for (int block = 0; block < blocks; ++block) {
    const RandomWords words = random_block(stream, static_cast<std::uint32_t>(block));
    destination[4 * block] = uniform_from_word(words.word[0], low, span, highest);
    destination[4 * block + 1] = uniform_from_word(words.word[1], low, span, highest);
    destination[4 * block + 2] = uniform_from_word(words.word[2], low, span, highest);
    destination[4 * block + 3] = uniform_from_word(words.word[3], low, span, highest);
  }
  for (int i = 4 * blocks; i < count; ++i) {
    destination[i] = uniform(stream, static_cast<std::uint32_t>(i), low, high);
  }
}

// The same for a small number of them, without a loop.
template <int Count, class T>
[[gnu::always_inline]] inline void uniforms(RandomStream stream, T (&destination)[Count], T low,
                                            T high) {
  const T span = high - low, highest = predecessor(high);
  unrolled<(Count + 3) / 4>([&](int block) {
    const RandomWords words = random_block(stream, static_cast<std::uint32_t>(block));
    unrolled<4>([&](int k) {
      const int i = 4 * block + k;
      if (i < Count) destination[i] = uniform_from_word(words.word[k], low, span, highest);
    });
  });
}

// ---- Permutations ------------------------------------------------------------------------------

// A permutation of 0 .. count-1 that a stream draws, for a count of at most 2^30: a Feistel network
// of four rounds on as few bits as hold count (Luby and Rackoff 1988), gone through again where it
// leads beyond count. No table, and any index at any time.

// Half of the network's bits.
inline std::uint32_t permutation_half_bits(std::uint32_t count) {
  std::uint32_t half_bits = 1;
  while ((1u << 2u * half_bits) < count) half_bits++;
  return half_bits;
}

// Once through the network.
[[gnu::always_inline]] inline std::uint32_t permuted_once(RandomStream stream, std::uint32_t index,
                                                          std::uint32_t half_bits) {
  const std::uint32_t mask = (1u << half_bits) - 1u;
  std::uint32_t left = index >> half_bits, right = index & mask;
  unrolled<4>([&](int round) {
    const std::uint32_t block = static_cast<std::uint32_t>(round) << half_bits | right;
    const std::uint32_t next = left ^ (random_block(stream, block).word[0] & mask);
    left = right;
    right = next;
  });
  return left << half_bits | right;
}

// Return the position of `index` in the permutation.
inline std::uint32_t permuted_index(RandomStream stream, std::uint32_t index, std::uint32_t count) {
  const std::uint32_t half_bits = permutation_half_bits(count);
  do {
    index = permuted_once(stream, index, half_bits);
  } while (index >= count);
  return index;
}

// to[i] = permuted_index(stream, first + i, count), for i < rows
inline void permuted_indices(Generic, RandomStream stream, std::uint32_t first, std::uint32_t* to,
                             int rows, std::uint32_t count) {
  for (int i = 0; i < rows; i++) {
    to[i] = permuted_index(stream, first + static_cast<std::uint32_t>(i), count);
  }
}

// ---- Normal ------------------------------------------------------------------------------------

template <class T>
struct NormalPair {
  T first, second;
};

// Box and Muller (1958): sqrt(-2 ln u) (cos 2 pi v, sin 2 pi v) with u = (w0 + 1/2) / 2^32 and
// v = floor(w1 / 2^8) / 2^24. The largest magnitude is sqrt(66 ln 2) = 6.76.
template <class T>
[[gnu::always_inline]] inline NormalPair<T> normal_pair(std::uint32_t w0, std::uint32_t w1) {
  const T high = static_cast<T>(static_cast<std::int32_t>(w0 >> 16));
  const T low = static_cast<T>(static_cast<std::int32_t>(w0 & 0xffffu));
  const T low_part = math::fma(low, static_cast<T>(0x1p-32f), static_cast<T>(0x1p-33f));  // exact
  const T u = math::fma(high, static_cast<T>(0x1p-16f), low_part);
  const T radius = math::sqrt(static_cast<T>(-2.0f) * math::log(u));
  const T turn = static_cast<T>(static_cast<std::int32_t>(w1 >> 8));
  const auto direction = math::sincos(turn * static_cast<T>(0x1.921fb54442d18p-22));
  return {radius * direction.cosine, radius * direction.sine};
}

// Return a number of the standard normal distribution. Of a block's four numbers, the first two
// come from its words 0 and 1, the others from 2 and 3.
template <class T>
inline T standard_normal(RandomStream stream, std::uint32_t index) {
  const RandomWords words = random_block(stream, index / 4u);
  const bool front = (index & 2u) == 0u;
  const NormalPair<T> pair =
      normal_pair<T>(front ? words.word[0] : words.word[2], front ? words.word[1] : words.word[3]);
  return (index & 1u) == 0u ? pair.first : pair.second;
}

// destination[i] = standard_normal(stream, i)
template <class T>
inline void fill_standard_normal(Generic, RandomStream stream, T* destination, int count) {
  const int blocks = count / 4;
  for (int block = 0; block < blocks; ++block) {
    const RandomWords words = random_block(stream, static_cast<std::uint32_t>(block));
    const NormalPair<T> front = normal_pair<T>(words.word[0], words.word[1]);
    const NormalPair<T> back = normal_pair<T>(words.word[2], words.word[3]);
    destination[4 * block] = front.first;
    destination[4 * block + 1] = front.second;
    destination[4 * block + 2] = back.first;
    destination[4 * block + 3] = back.second;
  }
  for (int i = 4 * blocks; i < count; ++i) {
    destination[i] = standard_normal<T>(stream, static_cast<std::uint32_t>(i));
  }
}

// The same for a small number of them, without a loop.
template <int Count, class T>
[[gnu::always_inline]] inline void standard_normals(RandomStream stream, T (&destination)[Count]) {
  unrolled<(Count + 3) / 4>([&](int block) {
    const RandomWords words = random_block(stream, static_cast<std::uint32_t>(block));
    unrolled<2>([&](int half) {
      const int first = 4 * block + 2 * half;
      if (first >= Count) return;
      const auto pair = normal_pair<T>(words.word[2 * half], words.word[2 * half + 1]);
      destination[first] = pair.first;
      if (first + 1 < Count) destination[first + 1] = pair.second;
    });
  });
}

}  // namespace rlt
