// The driver of parallel flash, on a model of two chips: what it programs and erases, what it makes
// of their errors, and slots of policies while the power fails between any two bus cycles.
#include <doctest/doctest.h>

#include "cfi_flash_model.h"
#include "processors/cfi_flash.h"
#include "rltools/policy/slots.h"
#include "slot_push.h"

using namespace rlt;
using cfi_flash_model::Bus;
using cfi_flash_model::Flash;
using cfi_flash_model::PowerCut;

namespace {

using Driver = CfiFlash<Bus>;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kBlock = Driver::kEraseBytes, kUnit = Driver::kProgramBytes;

Bytes pattern(std::uint32_t count, std::uint32_t seed) {
  Bytes bytes(count);
  for (std::uint32_t i = 0; i < count; i++) {
    bytes[i] = static_cast<std::uint8_t>(seed * 91 + i * 7 + i / 32 * 13);
  }
  return bytes;
}

Bytes content(const Driver& driver, std::uint32_t offset, std::uint32_t count) {
  return Bytes(driver.data() + offset, driver.data() + offset + count);
}

struct Board {
  Flash flash;
  Driver driver{Bus{&flash}};
};

}  // namespace

TEST_CASE("a block is erased, and no other") {
  Board board;
  CHECK(board.driver.size() == 8 * kBlock);
  REQUIRE(board.driver.erase(2 * kBlock));
  CHECK(content(board.driver, 2 * kBlock, kBlock) == Bytes(kBlock, 0xff));
  CHECK(content(board.driver, 0, 2 * kBlock) == Bytes(2 * kBlock, 0x5a));
  CHECK(content(board.driver, 3 * kBlock, 5 * kBlock) == Bytes(5 * kBlock, 0x5a));
}

TEST_CASE("units are programmed at their place, in the bytes' order") {
  Board board;
  REQUIRE(board.driver.erase(kBlock));
  const Bytes image = pattern(3 * kUnit, 1);
  REQUIRE(board.driver.program(kBlock + kUnit, image.data(), 3 * kUnit));
  CHECK(content(board.driver, kBlock + kUnit, 3 * kUnit) == image);
  CHECK(content(board.driver, kBlock, kUnit) == Bytes(kUnit, 0xff));
  CHECK(content(board.driver, kBlock + 4 * kUnit, kUnit) == Bytes(kUnit, 0xff));
  const Bytes last = pattern(kUnit, 2);
  REQUIRE(board.driver.program(2 * kBlock - kUnit, last.data(), kUnit));
  CHECK(content(board.driver, 2 * kBlock - kUnit, kUnit) == last);
  CHECK(content(board.driver, kBlock + kUnit, 3 * kUnit) == image);
}

TEST_CASE("both chips are waited for") {
  for (const int slow : {0, 1}) {
    Board board;
    board.flash.chips[slow].operation_cycles = 30;
    REQUIRE(board.driver.erase(0));
    const Bytes unit = pattern(kUnit, 1);
    REQUIRE(board.driver.program(0, unit.data(), kUnit));
    CHECK(content(board.driver, 0, kUnit) == unit);
  }
}

TEST_CASE("an error of either chip is reported once, and the flash can be read") {
  for (const int chip : {0, 1}) {
    for (const std::uint16_t error : {0x20, 0x10, 0x08, 0x02}) {
      Board board;
      REQUIRE(board.driver.erase(0));
      const Bytes unit = pattern(kUnit, 1);
      if (error & cfi_flash_model::kEraseErrors) {
        board.flash.chips[chip].next_error = error;
        CHECK_FALSE(board.driver.erase(kBlock));
        CHECK(content(board.driver, 2 * kBlock, 1) == Bytes{0x5a});
        CHECK(board.driver.erase(kBlock));
      }
      if (error & cfi_flash_model::kProgramErrors) {
        board.flash.chips[chip].next_error = error;
        CHECK_FALSE(board.driver.program(0, unit.data(), kUnit));
        CHECK(content(board.driver, 0, 1)[0] != 0x5a);
        CHECK(board.driver.program(kUnit, unit.data(), kUnit));
        CHECK(content(board.driver, kUnit, kUnit) == unit);
      }
    }
  }
}

