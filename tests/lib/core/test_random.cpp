// core/random.h: Philox4x32-10 against Random123's known answers, the layout of streams, and the
// distributions. Everything is a fixed function of its seed: no bound here can fail by chance.
#include <cmath>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "rltools/core/random.h"

namespace {

using namespace rlt;

constexpr RandomStream kStream{12345u, Purpose::exploration, 678u, 9u};
constexpr int kMany = 1 << 20;

// For k equally likely bins the statistic has mean k - 1 and standard deviation sqrt(2 (k - 1)).
// Both tails count: too even is as wrong as too uneven.
void check_chi_square(const std::vector<int>& counts, double expected) {
  double statistic = 0.0;
  for (const int count : counts) statistic += (count - expected) * (count - expected) / expected;
  const double mean = static_cast<double>(counts.size() - 1);
  CAPTURE(statistic);
  CHECK(std::fabs(statistic - mean) < 5.0 * std::sqrt(2.0 * mean));
}

std::vector<float> normals(RandomStream stream, int count) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  fill_standard_normal(Generic{}, stream, numbers.data(), count);
  return numbers;
}

std::vector<float> uniforms(RandomStream stream, int count, float low, float high) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  fill_uniform(Generic{}, stream, numbers.data(), count, low, high);
  return numbers;
}

void check_words(RandomWords words, RandomWords expected) {
  for (int i = 0; i < 4; ++i) CHECK(words.word[i] == expected.word[i]);
}

TEST_CASE("Philox4x32-10: the known answers of Random123") {
  constexpr std::uint32_t kOnes = 0xffffffffu;
  check_words(philox4x32_10({{0, 0, 0, 0}}, {{0, 0}}),
              {{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}});
  check_words(philox4x32_10({{kOnes, kOnes, kOnes, kOnes}}, {{kOnes, kOnes}}),
              {{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}});
  check_words(philox4x32_10({{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}},
                            {{0xa4093822u, 0x299f31d0u}}),
              {{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}});
}

TEST_CASE("a stream's key is {seed, purpose}, its counter {block, step, substream, 0}") {
  for (const std::uint32_t index : {0u, 1u, 2u, 3u, 4u, 1003u, 0xffffffffu}) {
    const RandomWords words = philox4x32_10({{index / 4, 678u, 9u, 0u}}, {{12345u, 3u}});
    CHECK(random_word(kStream, index) == words.word[index % 4]);
  }
  CHECK(RandomStream{1, Purpose::shuffle, 2}.substream == 0u);
  CHECK(static_cast<std::uint32_t>(Purpose::initialize) == 1u);
  CHECK(static_cast<std::uint32_t>(Purpose::environment_reset) == 2u);
  CHECK(static_cast<std::uint32_t>(Purpose::exploration) == 3u);
  CHECK(static_cast<std::uint32_t>(Purpose::warmup_action) == 4u);
  CHECK(static_cast<std::uint32_t>(Purpose::replay_sample) == 5u);
  CHECK(static_cast<std::uint32_t>(Purpose::target_noise) == 6u);
  CHECK(static_cast<std::uint32_t>(Purpose::policy_sample) == 7u);
  CHECK(static_cast<std::uint32_t>(Purpose::evaluation_reset) == 8u);
  CHECK(static_cast<std::uint32_t>(Purpose::shuffle) == 9u);
}

TEST_CASE("uniform: flat, in [low, high), with the moments of a uniform distribution") {
  const float low = -0.25f, high = 1.75f;
  double sum = 0.0, squares = 0.0;
  std::vector<int> counts(256);
  for (const float x : uniforms(kStream, kMany, low, high)) {
    REQUIRE(x >= low);
    REQUIRE(x < high);
    const double unit = (static_cast<double>(x) + 0.25) / 2.0;
    sum += unit;
    squares += (unit - 0.5) * (unit - 0.5);
    ++counts[static_cast<std::size_t>(unit * 256.0)];
  }
  check_chi_square(counts, kMany / 256.0);
  CHECK(std::fabs(sum / kMany - 0.5) < 5.0 * std::sqrt(1.0 / 12 / kMany));
  CHECK(std::fabs(squares / kMany - 1.0 / 12) < 5.0 * std::sqrt(1.0 / 180 / kMany));
}

