// Two slots for policy images on a board, and which of them acts: an image is staged, checked,
// tried until a deadline, and confirmed or dropped. The last good one stays until its successor is
// confirmed: after a power cut at any moment, the old or the new policy acts, whole.
// docs/policy_slots.md has every byte and the table of states. No allocation, no recursion, no
// lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rltools/core/crc32.h"
#include "rltools/policy/storage.h"

namespace rlt {

// Content of the slot that is not active.
enum class Candidate : std::uint8_t {
  none,      // nothing that counts
  staged,    // a whole image that was checked; it has not acted
  trial,     // it acts, until it is confirmed or dropped
  previous,  // the one that acted before the active one was confirmed
};

// Why a candidate was dropped, last of all.
enum class DropReason : std::uint8_t {
  none,
  deadline,     // it was not confirmed in time
  reset,        // the board was reset, or lost power, during the trial
  fault,        // it gave an output that is not finite
  refused,      // the image did not pass the check when the board started
  rolled_back,  // the host asked for the one before
  replaced,     // there is one slot only, and another image takes it
};

enum class SlotError : std::uint8_t {
  none,
  too_large,      // the image exceeds a slot
  in_trial,       // a trial is under way
  not_in_order,   // bytes are missing before these
  not_staged,     // there is no image to try
  no_trial,       // there is no trial to confirm
  no_previous,    // there is nothing to roll back to
  incomplete,     // there are no bytes of an image
  storage_failed  // it reported a failure, or reads back other bytes
};

// An image in its slot. It stays as it is while it is active or in trial.
struct SlotImage {
  const std::uint8_t* data;  // null where there is none
  std::uint32_t bytes;
};

// The present state as it stands in the storage, one after another in two blocks; the valid one
// with the highest number counts.
struct SlotRecord {
  static constexpr std::uint32_t kMagic = 0x31534c52u;  // "RLS1"
  std::uint32_t magic;
  std::uint32_t number;
  std::uint8_t active;  // slot, or kNoSlot
  Candidate candidate;
  DropReason last_drop;
  std::uint8_t reserved;
  std::uint32_t bytes[2];  // of the image in each slot
  std::uint32_t crc32[2];
  std::uint32_t checksum;  // CRC-32 of what is before
};
static_assert(sizeof(SlotRecord) == 32, "docs/policy_slots.md gives the record's bytes");

// With one slot, where memory is scarce, the active image makes room for the next one: meanwhile
// there is none, and a firmware's built-in policy acts (deployment.h).
template <class Storage, int SlotCount = 2>
class PolicySlots {
  static_assert(SlotCount == 1 || SlotCount == 2, "there are one or two slots for policies");

 public:
  static constexpr std::uint8_t kNoSlot = 0xff;
  // Longest trial: times are compared by the sign of their difference.
  static constexpr std::uint32_t kLongestTrial_us = 0x7fffffffu;

  explicit PolicySlots(Storage& memory) : storage_(memory) {}
  PolicySlots(const PolicySlots&) = delete;
  PolicySlots& operator=(const PolicySlots&) = delete;

  // Find the state after a reset, and drop a candidate whose trial the reset has ended. Return
  // false where the storage fails; the state is right even so.
  bool begin() {
    static_assert(sizeof(SlotRecord) % Storage::kProgramBytes == 0,
                  "a record is programmed in whole units: kProgramBytes must divide 32");
    static_assert(Storage::kEraseBytes % sizeof(SlotRecord) == 0,
                  "a block holds whole records: kEraseBytes must be a multiple of 32");
    find_record();
    if (record_.candidate == Candidate::trial) return drop(DropReason::reset);
    if (record_.candidate != Candidate::none && !is_whole(other_slot())) {
      record_.candidate = Candidate::none;
    }
    if (record_.active == kNoSlot || is_whole(record_.active)) return true;
    return give_up_active(DropReason::refused) == SlotError::none;
  }

