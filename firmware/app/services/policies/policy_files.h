// The files of a board's policies: /policy.rltp is the active image, /candidate.rltp the one that
// is staged, in trial, or was active before; it can be written where nothing is armed or in trial.
// /samples.u32 is the last measurement, /contract.bin what a policy must be made for.
// docs/protocol.md, "Policies".
#pragma once

#include "app/services/file_message.h"
#include "app/services/policies/contract_file.h"
#include "rltools/policy/slots.h"

namespace rlt {

// Owner must provide:
//   SlotImage active() const, candidate() const
//   std::uint32_t slot_bytes() const
//   bool can_stage() const
//   SlotError stage();  SlotError write(offset, source, count);  void staged(bool finished)
//   const std::uint32_t* samples() const;  std::uint32_t sample_count() const
//   ContractFile contract() const
template <class Owner>
class PolicyFiles {
 public:
  explicit PolicyFiles(Owner& owner) : owner_(owner) {}

  static constexpr int kFileCount = 4;
  static constexpr int kActive = 0, kCandidate = 1, kSamples = 2, kContract = 3;

  const char* name(int file) const {
    constexpr const char* kNames[] = {"policy.rltp", "candidate.rltp", "samples.u32",
                                      "contract.bin"};
    return kNames[file];
  }
  // Return the size of a file; of a candidate that is being written, the maximum that it may have.
  std::uint32_t size(int file) const {
    if (file == kContract) return owner_.contract().size();
    return file == kCandidate && is_writing_ ? owner_.slot_bytes() : content(file).bytes;
  }

  FileError may_read(int file) const {
    const bool is_there = file == kContract || content(file).data != nullptr;
    return is_there ? FileError::none : FileError::file_not_found;
  }

  FileError may_write(int file) const {
    if (file != kCandidate) return FileError::file_protected;
    return owner_.can_stage() ? FileError::none : FileError::fail_errno;
  }
  FileError open_to_write(int) {
    is_writing_ = owner_.stage() == SlotError::none;
    return is_writing_ ? FileError::none : FileError::fail;
  }

  void read(int file, std::uint32_t offset, std::uint8_t* destination, std::uint32_t count) const {
    if (file == kContract) return owner_.contract().read(offset, destination, count);
    const SlotImage source = content(file);
    // The image may have been given up since the file was opened.
    const bool is_there = source.data != nullptr && offset + count <= source.bytes;
    if (is_there) __builtin_memcpy(destination, source.data + offset, count);
    if (!is_there) __builtin_memset(destination, 0, count);
  }

  FileError write(int, std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    const SlotError error = owner_.write(offset, source, count);
    if (error == SlotError::none) return FileError::none;
    return error == SlotError::not_in_order ? FileError::unanswered : FileError::fail;
  }

  void close_written(int, bool finished) {
    is_writing_ = false;
    owner_.staged(finished);
  }

 private:
  SlotImage content(int file) const {
    if (file == kActive) return owner_.active();
    if (file == kCandidate) return owner_.candidate();
    const std::uint32_t count = owner_.sample_count();
    const auto* samples = reinterpret_cast<const std::uint8_t*>(owner_.samples());
    return {count == 0 ? nullptr : samples,
            count * static_cast<std::uint32_t>(sizeof(std::uint32_t))};
  }

  Owner& owner_;
  bool is_writing_ = false;
};

}  // namespace rlt