TEST_CASE("uniform: never reaches its upper bound, whatever the word and the bounds") {
  const float bounds[][2] = {{0.0f, 1.0f},
                             {1.0f, 2.0f},
                             {-1.0f, 1.0f},
                             {-2.0f, -1.0f},
                             {-1.0f, 0.0f},
                             {3.0f, 3.5f},
                             {16777216.0f, 16777218.0f},
                             {-0.1f, 0.3f},
                             {1e-40f, 3e-40f},
                             {-3.0e38f, 1e37f}};
  for (const auto& pair : bounds) {
    const float low = pair[0], high = pair[1];
    CAPTURE(low);
    CAPTURE(high);
    for (const std::uint32_t word : {0u, 255u, 256u, 0x7fffffffu, 0x80000000u, 0xffffff00u, ~0u}) {
      const float x = uniform_from_word(word, low, high - low, predecessor(high));
      CHECK(x >= low);
      CHECK(x < high);
      const double low_double = static_cast<double>(low), high_double = static_cast<double>(high);
      const double y =
          uniform_from_word(word, low_double, high_double - low_double, predecessor(high_double));
      CHECK(y >= low_double);
      CHECK(y < high_double);
    }
    CHECK(predecessor(high) < high);
    CHECK(std::nextafter(predecessor(high), INFINITY) == high);
    CHECK(uniform_from_word(0u, low, high - low, predecessor(high)) == low);
  }
  CHECK(uniform_from_word(~0u, 1.0f, 1.0f, predecessor(2.0f)) == predecessor(2.0f));
  CHECK(uniform_from_word(~0u, 0.0f, 1.0f, predecessor(1.0f)) == 1.0f - 0x1p-24f);
  CHECK(uniform_from_word(0x00000100u, 0.0f, 1.0f, predecessor(1.0f)) == 0x1p-24f);
  CHECK(uniform_from_word(0xc0000000u, 0.0, 1.0, predecessor(1.0)) == 0.75);
}

TEST_CASE("uniform_index: even, below its bound, all of them reached") {
  for (const std::uint32_t bound : {1u, 2u, 3u, 7u, 100u, 201u}) {
    CAPTURE(bound);
    std::vector<int> counts(bound);
    for (std::uint32_t i = 0; i < kMany / 16; ++i) {
      const std::uint32_t index = uniform_index(kStream, i, bound);
      REQUIRE(index < bound);
      ++counts[index];
    }
    if (bound > 1) check_chi_square(counts, kMany / 16.0 / bound);
  }
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const std::uint64_t word = random_word(kStream, i);
    CHECK(uniform_index(kStream, i, 0xffffffffu) == (word * 0xffffffffu) >> 32);
    CHECK(uniform_index(kStream, i, 10000u) == word * 10000u / 4294967296u);
  }
}

