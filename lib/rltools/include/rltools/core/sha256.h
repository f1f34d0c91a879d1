// SHA-256, incremental (FIPS 180-4, section 6.2). Reads and writes bytes: any byte order and any
// alignment will do.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rlt {

// FIPS 180-4, 4.2.2: 32 bits of the fractional parts of the cube roots of the first 64 primes.
inline constexpr std::uint32_t kSha256RoundConstants[64] = {
    0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u,
    0xab1c5ed5u, 0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu,
    0x9bdc06a7u, 0xc19bf174u, 0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu,
    0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau, 0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u,
    0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u, 0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu,
    0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u, 0xa2bfe8a1u, 0xa81a664bu,
    0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u, 0x19a4c116u,
    0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
    0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u,
    0xc67178f2u};

// Sha256 hash; hash.update(a, n); hash.update(b, m); hash.finish(digest); it is then as new.
struct Sha256 {
  static constexpr std::size_t kDigestBytes = 32;
  static constexpr std::size_t kBlockBytes = 64;

  void restart() { *this = Sha256{}; }

  [[gnu::noinline]] void update(const void* data, std::size_t count) {
    const std::uint8_t* bytes = static_cast<const std::uint8_t*>(data);
    std::size_t used = static_cast<std::size_t>(message_bytes_ % kBlockBytes);
    message_bytes_ += count;
    while (count > 0) {
      if (used == 0 && count >= kBlockBytes) {  // whole blocks straight from the caller's memory
        compress(bytes);
        bytes += kBlockBytes;
        count -= kBlockBytes;
        continue;
      }
      block_[used++] = *bytes++;
      --count;
      if (used == kBlockBytes) {
        compress(block_);
        used = 0;
      }
    }
  }

  void finish(std::uint8_t (&digest)[kDigestBytes]) {
    const std::uint64_t message_bits = message_bytes_ * 8;
    std::size_t used = static_cast<std::size_t>(message_bytes_ % kBlockBytes);
    block_[used++] = 0x80;
    if (used > kBlockBytes - 8) {
      while (used < kBlockBytes) block_[used++] = 0;
      compress(block_);
      used = 0;
    }
    while (used < kBlockBytes - 8) block_[used++] = 0;
    for (int shift = 56; shift >= 0; shift -= 8) {
      block_[used++] = static_cast<std::uint8_t>(message_bits >> shift);
    }
    compress(block_);
    for (std::size_t i = 0; i < kDigestBytes; ++i) {
      digest[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
    }
    restart();
  }

 private:
  static std::uint32_t rotate_right(std::uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }

  [[gnu::noinline]] void compress(const std::uint8_t* block) {
    std::uint32_t w[16];  // the message schedule's latest 16 words, word t in w[t % 16]
    for (int t = 0; t < 16; ++t) {
      w[t] = static_cast<std::uint32_t>(block[4 * t]) << 24 |
             static_cast<std::uint32_t>(block[4 * t + 1]) << 16 |
             static_cast<std::uint32_t>(block[4 * t + 2]) << 8 |
             static_cast<std::uint32_t>(block[4 * t + 3]);
    }
    std::uint32_t a = state_[0], b = state_[1], c = state_[2], d = state_[3];
    std::uint32_t e = state_[4], f = state_[5], g = state_[6], h = state_[7];
    for (int t = 0; t < 64; ++t) {
      if (t >= 16) {
        const std::uint32_t w2 = w[(t - 2) % 16];
        const std::uint32_t w15 = w[(t - 15) % 16];
        w[t % 16] += (rotate_right(w2, 17) ^ rotate_right(w2, 19) ^ (w2 >> 10)) + w[(t - 7) % 16] +
                     (rotate_right(w15, 7) ^ rotate_right(w15, 18) ^ (w15 >> 3));
      }
      const std::uint32_t sum1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
      const std::uint32_t choose = (e & f) ^ (~e & g);
      const std::uint32_t t1 = h + sum1 + choose + kSha256RoundConstants[t] + w[t % 16];
      const std::uint32_t sum0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
      const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
      const std::uint32_t t2 = sum0 + majority;
      h = g;
      g = f;
      f = e;
      e = d + t1;
      d = c;
      c = b;
      b = a;
      a = t1 + t2;
    }
    state_[0] += a;
    state_[1] += b;
    state_[2] += c;
    state_[3] += d;
    state_[4] += e;
    state_[5] += f;
    state_[6] += g;
    state_[7] += h;
  }

  // FIPS 180-4, 5.3.3: 32 bits of the fractional parts of the square roots of the first 8 primes.
  std::uint32_t state_[8] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                             0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
  std::uint64_t message_bytes_ = 0;
  std::uint8_t block_[kBlockBytes] = {};  // what is left of the message after its last whole block
};

}  // namespace rlt
