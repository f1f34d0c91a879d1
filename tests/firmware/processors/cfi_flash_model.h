// Two flash chips of 16 bits with Intel's basic command set, side by side, as their data sheets
// describe them: programming clears bits, erasing sets a block's, both take some bus cycles, and
// errors stay in the status register until they are cleared. The power can fail between any two bus
// cycles. Misuse is an exception.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "rltools/core/random.h"

namespace cfi_flash_model {

struct PowerCut {};

struct Misuse : std::logic_error {
  using std::logic_error::logic_error;
};

constexpr std::uint32_t kBlockBytes = 256, kBlocks = 8;  // of both chips together
constexpr std::uint16_t kReady = 0x80, kErrors = 0x3a, kSequenceError = 0x30;
constexpr std::uint16_t kEraseErrors = 0x2a, kProgramErrors = 0x1a;  // that an operation may have

// A chip has one half of each word of 32 bits.
class Chip {
 public:
  Chip(std::vector<std::uint32_t>& words, int shift) : words_(words), shift_(shift) {}

  int operation_cycles = 3;        // that an operation takes
  int buffer_cycles = 0;           // until the next write buffer is free
  std::uint16_t next_error = 0;    // status bits that the next operation ends with
  bool is_stuck = false;           // the next operation never ends
  bool clearing_is_reset = false;  // QEMU: Clear Status Register ends with Read Array, not ready

  bool reads_array() const { return mode_ == Mode::array && busy_ == 0; }

  std::uint16_t read(std::uint32_t word) {
    work();
    if (mode_ == Mode::array) return at(word);
    if (mode_ != Mode::status && mode_ != Mode::buffer_count) throw Misuse("read in a sequence");
    return busy_ > 0 || waiting_ > 0 ? 0 : status_;
  }

  void write(std::uint32_t word, std::uint16_t value) {
    work();
    const bool is_busy = busy_ > 0 || waiting_ > 0;
    if (is_busy && value == 0xff) return;  // it is ignored
    if (is_busy) throw Misuse("a command while the chip is busy");
    switch (mode_) {
      case Mode::array:
      case Mode::status: return begin(word, value);
      case Mode::erase:
        if (value == 0xd0 && same_block(word)) return start(Operation::erase);
        return fail_sequence();
      case Mode::buffer_count:
        if (value >= kMaxWords || !same_block(word)) return fail_sequence();
        wanted_ = value + 1u;
        buffer_.clear();
        mode_ = Mode::buffer_words;
        return;
      case Mode::buffer_words:
        if (buffer_.empty()) first_ = word;
        // In order, and within one write buffer.
        if (word != first_ + buffer_.size() || word / kMaxWords != first_ / kMaxWords) {
          return fail_sequence();
        }
        buffer_.push_back(value);
        if (buffer_.size() == wanted_) mode_ = Mode::buffer_confirm;
        return;
      case Mode::buffer_confirm:
        if (value == 0xd0 && same_block(word)) return start(Operation::program);
        if (value != 0xff) return fail_sequence();
        mode_ = Mode::status;  // not confirmed: nothing is programmed
        status_ |= kSequenceError;
        return;
    }
  }

  // The power is back; what was under way is left as it was, or as anything.
  void power_up(bool garbage, std::uint32_t seed) {
    while (busy_ > 0 && garbage && done_ < total_) {
      const std::uint32_t word = target(done_);
      const auto noise = static_cast<std::uint16_t>(
          rlt::uniform<float>({seed, rlt::Purpose::shuffle, word}, done_, 0.0f, 65535.0f));
      const auto left = static_cast<std::uint16_t>(
          operation_ == Operation::erase ? at(word) | noise : at(word) & noise);
      set(word, left);
      done_++;
    }
    busy_ = waiting_ = 0;
    mode_ = Mode::array;
    status_ = kReady;
    next_error = 0;
    is_stuck = false;
    buffer_cycles = 0;
  }

 private:
  enum class Mode { array, status, erase, buffer_count, buffer_words, buffer_confirm };
  enum class Operation { erase, program };
  static constexpr std::uint32_t kMaxWords = 16;  // of the write buffer, 32 bytes
  static constexpr std::uint32_t kBlockWords = kBlockBytes / 4;

  std::uint16_t at(std::uint32_t word) const {
    return static_cast<std::uint16_t>(words_[word] >> shift_);
  }
  void set(std::uint32_t word, std::uint16_t value) {
    words_[word] = (words_[word] & ~(0xffffu << shift_)) | static_cast<std::uint32_t>(value)
                                                               << shift_;
  }
  bool same_block(std::uint32_t word) const { return word / kBlockWords == block_; }
  std::uint32_t target(std::uint32_t index) const {
    return operation_ == Operation::erase ? block_ * kBlockWords + index : first_ + index;
  }