TEST_CASE("programming ends with the first unit that fails") {
  Board board;
  REQUIRE(board.driver.erase(0));
  const Bytes image = pattern(3 * kUnit, 1);
  board.flash.chips[1].next_error = 0x10;
  CHECK_FALSE(board.driver.program(0, image.data(), 3 * kUnit));
  CHECK(content(board.driver, kUnit, 2 * kUnit) == Bytes(2 * kUnit, 0xff));
}

TEST_CASE("a chip that stays busy is not waited for without end") {
  Board board;
  board.flash.chips[1].is_stuck = true;
  CHECK_FALSE(board.driver.erase(0));
  CHECK(board.flash.cycles < 60);
  CHECK(board.flash.chips[0].reads_array());
  const Bytes unit = pattern(kUnit, 1);
  board.flash.power_up(false);
  REQUIRE(board.driver.erase(0));
  CHECK(board.driver.program(0, unit.data(), kUnit));
}

TEST_CASE("a write buffer that is free late") {
  const Bytes unit = pattern(kUnit, 1), other = pattern(kUnit, 2);
  for (const int late : {0, 1}) {  // one of the chips, the other one, or both
    for (const bool is_other_late : {false, true}) {
      for (int cycles = 1; cycles <= 2 * static_cast<int>(Bus::kMaxPolls); cycles++) {
        CAPTURE(cycles);
        Board board;
        REQUIRE(board.driver.erase(0));
        board.flash.chips[late].buffer_cycles = cycles;
        if (is_other_late) board.flash.chips[1 - late].buffer_cycles = cycles / 2;
        const bool is_done = board.driver.program(0, unit.data(), kUnit);
        CHECK(is_done == (cycles <= static_cast<int>(Bus::kMaxPolls)));
        CHECK(content(board.driver, 0, kUnit) == (is_done ? unit : Bytes(kUnit, 0xff)));
        REQUIRE(board.driver.program(kUnit, other.data(), kUnit));
        CHECK(content(board.driver, kUnit, kUnit) == other);
        REQUIRE(board.driver.erase(kBlock));
      }
    }
  }
}

TEST_CASE("a write buffer that is never free: the chip that has one is left in order") {
  for (const int stuck : {0, 1}) {
    Board board;
    const Bytes unit = pattern(kUnit, 1);
    REQUIRE(board.driver.erase(0));
    board.flash.chips[stuck].buffer_cycles = 1'000'000;
    CHECK_FALSE(board.driver.program(0, unit.data(), kUnit));
    CHECK(board.flash.chips[1 - stuck].reads_array());
    board.flash.power_up(false);
    CHECK(content(board.driver, 0, kUnit) == Bytes(kUnit, 0xff));
    CHECK(board.driver.program(0, unit.data(), kUnit));
  }
}

TEST_CASE("an operation may take as long as the driver waits, and no longer") {
  for (const int more : {0, 1}) {
    Board board;
    board.flash.chips[1].operation_cycles = static_cast<int>(Bus::kMaxPolls) + more;
    CHECK(board.driver.erase(0) == (more == 0));
  }
}

TEST_CASE("chips whose status is cleared as QEMU does it") {
  Board board;
  for (auto& chip : board.flash.chips) chip.clearing_is_reset = true;
  const Bytes image = pattern(2 * kUnit, 1);
  for (int i = 0; i < 2; i++) {
    REQUIRE(board.driver.erase(0));
    REQUIRE(board.driver.program(0, image.data(), 2 * kUnit));
    CHECK(content(board.driver, 0, 2 * kUnit) == image);
  }
  board.flash.chips[0].next_error = 0x20;
  CHECK_FALSE(board.driver.erase(0));
  CHECK(board.driver.erase(0));
}

// -- slots of policies ----------------------------------------------------------------------------

