// Parallel NOR flash with Intel's basic command set (CFI, JESD68.01, command set 0001), two chips
// of 16 bits side by side, as a storage of policies (rltools/policy/storage.h). Commands and status
// bits have the names of the data sheets of Intel StrataFlash (J3, P30). Bus must provide
//   static constexpr std::uint32_t kBytes, kEraseBytes;   of both chips together
//   static constexpr std::uint32_t kMaxPolls;            reads until a chip that is busy is broken
//   const std::uint8_t* data() const;                     the flash, to be read in place
//   void write(std::uint32_t offset, std::uint32_t word); one bus cycle, to both chips
//   std::uint32_t read(std::uint32_t offset);             one bus cycle, of both chips
// Reads and writes of the bus are in order with those of data(). A reset of the board must reset
// the chips too, which then are in the mode Read Array.
#pragma once

#include <cstdint>

namespace rlt {

template <class Bus>
class CfiFlash {
 public:
  static constexpr std::uint32_t kEraseBytes = Bus::kEraseBytes;
  // The least that a chip takes into its write buffer; no unit crosses a buffer's boundary.
  static constexpr std::uint32_t kProgramBytes = 32;
  static_assert(Bus::kBytes % kEraseBytes == 0 && kEraseBytes % kProgramBytes == 0,
                "a flash has whole blocks, and a block whole write buffers");

  explicit CfiFlash(Bus bus = {}) : bus_(bus) {}

  std::uint32_t size() const { return Bus::kBytes; }
  const std::uint8_t* data() const { return bus_.data(); }

  bool erase(std::uint32_t offset) {
    bus_.write(offset, in_both(kBlockErase));
    bus_.write(offset, in_both(kConfirm));
    return end_operation(offset);
  }

  bool program(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    for (std::uint32_t done = 0; done < count; done += kProgramBytes) {
      if (!program_unit(offset + done, source + done)) return false;
    }
    return true;
  }

 private:
  // Commands.
  static constexpr std::uint16_t kBlockErase = 0x20, kClearStatusRegister = 0x50;
  static constexpr std::uint16_t kConfirm = 0xd0, kWriteToBuffer = 0xe8, kReadArray = 0xff;
  // The status register.
  static constexpr std::uint16_t kReady = 1u << 7, kEraseError = 1u << 5, kProgramError = 1u << 4;
  static constexpr std::uint16_t kVoltageError = 1u << 3, kBlockLocked = 1u << 1;
  static constexpr std::uint16_t kErrors =
      kEraseError | kProgramError | kVoltageError | kBlockLocked;

  static constexpr std::uint32_t kUnitWords = kProgramBytes / 4;

  static constexpr std::uint32_t in_both(std::uint32_t value) { return value << 16 | value; }

  bool program_unit(std::uint32_t offset, const std::uint8_t* source) {
    bus_.write(offset, in_both(kWriteToBuffer));
    if (!is_ready(status_when_ready(offset))) {
      give_up_buffer(offset);
      return false;
    }
    bus_.write(offset, in_both(kUnitWords - 1));  // words in each chip, less one
    for (std::uint32_t i = 0; i < kUnitWords; i++) {
      std::uint32_t word;
      __builtin_memcpy(&word, source + 4 * i, sizeof(word));
      bus_.write(offset + 4 * i, word);
    }
    bus_.write(offset, in_both(kConfirm));
    return end_operation(offset);
  }

  // Give up a buffer that came late. The chip waits for words, and would take the next command for
  // their number. It gets a word and no confirmation, which it reports as an error; one that is
  // busy ignores Read Array.
  void give_up_buffer(std::uint32_t offset) {
    const std::uint32_t status = status_when_ready(offset);
    const std::uint16_t values[] = {0, 0xffff, kReadArray};
    for (const std::uint16_t value : values) {
      const std::uint32_t low = status & kReady ? value : kReadArray;
      const std::uint32_t high = status >> 16 & kReady ? value : kReadArray;
      bus_.write(offset, high << 16 | low);
    }
    end_operation(offset);
  }

  // Return the status registers, which reads return from an operation's first command on. A chip
  // that does not get ready is broken.
  std::uint32_t status_when_ready(std::uint32_t offset) {
    std::uint32_t status = 0;
    for (std::uint32_t i = 0; i < Bus::kMaxPolls && !is_ready(status); i++) {
      status = bus_.read(offset);
    }
    return status;
  }
  static bool is_ready(std::uint32_t status) {
    return (status & in_both(kReady)) == in_both(kReady);
  }

  // End an operation; return whether it succeeded. Errors stay in the register until they are
  // cleared, which makes them this operation's. A chip that is busy takes no command.
  bool end_operation(std::uint32_t offset) {
    const std::uint32_t status = status_when_ready(offset);
    if (is_ready(status)) bus_.write(offset, in_both(kClearStatusRegister));
    bus_.write(offset, in_both(kReadArray));
    return is_ready(status) && (status & in_both(kErrors)) == 0;
  }

  Bus bus_;
};

}  // namespace rlt