  void begin(std::uint32_t word, std::uint16_t command) {
    block_ = word / kBlockWords;
    switch (command) {
      case 0xff: mode_ = Mode::array; return;
      case 0x70: mode_ = Mode::status; return;
      case 0x50:
        status_ = clearing_is_reset ? 0 : status_ & ~kErrors;
        if (clearing_is_reset) mode_ = Mode::array;
        return;
      case 0x20: mode_ = Mode::erase; return;
      case 0xe8:
        mode_ = Mode::buffer_count;
        status_ |= kReady;
        waiting_ = buffer_cycles;
        buffer_cycles = 0;
        return;
      default: throw Misuse("a command that is not known");
    }
  }

  void fail_sequence() { throw Misuse("a sequence that no data sheet has"); }

  void start(Operation operation) {
    mode_ = Mode::status;
    operation_ = operation;
    status_ |= next_error;
    next_error = 0;
    status_ |= kReady;
    if ((status_ & kErrors) != 0) return;  // it refuses until they are cleared
    total_ = operation == Operation::erase ? kBlockWords : wanted_;
    done_ = 0;
    busy_ = operation_cycles;
    if (operation == Operation::erase) return;
    for (std::uint32_t i = 0; i < total_; i++) {
      if (at(first_ + i) != 0xffff) throw Misuse("programming of what was not erased");
    }
  }

  // What is done in one bus cycle.
  void work() {
    if (waiting_ > 0) waiting_--;
    if (busy_ == 0 || is_stuck) return;
    const std::uint32_t cycles = static_cast<std::uint32_t>(operation_cycles);
    const std::uint32_t part = (total_ + cycles - 1) / cycles;
    for (std::uint32_t i = 0; i < part && done_ < total_; i++, done_++) {
      const std::uint32_t word = target(done_);
      const std::uint16_t value = operation_ == Operation::erase ? 0xffff : buffer_[done_];
      set(word, operation_ == Operation::erase ? value : at(word) & value);
    }
    busy_--;
  }

  std::vector<std::uint32_t>& words_;
  const int shift_;
  Mode mode_ = Mode::array;
  Operation operation_ = Operation::erase;
  std::uint16_t status_ = kReady;
  std::uint32_t block_ = 0, first_ = 0, wanted_ = 0, total_ = 0, done_ = 0;
  int busy_ = 0;     // bus cycles until the operation has ended
  int waiting_ = 0;  // until it takes the words of a write buffer
  std::vector<std::uint16_t> buffer_;
};

// Both chips. Its content outlives the power.
class Flash {
 public:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  Flash() : words(kBlocks * kBlockBytes / 4, 0x5a5a5a5au), chips{{words, 0}, {words, 16}} {}
  Flash(const Flash&) = delete;

  std::vector<std::uint32_t> words;
  Chip chips[2];
  std::uint64_t cycles = 0;

  // The power fails before the cycle with this number from now on.
  void cut_after(std::uint64_t count) { budget_ = count; }
  void power_up(bool garbage) {
    budget_ = kNever;
    for (Chip& chip : chips) chip.power_up(garbage, static_cast<std::uint32_t>(cycles));
  }

  const std::uint8_t* data() const {
    if (!chips[0].reads_array() || !chips[1].reads_array()) throw Misuse("no mode to read data in");
    return reinterpret_cast<const std::uint8_t*>(words.data());
  }
  void write(std::uint32_t offset, std::uint32_t value) {
    begin_cycle(offset);
    chips[0].write(offset / 4, static_cast<std::uint16_t>(value));
    chips[1].write(offset / 4, static_cast<std::uint16_t>(value >> 16));
  }
  std::uint32_t read(std::uint32_t offset) {
    begin_cycle(offset);
    const std::uint32_t low = chips[0].read(offset / 4);
    return low | static_cast<std::uint32_t>(chips[1].read(offset / 4)) << 16;
  }

 private:
  void begin_cycle(std::uint32_t offset) {
    if (offset % 4 != 0 || offset >= kBlocks * kBlockBytes) throw Misuse("no word of the flash");
    if (budget_ == 0) throw PowerCut{};
    if (budget_ != kNever) budget_--;
    cycles++;
  }
  std::uint64_t budget_ = kNever;
};

// What the driver has of it.
struct Bus {
  static constexpr std::uint32_t kBytes = kBlocks * kBlockBytes, kEraseBytes = kBlockBytes;
  static constexpr std::uint32_t kMaxPolls = 50;
  Flash* flash;
  const std::uint8_t* data() const { return flash->data(); }
  void write(std::uint32_t offset, std::uint32_t word) { flash->write(offset, word); }
  std::uint32_t read(std::uint32_t offset) { return flash->read(offset); }
};

}  // namespace cfi_flash_model
