// A flash memory whose power can fail at any byte that it programs or erases, and that finds
// misuse: programming what was not erased, and units that are not whole.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "rltools/core/random.h"

namespace flash_model {

struct PowerCut {};

struct Misuse : std::logic_error {
  using std::logic_error::logic_error;
};

// How what was under way is left behind.
enum class Left { prefix, garbage };

template <std::uint32_t EraseBytes, std::uint32_t ProgramBytes>
class Flash {
 public:
  static constexpr std::uint32_t kEraseBytes = EraseBytes;
  static constexpr std::uint32_t kProgramBytes = ProgramBytes;
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  explicit Flash(std::uint32_t blocks) : words_(blocks * EraseBytes / 4, 0x5a5a5a5au) {}

  std::uint32_t size() const { return static_cast<std::uint32_t>(words_.size() * 4); }
  const std::uint8_t* data() const { return reinterpret_cast<const std::uint8_t*>(words_.data()); }
  std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(words_.data()); }

  bool erase(std::uint32_t offset) {
    if (offset % EraseBytes != 0 || offset >= size()) throw Misuse("erase of no block");
    return change(offset, EraseBytes, [](std::uint32_t) { return std::uint8_t{0xff}; });
  }
  bool program(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    if (offset % ProgramBytes != 0 || count % ProgramBytes != 0 || offset + count > size()) {
      throw Misuse("programming of no whole unit");
    }
    for (std::uint32_t i = 0; i < count; i++) {
      if (data()[offset + i] != 0xff) throw Misuse("programming of what was not erased");
    }
    return change(offset, count, [source](std::uint32_t i) { return source[i]; });
  }

  // The power fails when so many bytes have been programmed or erased from now on.
  void cut_after(std::uint64_t count, Left left) { budget_ = count, left_ = left; }
  // Operations fail, as a worn flash reports it, from now on.
  void fail(bool fails) { fails_ = fails; }
  std::uint64_t changed_bytes() const { return changed_; }

 private:
  template <class Value>
  bool change(std::uint32_t offset, std::uint32_t count, Value&& value) {
    if (fails_) return false;
    for (std::uint32_t i = 0; i < count; i++) {
      if (budget_ == 0) {
        if (left_ == Left::garbage) spoil(offset + i, count - i);
        throw PowerCut{};
      }
      if (budget_ != kNever) budget_--;
      bytes()[offset + i] = value(i);
      changed_++;
    }
    return true;
  }
  void spoil(std::uint32_t offset, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; i++) {
      bytes()[offset + i] = static_cast<std::uint8_t>(
          rlt::uniform<float>({9, rlt::Purpose::shuffle, offset},
                              static_cast<std::uint32_t>(changed_) + i, 0.0f, 256.0f));
    }
  }

  std::vector<std::uint32_t> words_;
  std::uint64_t budget_ = kNever;
  std::uint64_t changed_ = 0;
  Left left_ = Left::prefix;
  bool fails_ = false;
};

}  // namespace flash_model