TEST_CASE("standard_normal: moments, shape and tails") {
  const std::vector<float> numbers = normals(kStream, kMany);
  double moment[5] = {};
  constexpr int kBins = 128;
  std::vector<int> counts(kBins);
  int beyond_3 = 0, beyond_4 = 0;
  double largest = 0.0;
  for (const float number : numbers) {
    const double x = static_cast<double>(number);
    double power = 1.0;
    for (double& m : moment) m += power / kMany, power *= x;
    const double probability = 0.5 * std::erfc(-x * std::sqrt(0.5));
    ++counts[static_cast<std::size_t>(std::min(kBins - 1, static_cast<int>(probability * kBins)))];
    beyond_3 += std::fabs(x) > 3.0;
    beyond_4 += std::fabs(x) > 4.0;
    largest = std::max(largest, std::fabs(x));
  }
  const double n = kMany;
  CHECK(std::fabs(moment[1]) < 5.0 * std::sqrt(1.0 / n));
  CHECK(std::fabs(moment[2] - 1.0) < 5.0 * std::sqrt(2.0 / n));
  CHECK(std::fabs(moment[3]) < 5.0 * std::sqrt(15.0 / n));
  CHECK(std::fabs(moment[4] - 3.0) < 5.0 * std::sqrt(96.0 / n));
  check_chi_square(counts, n / kBins);
  CHECK(std::fabs(beyond_3 - n * 2.6998e-3) < 5.0 * std::sqrt(n * 2.6998e-3));
  CHECK(std::fabs(beyond_4 - n * 6.3342e-5) < 5.0 * std::sqrt(n * 6.3342e-5));
  CHECK(largest > 4.3);
  CHECK(largest < 6.77);
}

TEST_CASE("standard_normal: finite for every pair of words, by the formula of Box and Muller") {
  const std::uint32_t words[] = {0u,          1u,          255u,        0xffffu,
                                 0x10000u,    0x3fffffffu, 0x40000000u, 0x7fffffffu,
                                 0x80000000u, 0xbfffffffu, 0xffffff7fu, 0xffffffffu};
  const double pi = std::acos(-1.0);
  for (const std::uint32_t w0 : words) {
    for (const std::uint32_t w1 : words) {
      CAPTURE(w0);
      CAPTURE(w1);
      const double u = (static_cast<double>(w0) + 0.5) / 4294967296.0;
      const double radius = std::sqrt(-2.0 * std::log(u));
      const double angle = 2.0 * pi * static_cast<double>(w1 >> 8) / 16777216.0;
      const NormalPair<double> exact{radius * std::cos(angle), radius * std::sin(angle)};
      const NormalPair<double> in_double = normal_pair<double>(w0, w1);
      CHECK(std::fabs(in_double.first - exact.first) < 1e-14);
      CHECK(std::fabs(in_double.second - exact.second) < 1e-14);
      const NormalPair<float> in_float = normal_pair<float>(w0, w1);
      // u next to 1 is rounded to a float, half of 2^-24 away; its radius is below sqrt(2^-23)
      const double allowed = u > 1.0 - 0x1p-20 ? 4e-4 : 4e-6;
      CHECK(std::fabs(static_cast<double>(in_float.first) - exact.first) < allowed);
      CHECK(std::fabs(static_cast<double>(in_float.second) - exact.second) < allowed);
    }
  }
  CHECK(normal_pair<float>(0u, 0u).first == doctest::Approx(6.7638).epsilon(1e-4));
}

TEST_CASE("a draw in double precision is the draw in float, less rounded") {
  for (std::uint32_t i = 0; i < 10000; ++i) {
    const double normal = standard_normal<double>(kStream, i);
    REQUIRE(std::fabs(static_cast<double>(standard_normal<float>(kStream, i)) - normal) < 1e-5);
    const double uniform_double = uniform<double>(kStream, i, -2.0, 3.0);
    const float uniform_float = uniform<float>(kStream, i, -2.0f, 3.0f);
    REQUIRE(std::fabs(static_cast<double>(uniform_float) - uniform_double) < 3e-7);
  }
}

template <class T>
void check_fill() {
  const T untouched = static_cast<T>(-77.25);
  for (const RandomStream& stream : {kStream, RandomStream{0, Purpose::initialize, 0}}) {
    for (int count = 0; count <= 150; ++count) {
      CAPTURE(count);
      const std::size_t size = static_cast<std::size_t>(count);
      std::vector<T> uniform_numbers(size + 8, untouched), normal_numbers(size + 8, untouched);
      const T low = static_cast<T>(-0.3), high = static_cast<T>(1.7);
      fill_uniform(Generic{}, stream, uniform_numbers.data(), count, low, high);
      fill_standard_normal(Generic{}, stream, normal_numbers.data(), count);
      for (std::size_t i = 0; i < size; ++i) {
        const std::uint32_t index = static_cast<std::uint32_t>(i);
        REQUIRE(uniform_numbers[i] == uniform<T>(stream, index, low, high));
        REQUIRE(normal_numbers[i] == standard_normal<T>(stream, index));
      }
      for (std::size_t i = size; i < size + 8; ++i) {
        REQUIRE(uniform_numbers[i] == untouched);
        REQUIRE(normal_numbers[i] == untouched);
      }
    }
  }
}