  std::uint32_t slot_bytes() const {
    const std::uint32_t blocks = storage_.size() / Storage::kEraseBytes;
    return blocks < 2 ? 0 : (blocks - 2) / SlotCount * Storage::kEraseBytes;
  }
  SlotImage active() const { return image(record_.active); }
  // Return the staged image, the one in trial, or the previous one.
  SlotImage candidate() const {
    return record_.candidate == Candidate::none ? SlotImage{nullptr, 0} : image(other_slot());
  }
  Candidate candidate_state() const { return record_.candidate; }
  DropReason last_drop() const { return record_.last_drop; }
  std::uint8_t active_slot() const { return record_.active; }
  // Return the slot of the candidate, and of what is staged next.
  std::uint8_t other_slot() const { return SlotCount == 2 && record_.active == 0 ? 1 : 0; }
  // Return the image that acts: that in trial, or the active one.
  SlotImage acting() const {
    return record_.candidate == Candidate::trial ? candidate() : active();
  }

  // -- staging ------------------------------------------------------------------------------------

  // Start again with an image; what was in the other slot is given up.
  SlotError stage() {
    if (record_.candidate == Candidate::trial) return SlotError::in_trial;
    if (SlotCount == 1 && record_.active != kNoSlot) {
      if (give_up_active(DropReason::replaced) != SlotError::none) return SlotError::storage_failed;
    }
    if (record_.candidate != Candidate::none) {
      SlotRecord next = record_;
      next.candidate = Candidate::none;
      if (!append(next)) return SlotError::storage_failed;
    }
    is_staging_ = true;
    received_ = 0;
    sum_ = 0;
    return SlotError::none;
  }

  // Write the bytes [offset, offset + count) of the image. Bytes that came before are compared;
  // those that skip some are refused.
  SlotError write(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    if (!is_staging_ || offset > received_) return SlotError::not_in_order;
    if (count > slot_bytes() - offset) return SlotError::too_large;
    for (std::uint32_t i = 0; i < count; i++) {
      if (offset + i < received_) {
        if (byte_at(offset + i) != source[i]) return SlotError::not_in_order;
      } else if (!append_byte(source[i])) {
        is_staging_ = false;
        return SlotError::storage_failed;
      }
    }
    return SlotError::none;
  }

  bool is_staging() const { return is_staging_; }
  std::uint32_t received() const { return received_; }

  // Finish the image, as all bytes are there: they are compared with what the storage reads back.
  // `accept` is called with the image (data, bytes) and checks it: false leaves it unstaged.
  template <class Accept>
  SlotError finish(Accept&& accept) {
    if (!is_staging_ || received_ == 0) return SlotError::incomplete;
    is_staging_ = false;
    if (!flush()) return SlotError::storage_failed;
    const std::uint8_t slot = other_slot();
    SlotRecord next = record_;
    next.bytes[slot] = received_;
    next.crc32[slot] = sum_;
    const std::uint8_t* data = storage_.data() + slot_begin(slot);
    if (crc32(data, next.bytes[slot]) != sum_) return SlotError::storage_failed;
    if (!accept(data, next.bytes[slot])) return SlotError::none;
    next.candidate = Candidate::staged;
    return append(next) ? SlotError::none : SlotError::storage_failed;
  }

  // -- trial --------------------------------------------------------------------------------------

  // Let the staged image act from now on, for at most `trial_us` (up to kLongestTrial_us).
  SlotError start_trial(std::uint32_t now_us, std::uint32_t trial_us) {
    if (record_.candidate == Candidate::trial) return SlotError::in_trial;
    if (record_.candidate != Candidate::staged) return SlotError::not_staged;
    SlotRecord next = record_;
    next.candidate = Candidate::trial;
    if (!append(next)) return SlotError::storage_failed;
    deadline_us_ = now_us + (trial_us < kLongestTrial_us ? trial_us : kLongestTrial_us);
    return SlotError::none;
  }

  // Time that is left of the trial; 0 where there is none.
  std::uint32_t trial_left_us(std::uint32_t now_us) const {
    if (record_.candidate != Candidate::trial || is_over(now_us)) return 0;
    return deadline_us_ - now_us;
  }

  // Drop the candidate when its time is over; true then. To be called at least every half hour.
  bool poll(std::uint32_t now_us) {
    if (record_.candidate != Candidate::trial || !is_over(now_us)) return false;
    drop(DropReason::deadline);
    return true;
  }

