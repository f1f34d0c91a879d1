// core/sha256.h and core/crc32.h against known answers from Python's hashlib and zlib.
#include <cstdint>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "rltools/core/crc32.h"
#include "rltools/core/sha256.h"

namespace {

using Bytes = std::vector<std::uint8_t>;

std::string finish_hex(rlt::Sha256& hash) {
  std::uint8_t digest[rlt::Sha256::kDigestBytes];
  hash.finish(digest);
  std::string hex;
  for (const std::uint8_t byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

std::string sha256_hex(const void* data, std::size_t count) {
  rlt::Sha256 hash;
  hash.update(data, count);
  return finish_hex(hash);
}

std::string sha256_hex(const std::string& text) { return sha256_hex(text.data(), text.size()); }

// bytes(i * 7 % 251 for i in range(count))
Bytes message(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 % 251);
  return bytes;
}

TEST_CASE("SHA-256: the standard's examples") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256_hex("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                   "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu") ==
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  CHECK(sha256_hex(std::string(1000000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// hashlib: h = sha256(); for n in range(300): h.update(sha256(message(n)).digest()); h.hexdigest()
TEST_CASE("SHA-256: every length around one to four blocks") {
  rlt::Sha256 digests;
  for (std::size_t count = 0; count < 300; ++count) {
    const Bytes bytes = message(count);
    rlt::Sha256 hash;
    hash.update(bytes.data(), bytes.size());
    std::uint8_t digest[rlt::Sha256::kDigestBytes];
    hash.finish(digest);
    digests.update(digest, sizeof digest);
  }
  CHECK(finish_hex(digests) == "35c6b5439515e743ab02715b54e01009ca52b6e596d342fd26c560cf4719bffd");
}

TEST_CASE("SHA-256: a message may come in any pieces, at any address") {
  const Bytes bytes = message(200);
  const std::string expected = sha256_hex(bytes.data(), bytes.size());
  CHECK(expected == "fcfa8eb2ae47de09df3e42e48371d9ea7446fb378097f8ef9bf743d9856f50b6");
  for (std::size_t first = 0; first <= bytes.size(); ++first) {
    for (std::size_t second = first; second <= bytes.size(); second += 13) {
      rlt::Sha256 hash;
      hash.update(bytes.data(), first);
      hash.update(bytes.data() + first, second - first);
      hash.update(bytes.data() + second, bytes.size() - second);
      REQUIRE(finish_hex(hash) == expected);
    }
  }
  rlt::Sha256 hash;
  for (const std::uint8_t byte : bytes) hash.update(&byte, 1);
  CHECK(finish_hex(hash) == expected);
}

TEST_CASE("CRC-32: known answers") {
  CHECK(rlt::crc32(nullptr, 0) == 0u);
  CHECK(rlt::crc32("123456789", 9) == 0xcbf43926u);
  CHECK(rlt::crc32("a", 1) == 0xe8b7be43u);
  CHECK(rlt::crc32("The quick brown fox jumps over the lazy dog", 43) == 0x414fa339u);
  const Bytes zeros(1024, 0), ones(1024, 0xff), bytes = message(10000);
  CHECK(rlt::crc32(zeros.data(), zeros.size()) == 0xefb5af2eu);
  CHECK(rlt::crc32(ones.data(), ones.size()) == 0xb83afff4u);
  CHECK(rlt::crc32(bytes.data(), bytes.size()) == 0x5fdc1b6cu);
}

TEST_CASE("CRC-32: goes on from a previous value, and sees any one flipped bit") {
  Bytes bytes = message(97);
  const std::uint32_t whole = rlt::crc32(bytes.data(), bytes.size());
  for (std::size_t first = 0; first <= bytes.size(); ++first) {
    const std::uint32_t front = rlt::crc32(bytes.data(), first);
    REQUIRE(rlt::crc32(bytes.data() + first, bytes.size() - first, front) == whole);
  }
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const std::uint8_t mask = static_cast<std::uint8_t>(1u << (bit % 8));
    bytes[bit / 8] ^= mask;
    REQUIRE(rlt::crc32(bytes.data(), bytes.size()) != whole);
    bytes[bit / 8] ^= mask;
  }
}

}  // namespace
