// Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). A number is a pure function of seed, purpose, step, substream and index: there is no state.
#pragma once

#include <cstdint>

#include "rltools/core/device.h"
#include "rltools/core/math.h"

namespace rlt {

// What a number is drawn for. Streams of different purposes never meet.
enum class Purpose : std::uint32_t {
  initialise = 1,
  environment_reset,
  exploration,
  warmup_action,
  replay_sample,
  target_noise,
  policy_sample,
  evaluation_reset,
  shuffle
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

// Key {seed, purpose}, counter {block, step, substream, 0}: 2^32 blocks of four words for each.
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
    k0 += 0x9e3779b9u;  // the golden ratio
    k1 += 0xbb67ae85u;  // sqrt(3) - 1
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

// ---- Uniform ----------------------------------------------------------------------------------------------------

// The largest T below x, for finite x.
inline float predecessor(float x) {
  const std::uint32_t bits = math::to_bits(x);
  return x > 0.0f ? math::from_bits(bits - 1u) : x < 0.0f ? math::from_bits(bits + 1u) : -0x1p-149f;
}
inline double predecessor(double x) { return __builtin_nextafter(x, -__builtin_inf()); }

// low + (word / 2^8) / 2^24 (high - low) with one fma, and where that rounds up to high, the number before it.
// A double is drawn from the same 24 bits, so that a run in double follows the run in float.
template <class T>
[[gnu::always_inline]] inline T uniform_from_word(std::uint32_t word, T low, T span, T highest) {
  const T unit = static_cast<T>(static_cast<std::int32_t>(word >> 8)) * static_cast<T>(0x1p-24f);
  return math::min(math::fma(unit, span, low), highest);
}

// In [low, high), where low < high and high - low is finite.
template <class T>
inline T uniform(RandomStream stream, std::uint32_t index, T low, T high) {
  return uniform_from_word(random_word(stream, index), low, high - low, predecessor(high));
}

// In {0, ..., bound - 1}: the high word of the product; the bias is at most bound / 2^32.
inline std::uint32_t uniform_index(RandomStream stream, std::uint32_t index, std::uint32_t bound) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(random_word(stream, index)) * bound) >> 32);
}

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

// ---- Normal -----------------------------------------------------------------------------------------------------

template <class T>
struct NormalPair {
  T first, second;
};

// Box and Muller 1958: sqrt(-2 ln u) (cos, sin)(2 pi v), u = (w0 + 1/2) / 2^32, v = (w1 / 2^8) / 2^24.
template <class T>
[[gnu::always_inline]] inline NormalPair<T> normal_pair(std::uint32_t w0, std::uint32_t w1) {
  const T high = static_cast<T>(static_cast<std::int32_t>(w0 >> 16));
  const T low = static_cast<T>(static_cast<std::int32_t>(w0 & 0xffffu));
  const T u = math::fma(high, static_cast<T>(0x1p-16f),
                        math::fma(low, static_cast<T>(0x1p-32f), static_cast<T>(0x1p-33f)));
  const T radius = math::sqrt(static_cast<T>(-2.0f) * math::log(u));
  const T turn = static_cast<T>(static_cast<std::int32_t>(w1 >> 8));
  const auto direction = math::sincos(turn * static_cast<T>(0x1.921fb54442d18p-22));
  return {radius * direction.cosine, radius * direction.sine};
}

// Numbers 4 b ... 4 b + 3 come from block b: the first two from its words 0 and 1, the others from 2 and 3.
template <class T>
inline T standard_normal(RandomStream stream, std::uint32_t index) {
  const RandomWords words = random_block(stream, index / 4u);
  const NormalPair<T> pair = (index & 2u) == 0u ? normal_pair<T>(words.word[0], words.word[1])
                                                : normal_pair<T>(words.word[2], words.word[3]);
  return (index & 1u) == 0u ? pair.first : pair.second;
}

template <class T>
inline void fill_standard_normal(Generic, RandomStream stream, T* destination, int count) {
  const int blocks = count / 4;
  for (int block = 0; block < blocks; ++block) {
    const RandomWords words = random_block(stream, static_cast<std::uint32_t>(block));
    const NormalPair<T> even = normal_pair<T>(words.word[0], words.word[1]);
    const NormalPair<T> odd = normal_pair<T>(words.word[2], words.word[3]);
    destination[4 * block] = even.first;
    destination[4 * block + 1] = even.second;
    destination[4 * block + 2] = odd.first;
    destination[4 * block + 3] = odd.second;
  }
  for (int i = 4 * blocks; i < count; ++i) {
    destination[i] = standard_normal<T>(stream, static_cast<std::uint32_t>(i));
  }
}

}  // namespace rlt