  // Make the candidate in trial the active policy, and the active one the previous.
  SlotError confirm(std::uint32_t now_us) {
    poll(now_us);
    if (record_.candidate != Candidate::trial) return SlotError::no_trial;
    SlotRecord next = record_;
    next.active = other_slot();
    next.candidate =
        SlotCount == 1 || record_.active == kNoSlot ? Candidate::none : Candidate::previous;
    return append(next) ? SlotError::none : SlotError::storage_failed;
  }

  // End a trial, or give a staged image up. The state is right even where the storage fails
  // (false): then a reset drops it again, unless write_down() succeeds before.
  bool drop(DropReason reason) {
    if (record_.candidate != Candidate::trial && record_.candidate != Candidate::staged)
      return true;
    SlotRecord next = record_;
    next.candidate = Candidate::none;
    next.last_drop = reason;
    return enforce(next);
  }

  // End a trial; else the policy before the active one becomes active again, and the active one is
  // given up.
  SlotError roll_back() {
    if (record_.candidate == Candidate::trial) {
      return drop(DropReason::rolled_back) ? SlotError::none : SlotError::storage_failed;
    }
    if (record_.candidate != Candidate::previous) return SlotError::no_previous;
    return give_up_active(DropReason::rolled_back);
  }

  // Give up the active image, which does not pass the check any more, or is not wanted: the
  // previous one becomes active, or none. As with drop(), the state is right even where the storage
  // fails.
  SlotError give_up_active(DropReason reason) {
    SlotRecord next = record_;
    next.active = record_.candidate == Candidate::previous ? other_slot() : kNoSlot;
    // A staged image, or one that is coming, is given up as well: its slot is another one where
    // none is active.
    next.candidate = Candidate::none;
    is_staging_ = false;
    next.last_drop = reason;
    return enforce(next) ? SlotError::none : SlotError::storage_failed;
  }

  // Write the record of the current state where that could not be done when the state changed;
  // return false where it cannot be now either.
  bool write_down() { return is_written_ || append(record_); }

 private:
  static constexpr std::uint32_t kBlockRecords =
      Storage::kEraseBytes / static_cast<std::uint32_t>(sizeof(SlotRecord));

  // -- images -------------------------------------------------------------------------------------

  std::uint32_t slot_begin(std::uint8_t slot) const {
    return 2 * Storage::kEraseBytes + slot * slot_bytes();
  }
  SlotImage image(std::uint8_t slot) const {
    if (slot == kNoSlot) return {nullptr, 0};
    return {storage_.data() + slot_begin(slot), record_.bytes[slot]};
  }
  bool is_whole(std::uint8_t slot) const {
    return record_.bytes[slot] <= slot_bytes() &&
           crc32(storage_.data() + slot_begin(slot), record_.bytes[slot]) == record_.crc32[slot];
  }
  bool is_over(std::uint32_t now_us) const {
    return static_cast<std::int32_t>(now_us - deadline_us_) >= 0;
  }

  // -- bytes of an image, collected to what can be programmed at once -----------------------------

  // Return one of the bytes received.
  std::uint8_t byte_at(std::uint32_t offset) const {
    const std::uint32_t programmed = received_ - received_ % Storage::kProgramBytes;
    return offset < programmed ? storage_.data()[slot_begin(other_slot()) + offset]
                               : unit_[offset % Storage::kProgramBytes];
  }
  bool append_byte(std::uint8_t byte) {
    unit_[received_ % Storage::kProgramBytes] = byte;
    sum_ = crc32(&byte, 1, sum_);
    received_++;
    return received_ % Storage::kProgramBytes != 0 || program_unit(received_);
  }
  // Program the last unit, filled up.
  bool flush() {
    const std::uint32_t left = received_ % Storage::kProgramBytes;
    if (left == 0) return true;
    for (std::uint32_t i = left; i < Storage::kProgramBytes; i++) unit_[i] = 0xff;
    return program_unit(received_ - left + Storage::kProgramBytes);
  }
  // Program the unit that ends before `end`; the first one of a block erases it.
  bool program_unit(std::uint32_t end) {
    const std::uint32_t offset = slot_begin(other_slot()) + end - Storage::kProgramBytes;
    if (offset % Storage::kEraseBytes == 0 && !storage_.erase(offset)) return false;
    return storage_.program(offset, unit_, Storage::kProgramBytes);
  }

