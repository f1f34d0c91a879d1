// Slots for policies: the states, and a power cut at every byte that is programmed or erased.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "flash_model.h"
#include "rltools/policy/slots.h"

using namespace rlt;
using namespace flash_model;

namespace {

using Bytes = std::vector<std::uint8_t>;
using SmallFlash = Flash<64, 4>;  // two records in a block
using Slots = PolicySlots<SmallFlash>;
constexpr std::uint32_t kBlocks = 2 + 2 * 4;
constexpr std::uint32_t kTrial_us = 1000;

Bytes image_of(std::uint32_t name, std::uint32_t bytes = 201) {
  Bytes image(bytes);
  for (std::uint32_t i = 0; i < bytes; i++)
    image[i] = static_cast<std::uint8_t>(name * 37 + i * 11);
  return image;
}

bool is(SlotImage slot, const Bytes& image) {
  return slot.data != nullptr && slot.bytes == image.size() &&
         std::equal(image.begin(), image.end(), slot.data);
}
bool is_none(SlotImage slot) { return slot.data == nullptr; }

const auto kAccept = [](const std::uint8_t*, std::uint32_t) { return true; };

template <class AnySlots>
SlotError send(AnySlots& slots, const Bytes& image, std::uint32_t part = 23) {
  const auto bytes = static_cast<std::uint32_t>(image.size());
  SlotError error = slots.stage();
  for (std::uint32_t i = 0; i < bytes && error == SlotError::none; i += part) {
    error = slots.write(i, image.data() + i, std::min(part, bytes - i));
  }
  return error == SlotError::none ? slots.finish(kAccept) : error;
}

// Outside of a check, where a power cut may pass through.
template <class AnySlots>
bool pushes(AnySlots& slots, const Bytes& image) {
  return send(slots, image) == SlotError::none &&
         slots.start_trial(0, kTrial_us) == SlotError::none && slots.confirm(10) == SlotError::none;
}

template <class AnySlots>
void push(AnySlots& slots, const Bytes& image) {
  REQUIRE(pushes(slots, image));
}

}  // namespace

TEST_CASE("an unwritten storage has no policy") {
  SmallFlash flash(kBlocks);
  Slots slots(flash);
  CHECK(slots.begin());
  CHECK(is_none(slots.active()));
  CHECK(is_none(slots.acting()));
  CHECK(slots.candidate_state() == Candidate::none);
  CHECK(slots.slot_bytes() == 4 * 64);
  CHECK(slots.roll_back() == SlotError::no_previous);
  CHECK(slots.confirm(0) == SlotError::no_trial);
  CHECK(slots.start_trial(0, 1) == SlotError::not_staged);
  CHECK(flash.changed_bytes() == 0);
}

TEST_CASE("an image is staged, tried, confirmed, and rolled back") {
  SmallFlash flash(kBlocks);
  Slots slots(flash);
  slots.begin();
  const Bytes first = image_of(1), second = image_of(2, 256);
  REQUIRE(send(slots, first) == SlotError::none);
  CHECK(slots.candidate_state() == Candidate::staged);
  CHECK(is(slots.candidate(), first));
  CHECK(is_none(slots.acting()));
  REQUIRE(slots.start_trial(100, kTrial_us) == SlotError::none);
  CHECK(is(slots.acting(), first));
  CHECK(slots.trial_left_us(400) == 700);
  CHECK(slots.start_trial(100, kTrial_us) == SlotError::in_trial);
  CHECK(slots.stage() == SlotError::in_trial);
  REQUIRE(slots.confirm(500) == SlotError::none);
  CHECK(is(slots.active(), first));
  CHECK(slots.candidate_state() == Candidate::none);

  push(slots, second);
  CHECK(is(slots.active(), second));
  CHECK(slots.candidate_state() == Candidate::previous);
  CHECK(is(slots.candidate(), first));
  REQUIRE(slots.roll_back() == SlotError::none);
  CHECK(is(slots.active(), first));
  CHECK(slots.last_drop() == DropReason::rolled_back);
  CHECK(slots.candidate_state() == Candidate::none);
  CHECK(slots.roll_back() == SlotError::no_previous);

  Slots restarted(flash);
  CHECK(restarted.begin());
  CHECK(is(restarted.active(), first));
}