template <int Count>
void check_few() {
  CAPTURE(Count);
  float few_normals[Count], few_uniforms[Count];
  standard_normals(kStream, few_normals);
  rlt::uniforms(kStream, few_uniforms, -2.0f, 3.0f);
  for (int i = 0; i < Count; ++i) {
    const auto index = static_cast<std::uint32_t>(i);
    CHECK(few_normals[i] == standard_normal<float>(kStream, index));
    CHECK(few_uniforms[i] == uniform(kStream, index, -2.0f, 3.0f));
  }
}

TEST_CASE("a few numbers at once are those that are drawn one by one") {
  check_few<1>();
  check_few<2>();
  check_few<3>();
  check_few<4>();
  check_few<5>();
  check_few<7>();
  check_few<12>();
  check_few<17>();
}

TEST_CASE("filling with indices gives those of single draws, and nothing beyond") {
  constexpr std::uint32_t kUntouched = 4711;
  for (std::size_t count = 0; count <= 40; ++count) {
    CAPTURE(count);
    std::vector<std::uint32_t> indices(count + 8, kUntouched);
    fill_uniform_index(Generic{}, kStream, indices.data(), static_cast<int>(count), 1000u);
    for (std::size_t i = 0; i < count; ++i) {
      REQUIRE(indices[i] == uniform_index(kStream, static_cast<std::uint32_t>(i), 1000u));
    }
    for (std::size_t i = count; i < count + 8; ++i) REQUIRE(indices[i] == kUntouched);
  }
}

TEST_CASE("filling gives the numbers of single draws, and nothing beyond") {
  check_fill<float>();
  check_fill<double>();
}

}  // namespace

TEST_CASE("permuted indices are a permutation of any count") {
  const auto is_permutation = [](std::uint32_t count) {
    std::vector<bool> taken(count);
    for (std::uint32_t i = 0; i < count; i++) {
      const std::uint32_t index = permuted_index(kStream, i, count);
      if (index >= count || taken[index]) return false;
      taken[index] = true;
    }
    return true;
  };
  for (std::uint32_t count = 1; count <= 300; count++) {
    CAPTURE(count);
    CHECK(is_permutation(count));
  }
  for (const std::uint32_t count : {1023u, 1024u, 1025u, 4096u, 4097u, 5000u}) {
    CAPTURE(count);
    CHECK(is_permutation(count));
  }
}

TEST_CASE("each index comes to each place equally often, and pairs of places are independent") {
  constexpr std::uint32_t kStreams = 50000, kBins = 8;
  for (const std::uint32_t count : {64u, 1000u, 1024u}) {  // 1000 is gone through again at times
    CAPTURE(count);
    std::vector<int> first(count), last(count), pair(kBins * kBins);
    for (std::uint32_t step = 0; step < kStreams; step++) {
      const RandomStream stream{9, Purpose::shuffle, step, 0};
      const std::uint32_t a = permuted_index(stream, 0, count);
      const std::uint32_t b = permuted_index(stream, 1, count);
      first[a]++;
      last[permuted_index(stream, count - 1, count)]++;
      pair[a * kBins / count * kBins + b * kBins / count]++;
    }
    check_chi_square(first, static_cast<double>(kStreams) / count);
    check_chi_square(last, static_cast<double>(kStreams) / count);
    // On few bits four rounds leave a few per cent of dependence.
    if (count > 64) check_chi_square(pair, static_cast<double>(kStreams) / (kBins * kBins));
  }
}