  // -- records ------------------------------------------------------------------------------------

  static std::uint32_t checksum(const SlotRecord& record) {
    return crc32(reinterpret_cast<const std::uint8_t*>(&record), sizeof(record) - 4);
  }
  static std::uint32_t record_offset(std::uint32_t block, std::uint32_t index) {
    return block * Storage::kEraseBytes + index * static_cast<std::uint32_t>(sizeof(SlotRecord));
  }
  bool read_record(std::uint32_t block, std::uint32_t index, SlotRecord& record) const {
    __builtin_memcpy(&record, storage_.data() + record_offset(block, index), sizeof(record));
    const bool slots_exist = record.active == kNoSlot || record.active < SlotCount;
    return record.magic == SlotRecord::kMagic && record.checksum == checksum(record) &&
           slots_exist && record.candidate <= Candidate::previous;
  }
  bool is_erased(std::uint32_t block, std::uint32_t index) const {
    const std::uint8_t* bytes = storage_.data() + record_offset(block, index);
    std::uint8_t all = 0xff;
    for (std::size_t i = 0; i < sizeof(SlotRecord); i++) all = all & bytes[i];
    return all == 0xff;
  }

  void find_record() {
    record_ = {SlotRecord::kMagic, 0, kNoSlot, Candidate::none, DropReason::none, 0, {}, {}, 0};
    present_block_ = 1;  // where there is none, the first is written to block 0
    for (std::uint32_t block = 0; block < 2; block++) {
      for (std::uint32_t index = 0; index < kBlockRecords; index++) {
        SlotRecord record;
        if (!read_record(block, index, record) || record.number <= record_.number) continue;
        record_ = record;
        present_block_ = block;
      }
    }
    last_number_ = record_.number;
    block_ = present_block_;
    next_ = kBlockRecords;
    if (record_.number == 0) return;
    while (next_ > 0 && is_erased(block_, next_ - 1)) next_--;
  }

  // Make `next` the state, even where it cannot be written down (false).
  bool enforce(const SlotRecord& next) {
    if (append(next)) return true;
    record_ = next;
    is_written_ = false;
    return false;
  }

  // Make `next` the state when its record reads back right. The block with the present record is
  // never erased; what a failure of the power has left behind it is passed over. A number is given
  // once: a record whose programming was reported as failed may be whole all the same, and counts
  // no more when another one has been written.
  bool append(SlotRecord next) {
    next.number = ++last_number_;
    next.checksum = checksum(next);
    if (next_ == kBlockRecords) {
      block_ = 1 - present_block_;
      if (!storage_.erase(record_offset(block_, 0))) return false;
      next_ = 0;
    }
    const std::uint32_t offset = record_offset(block_, next_++);
    std::uint8_t bytes[sizeof(SlotRecord)];
    __builtin_memcpy(bytes, &next, sizeof(next));
    if (!storage_.program(offset, bytes, sizeof(bytes)) ||
        __builtin_memcmp(storage_.data() + offset, bytes, sizeof(bytes)) != 0) {
      return false;
    }
    record_ = next;
    present_block_ = block_;
    is_written_ = true;
    return true;
  }

  Storage& storage_;
  SlotRecord record_{};
  std::uint32_t last_number_ = 0;         // of all records that were programmed
  std::uint32_t present_block_ = 0;       // with the present record
  std::uint32_t block_ = 0, next_ = 0;    // where the next one goes
  std::uint32_t received_ = 0, sum_ = 0;  // of the image that is being staged, and their CRC-32
  std::uint32_t deadline_us_ = 0;
  bool is_staging_ = false;
  bool is_written_ = true;                          // the present state is that of a record
  std::uint8_t unit_[Storage::kProgramBytes] = {};  // bytes that are not programmed yet
};

}  // namespace rlt