TEST_CASE("where the active image is given up, one that is coming is as well") {
  SmallFlash flash(kBlocks);
  Slots slots(flash);
  slots.begin();
  const Bytes first = image_of(1), second = image_of(2);
  push(slots, first);
  REQUIRE(slots.stage() == SlotError::none);
  REQUIRE(slots.write(0, second.data(), 100) == SlotError::none);
  REQUIRE(slots.give_up_active(DropReason::rolled_back) == SlotError::none);
  CHECK_FALSE(slots.is_staging());
  CHECK(slots.write(100, second.data() + 100, 101) == SlotError::not_in_order);
  CHECK(slots.finish(kAccept) == SlotError::incomplete);
  CHECK(is_none(slots.acting()));
  push(slots, second);
  CHECK(is(slots.active(), second));
}

TEST_CASE("a trial ends at its deadline, over a wrap of the clock") {
  SmallFlash flash(kBlocks);
  Slots slots(flash);
  slots.begin();
  const Bytes first = image_of(1), second = image_of(2);
  push(slots, first);
  const std::uint32_t begin = 0xfffffe00u;
  REQUIRE(send(slots, second) == SlotError::none);
  REQUIRE(slots.start_trial(begin, kTrial_us) == SlotError::none);
  CHECK_FALSE(slots.poll(begin + 1));  // before the wrap, and after it
  CHECK_FALSE(slots.poll(begin + kTrial_us - 1));
  CHECK(is(slots.acting(), second));
  CHECK(slots.trial_left_us(begin + kTrial_us - 1) == 1);
  CHECK(slots.poll(begin + kTrial_us));
  CHECK(is(slots.acting(), first));
  CHECK(slots.last_drop() == DropReason::deadline);
  CHECK(slots.confirm(begin + kTrial_us) == SlotError::no_trial);
  // A confirmation that comes too late drops the candidate by itself.
  REQUIRE(send(slots, second) == SlotError::none);
  REQUIRE(slots.start_trial(0, kTrial_us) == SlotError::none);
  CHECK(slots.confirm(kTrial_us) == SlotError::no_trial);
  CHECK(is(slots.acting(), first));
  // The longest trial.
  REQUIRE(send(slots, second) == SlotError::none);
  REQUIRE(slots.start_trial(7, 0xffffffffu) == SlotError::none);
  CHECK_FALSE(slots.poll(7 + Slots::kLongestTrial_us - 1));
  CHECK(slots.poll(7 + Slots::kLongestTrial_us));
}

TEST_CASE("a reset during a trial drops the candidate; one after staging keeps it") {
  SmallFlash flash(kBlocks);
  const Bytes first = image_of(1), second = image_of(2);
  {
    Slots slots(flash);
    slots.begin();
    push(slots, first);
    REQUIRE(send(slots, second) == SlotError::none);
  }
  {
    Slots slots(flash);
    slots.begin();
    CHECK(slots.candidate_state() == Candidate::staged);
    CHECK(is(slots.acting(), first));
    REQUIRE(slots.start_trial(0, kTrial_us) == SlotError::none);
    CHECK(is(slots.acting(), second));
  }
  Slots slots(flash);
  CHECK(slots.begin());
  CHECK(slots.last_drop() == DropReason::reset);
  CHECK(slots.candidate_state() == Candidate::none);
  CHECK(is(slots.acting(), first));
  CHECK(is(slots.active(), first));
}

TEST_CASE("a state that the storage did not take when it changed is written down later") {
  SmallFlash flash(kBlocks);
  const Bytes first = image_of(1), second = image_of(2);
  // At each place of the two blocks: where a record needs an erasure, too.
  for (int before = 0; before < 4; before++) {
    Slots slots(flash);
    slots.begin();
    for (int i = 0; i <= before; i++) push(slots, first);
    REQUIRE(send(slots, second) == SlotError::none);
    REQUIRE(slots.start_trial(0, kTrial_us) == SlotError::none);
    CHECK(slots.write_down());  // it is written
    flash.fail(true);
    CHECK(slots.poll(kTrial_us));
    CHECK(is(slots.acting(), first));
    CHECK_FALSE(slots.write_down());
    flash.fail(false);
    const std::uint64_t changed = flash.changed_bytes();
    CHECK(slots.write_down());
    CHECK(flash.changed_bytes() > changed);
    Slots restarted(flash);
    CHECK(restarted.begin());
    CHECK(is(restarted.acting(), first));
    CHECK(restarted.last_drop() == DropReason::deadline);
  }
}