namespace {

using Slots = PolicySlots<Driver>;

constexpr std::uint32_t kImageBytes = 300;  // over a block's end, and no whole unit

// The image that acts; empty where there is none.
Bytes acting(const Slots& slots) {
  const SlotImage image = slots.acting();
  return image.data == nullptr ? Bytes{} : Bytes(image.data, image.data + image.bytes);
}

void push(Slots& slots, const Bytes& image) {
  if (slot_push::push(slots, image) != SlotError::none) {
    throw std::logic_error("a push is refused");
  }
}

// What acts is the same where the power fails in the recovery too, before any of its bus cycles;
// the number of starts.
std::uint64_t check_recovery(const std::vector<std::uint32_t>& words, bool garbage,
                             const Bytes& expected) {
  for (std::uint64_t cut = 0;; cut++) {
    Board board;
    board.flash.words = words;
    board.flash.cut_after(cut);
    bool is_cut = false;
    try {
      Slots(board.driver).begin();
    } catch (const PowerCut&) {
      is_cut = true;
    }
    board.flash.power_up(garbage);
    Slots slots(board.driver);
    REQUIRE(slots.begin());
    REQUIRE(acting(slots) == expected);
    if (!is_cut) return cut + 1;
  }
}

// What acts after pushes of the patterns `first`, `first` + 1, … while the power fails before the
// bus cycle `cut`; nothing where it does not fail.
struct Interrupted {
  bool happened = false;
  std::uint32_t old_seed = 0, new_seed = 0;
};

Interrupted interrupted(Board& board, std::uint32_t first, std::uint32_t count, std::uint64_t cut) {
  Interrupted result;
  try {
    Slots slots(board.driver);
    slots.begin();
    result.old_seed = result.new_seed = first - 1;
    board.flash.cut_after(cut);
    for (std::uint32_t seed = first; seed < first + count; seed++) {
      result.new_seed = seed;
      push(slots, pattern(kImageBytes, seed));
      result.old_seed = seed;
    }
    board.flash.cut_after(Flash::kNever);
  } catch (const PowerCut&) {
    result.happened = true;
  }
  return result;
}

}  // namespace

TEST_CASE("slots in this flash outlive a reset, while their records fill both blocks") {
  Board board;
  for (std::uint32_t seed = 1; seed < 20; seed++) {
    Slots slots(board.driver);
    REQUIRE(slots.begin());
    if (seed > 1) CHECK(acting(slots) == pattern(kImageBytes, seed - 1));
    push(slots, pattern(kImageBytes, seed));
    CHECK(acting(slots) == pattern(kImageBytes, seed));
  }
}

TEST_CASE("whatever bus cycle the power fails at, the old or the new policy acts") {
  constexpr std::uint32_t kPushes = 6;  // which fill the blocks of records, and erase each
  for (const bool garbage : {false, true}) {
    std::uint64_t cuts = 0, starts = 0;
    std::vector<std::uint32_t> before;
    {
      Board board;
      interrupted(board, 1, 2, Flash::kNever);
      before = board.flash.words;
    }
    for (;; cuts++) {
      Board board;
      board.flash.words = before;
      const Interrupted cut = interrupted(board, 3, kPushes, cuts);
      if (!cut.happened) break;
      board.flash.power_up(garbage);
      const std::vector<std::uint32_t> before_recovery = board.flash.words;
      Slots slots(board.driver);
      REQUIRE(slots.begin());
      starts++;
      const Bytes found = acting(slots);
      const bool is_old = found == pattern(kImageBytes, cut.old_seed);
      const bool is_new = found == pattern(kImageBytes, cut.new_seed);
      REQUIRE((is_old || is_new));
      starts += check_recovery(before_recovery, garbage, found);
      push(slots, pattern(kImageBytes, 99));
      REQUIRE(acting(slots) == pattern(kImageBytes, 99));
    }
    CHECK(cuts > 1000);
    MESSAGE("starts after a cut: " << starts);
  }
}