TEST_CASE("what is being overwritten counts no more") {
  SmallFlash flash(kBlocks);
  Slots slots(flash);
  slots.begin();
  push(slots, image_of(1));
  push(slots, image_of(2));
  REQUIRE(slots.candidate_state() == Candidate::previous);
  REQUIRE(slots.stage() == SlotError::none);
  CHECK(slots.candidate_state() == Candidate::none);
  CHECK(slots.roll_back() == SlotError::no_previous);
  CHECK(is(slots.acting(), image_of(2)));
}

TEST_CASE("a candidate that is damaged counts no more after a reset") {
  for (const bool is_staged : {true, false}) {
    SmallFlash flash(kBlocks);
    Slots slots(flash);
    slots.begin();
    push(slots, image_of(1));
    if (is_staged) REQUIRE(send(slots, image_of(2)) == SlotError::none);
    if (!is_staged) push(slots, image_of(2));
    flash.bytes()[2 * 64 + slots.other_slot() * 4 * 64 + 100] ^= 1;
    Slots restarted(flash);
    restarted.begin();
    CHECK(restarted.candidate_state() == Candidate::none);
    CHECK(is(restarted.acting(), image_of(is_staged ? 1 : 2)));
  }
}

TEST_CASE("a record of another version counts for nothing") {
  SmallFlash flash(kBlocks);
  {
    Slots slots(flash);
    slots.begin();
    push(slots, image_of(1));
  }
  for (std::uint32_t offset = 0; offset < 2 * 64; offset += sizeof(SlotRecord)) {
    SlotRecord record;
    std::memcpy(&record, flash.data() + offset, sizeof(record));
    record.magic++;
    record.checksum = crc32(&record, sizeof(record) - 4);
    std::memcpy(flash.bytes() + offset, &record, sizeof(record));
  }
  Slots slots(flash);
  slots.begin();
  CHECK(is_none(slots.acting()));
}

TEST_CASE("bytes come in order; repeated ones are compared") {
  SmallFlash flash(kBlocks);
  Slots slots(flash);
  slots.begin();
  const Bytes image = image_of(3, 50);
  CHECK(slots.write(0, image.data(), 1) == SlotError::not_in_order);
  CHECK(slots.finish(kAccept) == SlotError::incomplete);
  REQUIRE(slots.stage() == SlotError::none);
  CHECK(slots.write(1, image.data() + 1, 5) == SlotError::not_in_order);
  REQUIRE(slots.write(0, image.data(), 21) == SlotError::none);
  CHECK(slots.write(0, image.data(), 21) == SlotError::none);
  CHECK(slots.write(10, image.data() + 10, 20) == SlotError::none);
  CHECK(slots.received() == 30);
  Bytes other = image;
  other[29] ^= 1;  // not programmed yet
  CHECK(slots.write(25, other.data() + 25, 10) == SlotError::not_in_order);
  other = image;
  other[0] ^= 1;
  CHECK(slots.write(0, other.data(), 10) == SlotError::not_in_order);
  const Bytes rest(slots.slot_bytes() - 30 + 1);
  CHECK(slots.write(30, rest.data(), slots.slot_bytes() - 30 + 1) == SlotError::too_large);
  CHECK(slots.write(0xffffffffu, rest.data(), 2) == SlotError::not_in_order);
  REQUIRE(slots.write(30, image.data() + 30, 20) == SlotError::none);
  REQUIRE(slots.finish(kAccept) == SlotError::none);
  CHECK(slots.write(50, image.data(), 1) == SlotError::not_in_order);
  CHECK(slots.finish(kAccept) == SlotError::incomplete);
  CHECK(slots.candidate_state() == Candidate::staged);
  CHECK(is(slots.candidate(), image));
}

TEST_CASE("an image that the check refuses, or that reads back otherwise, is not staged") {
  SmallFlash flash(kBlocks);
  Slots slots(flash);
  slots.begin();
  const Bytes first = image_of(1), second = image_of(2);
  push(slots, first);
  REQUIRE(slots.stage() == SlotError::none);
  REQUIRE(slots.write(0, second.data(), 201) == SlotError::none);
  bool was_asked = false;
  CHECK(slots.finish([&](const std::uint8_t* data, std::uint32_t bytes) {
    was_asked = bytes == 201 && std::equal(second.begin(), second.end(), data);
    return false;
  }) == SlotError::none);
  CHECK(was_asked);
  CHECK(slots.candidate_state() == Candidate::none);
  CHECK(slots.start_trial(0, 1) == SlotError::not_staged);

  REQUIRE(slots.stage() == SlotError::none);
  REQUIRE(slots.write(0, second.data(), 201) == SlotError::none);
  flash.bytes()[2 * 64 + slots.other_slot() * 4 * 64 + 7] ^= 0x10;
  CHECK(slots.finish(kAccept) == SlotError::storage_failed);
  CHECK(slots.candidate_state() == Candidate::none);
  CHECK(is(slots.active(), first));
}

TEST_CASE("a single flipped bit of the active image makes the previous one act, or none") {
  const Bytes first = image_of(1), second = image_of(2);
  for (std::uint32_t bit = 0; bit < 201 * 8; bit++) {
    SmallFlash flash(kBlocks);
    {
      Slots slots(flash);
      slots.begin();
      push(slots, first);
      push(slots, second);
    }
    const std::uint32_t slot = 2 * 64 + 1 * 4 * 64;  // the second image is in slot 1
    flash.bytes()[slot + bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    Slots slots(flash);
    slots.begin();
    REQUIRE(is(slots.acting(), first));
    REQUIRE(slots.last_drop() == DropReason::refused);
    flash.bytes()[2 * 64] ^= 1;
    Slots again(flash);
    again.begin();
    REQUIRE(is_none(again.acting()));
  }
}

TEST_CASE("a storage that fails leaves the policy that acts") {
  SmallFlash flash(kBlocks);
  Slots slots(flash);
  slots.begin();
  const Bytes first = image_of(1), second = image_of(2);
  push(slots, first);
  REQUIRE(send(slots, second) == SlotError::none);
  flash.fail(true);
  CHECK(slots.start_trial(0, kTrial_us) == SlotError::storage_failed);
  CHECK(is(slots.acting(), first));
  flash.fail(false);
  REQUIRE(slots.start_trial(0, kTrial_us) == SlotError::none);
  flash.fail(true);
  CHECK(slots.confirm(1) == SlotError::storage_failed);
  CHECK(is(slots.acting(), second));  // in trial still
  // The deadline holds even where it cannot be written down.
  CHECK(slots.poll(kTrial_us));
  CHECK(is(slots.acting(), first));
  CHECK(send(slots, second) == SlotError::storage_failed);
  flash.fail(false);
  Slots restarted(flash);
  restarted.begin();
  CHECK(is(restarted.acting(), first));
  CHECK(restarted.last_drop() == DropReason::reset);
}

namespace {

// Reports a failure of what it has done, as a disk whose cache could not be written down.
struct Doubtful : RamStorage<10 * 256> {
  bool fails = false;
  bool program(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    return RamStorage::program(offset, source, count) && !fails;
  }
};

}  // namespace

TEST_CASE("a record that was reported as failed counts no more when another was written") {
  for (int before = 0; before < 20; before++) {  // at every place of its block
    CAPTURE(before);
    Doubtful storage;
    PolicySlots<Doubtful> slots(storage);
    slots.begin();
    const Bytes first = image_of(1), second = image_of(2);
    push(slots, first);
    for (int i = 0; i < before; i++) {
      REQUIRE(send(slots, second) == SlotError::none);
      REQUIRE(slots.drop(DropReason::rolled_back));
    }
    REQUIRE(send(slots, second) == SlotError::none);
    REQUIRE(slots.start_trial(0, kTrial_us) == SlotError::none);
    storage.fails = true;
    CHECK(slots.confirm(1) == SlotError::storage_failed);
    storage.fails = false;
    REQUIRE(slots.poll(kTrial_us));
    REQUIRE(is(slots.acting(), first));
    PolicySlots<Doubtful> restarted(storage);
    REQUIRE(restarted.begin());
    REQUIRE(is(restarted.acting(), first));
    REQUIRE(restarted.last_drop() == DropReason::deadline);
  }
}

TEST_CASE("what was written down is not written again") {
  SmallFlash flash(kBlocks);
  Slots slots(flash);
  slots.begin();
  REQUIRE(send(slots, image_of(1)) == SlotError::none);
  flash.fail(true);
  CHECK_FALSE(slots.drop(DropReason::rolled_back));
  CHECK_FALSE(slots.write_down());
  flash.fail(false);
  CHECK(slots.write_down());
  const std::uint64_t changed = flash.changed_bytes();
  CHECK(slots.write_down());
  CHECK(flash.changed_bytes() == changed);
}

TEST_CASE("after a restart records go on in the block of the last one") {
  SmallFlash flash(kBlocks);
  Slots slots(flash);
  slots.begin();
  REQUIRE(send(slots, image_of(1)) == SlotError::none);  // the first record of two in a block
  Slots restarted(flash);
  restarted.begin();
  const std::uint64_t before = flash.changed_bytes();
  REQUIRE(restarted.start_trial(0, kTrial_us) == SlotError::none);
  CHECK(flash.changed_bytes() == before + sizeof(SlotRecord));
  Slots full(flash);
  full.begin();
  REQUIRE(full.drop(DropReason::rolled_back));
  CHECK(flash.changed_bytes() == before + 64 + 2 * sizeof(SlotRecord));
}

TEST_CASE("a record that reads back right and was reported as failed changes no state") {
  Doubtful storage;
  PolicySlots<Doubtful> slots(storage);
  slots.begin();
  REQUIRE(send(slots, image_of(1)) == SlotError::none);
  storage.fails = true;
  CHECK(slots.start_trial(0, kTrial_us) == SlotError::storage_failed);
  CHECK(slots.candidate_state() == Candidate::staged);
  CHECK(slots.stage() == SlotError::storage_failed);
  CHECK(slots.candidate_state() == Candidate::staged);
  CHECK_FALSE(slots.is_staging());
}

TEST_CASE("records that nobody has written count for nothing") {
  for (const int fill : {0x00, 0xff}) {
    SmallFlash flash(kBlocks);
    std::fill(flash.bytes(), flash.bytes() + flash.size(), static_cast<std::uint8_t>(fill));
    Slots slots(flash);
    slots.begin();
    CHECK(is_none(slots.acting()));
    push(slots, image_of(1));
    CHECK(is(slots.active(), image_of(1)));
  }
}

namespace {

// What a session does (true where all of it succeeded), and what may act after it has been cut.
struct Session {
  const char* name;
  bool (*run)(Slots&);
  std::vector<Bytes> may_act;
};

const Bytes kOld = image_of(1), kOlder = image_of(4), kNew = image_of(2, 256);

bool tries_too_long(Slots& slots) {
  return send(slots, kNew) == SlotError::none &&
         slots.start_trial(0, kTrial_us) == SlotError::none && slots.poll(kTrial_us);
}
bool pushes_twice(Slots& slots) { return pushes(slots, kNew) && pushes(slots, kNew); }
bool rolls_back(Slots& slots) { return slots.roll_back() == SlotError::none; }

const Session kSessions[] = {
    {"push", [](Slots& slots) { return pushes(slots, kNew); }, {kOld, kNew}},
    {"push twice", pushes_twice, {kOld, kNew}},
    {"push, and the trial ends", tries_too_long, {kOld}},
    {"roll back", rolls_back, {kOld, kOlder}},
    {"push and roll back",
     [](Slots& slots) { return pushes(slots, kNew) && rolls_back(slots); },
     {kOld, kNew}},
};

// A board that ran `before` sessions and has kOld active, kOlder previous.
SmallFlash prepared(int before) {
  SmallFlash flash(kBlocks);
  Slots slots(flash);
  slots.begin();
  for (int i = 0; i < before; i++) push(slots, image_of(10));
  push(slots, kOlder);
  push(slots, kOld);
  return flash;
}

bool acts_well(const Slots& slots, const std::vector<Bytes>& may_act) {
  return std::any_of(may_act.begin(), may_act.end(),
                     [&](const Bytes& image) { return is(slots.acting(), image); });
}

// Starts, and is cut as well; false where it was cut.
bool survives(SmallFlash& flash, std::uint64_t cut, Left left) {
  flash.cut_after(cut, left);
  try {
    Slots slots(flash);
    slots.begin();
  } catch (const PowerCut&) {
    return false;
  }
  return true;
}

}  // namespace

TEST_CASE("the power may fail at every byte that is programmed or erased, in recovery too") {
  long cuts = 0;
  for (const Session& session : kSessions) {
    const std::string name = session.name;
    CAPTURE(name);
    for (const Left left : {Left::prefix, Left::garbage}) {
      for (int before = 0; before < 4; before++) {  // records begin at each place of the two blocks
        const SmallFlash start = prepared(before);
        for (std::uint64_t cut = 0;; cut++) {
          SmallFlash flash = start;
          flash.cut_after(cut, left);
          bool was_cut = false, succeeded = false;
          try {
            Slots slots(flash);
            slots.begin();
            succeeded = session.run(slots);
          } catch (const PowerCut&) {
            was_cut = true;
          }
          if (!was_cut) {
            REQUIRE(succeeded);
            break;
          }
          CAPTURE(cut);
          for (std::uint64_t again = 0;; again++) {
            SmallFlash recovering = flash;
            const bool whole = survives(recovering, again, left);
            recovering.cut_after(SmallFlash::kNever, left);
            Slots slots(recovering);
            slots.begin();
            cuts++;
            REQUIRE(acts_well(slots, session.may_act));
            REQUIRE(slots.candidate_state() != Candidate::trial);
            if (whole) {
              // And it can be pushed to as before.
              push(slots, kNew);
              REQUIRE(is(slots.acting(), kNew));
              break;
            }
          }
        }
      }
    }
  }
  MESSAGE(cuts << " cuts");
  CHECK(cuts > 10000);
}

TEST_CASE("after records that failed the power may fail at every byte of the next push") {
  long cuts = 0;
  for (int before = 0; before < 4; before++) {
    for (int failed = 1; failed < 4; failed++) {  // the last of them erases a block
      CAPTURE(failed);
      const SmallFlash start = prepared(before);
      for (std::uint64_t cut = 0;; cut++) {
        CAPTURE(cut);
        SmallFlash flash = start;
        bool was_cut = false;
        try {
          Slots slots(flash);
          slots.begin();
          flash.fail(true);
          for (int i = 0; i < failed; i++) REQUIRE(slots.stage() == SlotError::storage_failed);
          flash.fail(false);
          flash.cut_after(cut, Left::prefix);
          REQUIRE(pushes(slots, kNew));
        } catch (const PowerCut&) {
          was_cut = true;
        }
        flash.cut_after(SmallFlash::kNever, Left::prefix);
        Slots restarted(flash);
        restarted.begin();
        REQUIRE(acts_well(restarted, {kOld, kNew}));
        if (!was_cut) break;
        cuts++;
      }
    }
  }
  CHECK(cuts > 1000);
}

TEST_CASE("with one slot the active image makes room for the next one") {
  SmallFlash flash(2 + 4);
  const Bytes first = image_of(1), second = image_of(2, 256);
  {
    PolicySlots<SmallFlash, 1> slots(flash);
    slots.begin();
    CHECK(slots.slot_bytes() == 4 * 64);
    push(slots, first);
    CHECK(is(slots.active(), first));
    CHECK(slots.candidate_state() == Candidate::none);
    REQUIRE(slots.stage() == SlotError::none);
    CHECK(is_none(slots.acting()));
    CHECK(slots.last_drop() == DropReason::replaced);
  }
  PolicySlots<SmallFlash, 1> slots(flash);
  slots.begin();
  CHECK(is_none(slots.acting()));  // the first bytes of another image may be in its place
  push(slots, second);
  CHECK(is(slots.active(), second));
  REQUIRE(send(slots, first) == SlotError::none);
  REQUIRE(slots.start_trial(0, kTrial_us) == SlotError::none);
  CHECK(is(slots.acting(), first));
  CHECK(slots.poll(kTrial_us));
  CHECK(is_none(slots.acting()));
  // At every byte: one of the two, whole, or none.
  push(slots, first);
  const SmallFlash start = flash;
  for (std::uint64_t cut = 0;; cut++) {
    SmallFlash cut_flash = start;
    cut_flash.cut_after(cut, Left::garbage);
    bool was_cut = false;
    try {
      PolicySlots<SmallFlash, 1> cut_slots(cut_flash);
      cut_slots.begin();
      pushes(cut_slots, second);
    } catch (const PowerCut&) {
      was_cut = true;
    }
    if (!was_cut) break;
    cut_flash.cut_after(SmallFlash::kNever, Left::prefix);
    PolicySlots<SmallFlash, 1> restarted(cut_flash);
    restarted.begin();
    const SlotImage acting = restarted.acting();
    REQUIRE((is_none(acting) || is(acting, first) || is(acting, second)));
  }
}

TEST_CASE("units and blocks of other sizes") {
  const auto check = [](auto flash) {
    using Storage = decltype(flash);
    PolicySlots<Storage> slots(flash);
    slots.begin();
    for (std::uint32_t i = 0; i < 40; i++) {
      push(slots, image_of(i, 100 + i));
      PolicySlots<Storage> restarted(flash);
      restarted.begin();
      REQUIRE(is(restarted.acting(), image_of(i, 100 + i)));
    }
  };
  check(Flash<32, 1>(12));
  check(Flash<128, 32>(6));
  check(Flash<4096, 16>(4));
  check(RamStorage<2048>{});
}
