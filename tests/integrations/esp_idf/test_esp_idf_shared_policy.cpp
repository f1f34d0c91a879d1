// A policy between a control task and a receiving one: steps go on while bytes of an image are
// written and checked, and whatever the two do at once, the action is that of a whole policy.
#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "../../../integrations/esp_idf/rlt_policy/src/shared_policy.h"
#include "policy_networks.h"
#include "rltools/devices/host.h"

using namespace rlt;
using namespace policy_networks;

namespace {

constexpr std::uint32_t kStep_us = Contract::kStepInterval_us;

Bytes image_of(std::uint32_t seed) { return small_image(Host{}, seed); }

Action action_of(const Bytes& image) {
  static PolicyRunner<64, 0, 4096> policy(policy_contract<Contract>());
  REQUIRE(policy.accept(Host{}, image.data(), image.size()).accepted());
  Action action;
  policy.act(Host{}, kGood, action.values);
  return action;
}

// Memory that stops in the midst of a change until it is told to go on.
class StoppingFlash {
 public:
  static constexpr std::uint32_t kEraseBytes = 256, kProgramBytes = 4;
  std::uint32_t size() const { return memory_.size(); }
  const std::uint8_t* data() const { return memory_.data(); }
  bool erase(std::uint32_t offset) {
    stop(offset);
    return memory_.erase(offset);
  }
  bool program(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    stop(offset);
    return memory_.program(offset, source, count);
  }

  void stop_at(std::uint32_t offset) {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_at_ = offset;
  }
  void wait_until_stopped() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return is_stopped_; });
  }
  void go_on() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_stopped_ = false;
    stop_at_ = kNowhere;
    changed_.notify_all();
  }
  // Return the number of changes that were asked for.
  long changes() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return changes_;
  }

 private:
  static constexpr std::uint32_t kNowhere = 0xffffffffu;
  void stop(std::uint32_t offset) {
    std::unique_lock<std::mutex> lock(mutex_);
    changes_++;
    if (offset != stop_at_) return;
    is_stopped_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !is_stopped_; });
  }

  RamStorage<18 * 256> memory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint32_t stop_at_ = kNowhere;
  long changes_ = 0;
  bool is_stopped_ = false;
};

using Policy = esp_idf::SharedPolicy<Host, StoppingFlash, std::mutex, 2, 64>;

struct Chip {
  StoppingFlash flash;
  std::mutex receiver, state;
  Policy place{flash, receiver, state, policy_contract<Contract>()};
  std::atomic<std::uint32_t> now_us{0};

  Chip() { place.begin(); }
  ExecutorStatus step(Action& action) {
    const std::uint32_t now = now_us += kStep_us;
    return place.step(now, {kGood, now}, action.values);
  }
  bool stages(const Bytes& image) {
    const auto bytes = static_cast<std::uint32_t>(image.size());
    SlotError error = place.stage();
    if (error == SlotError::none) error = place.write(0, image.data(), bytes);
    return error == SlotError::none && place.finish().accepted();
  }
  bool tries(const Bytes& image) {
    return stages(image) && place.start_trial(now_us, 1000000000u) == SlotError::none;
  }
};

}  // namespace

TEST_CASE("steps go on while an image is being written, and wait for no more than a record") {
  Chip chip;
  const Bytes first = image_of(1), second = image_of(2);
  REQUIRE(chip.tries(first));
  REQUIRE(chip.place.confirm(chip.now_us) == SlotError::none);
  chip.flash.stop_at(2 * 256 + 8 * 256 + 256);  // the second block of the other slot
  bool succeeded = false;
  std::thread receiving([&] { succeeded = chip.stages(second); });
  chip.flash.wait_until_stopped();
  for (int i = 0; i < 100; i++) {
    Action action;
    REQUIRE(chip.step(action) == ExecutorStatus::acted);
    REQUIRE(action == action_of(first));
  }
  chip.flash.go_on();
  receiving.join();
  CHECK(succeeded);
}

TEST_CASE("whatever a receiving task does at once, the action is that of a whole policy") {
  Chip chip;
  const Bytes images[] = {image_of(1), image_of(2), image_of(3)};
  const Action actions[] = {action_of(images[0]), action_of(images[1]), action_of(images[2])};
  REQUIRE(chip.tries(images[0]));
  REQUIRE(chip.place.confirm(chip.now_us) == SlotError::none);
  std::atomic<bool> is_over{false};
  std::atomic<long> steps{0};
  long seen[3] = {}, others = 0;
  std::thread control([&] {
    while (!is_over) {
      Action action;
      const ExecutorStatus status = chip.step(action);
      bool is_one = false;
      for (int i = 0; i < 3; i++) {
        if (!(action == actions[i])) continue;
        seen[i]++;
        is_one = true;
      }
      if (!is_one || status != ExecutorStatus::acted) others++;
      steps++;
    }
  });
  int failures = 0;
  for (int round = 0; round < 200; round++) {
    const Bytes& image = images[round % 3];
    failures += !chip.tries(image);
    for (const long before = steps; steps < before + 2;) std::this_thread::yield();
    if (round % 2 == 0) {
      failures += chip.place.confirm(chip.now_us) != SlotError::none;
    } else {
      failures += chip.place.roll_back() != SlotError::none;
    }
    failures += !chip.place.poll(chip.now_us);
    chip.place.look([](const auto&) {});
  }
  is_over = true;
  control.join();
  CHECK(failures == 0);
  CHECK(others == 0);
  for (const long count : seen) CHECK(count > 0);
}

TEST_CASE("a step changes nothing in the flash, whichever block the next record belongs to") {
  Chip chip;
  for (int round = 0; round < 16; round++) {  // of three records, and a block holds eight
    REQUIRE(chip.stages(image_of(1)));
    REQUIRE(chip.place.start_trial(chip.now_us, kStep_us) == SlotError::none);
    const long before = chip.flash.changes();
    Action action;
    REQUIRE(chip.step(action) == ExecutorStatus::no_policy);  // the trial is over
    CHECK(chip.flash.changes() == before);
    REQUIRE(chip.place.poll(chip.now_us));
    CHECK(chip.flash.changes() > before);
  }
}

TEST_CASE("a refused image leaves the lock free") {
  Chip chip;
  Bytes damaged = image_of(1);
  damaged[300] ^= 1;
  CHECK_FALSE(chip.stages(damaged));
  CHECK(chip.place.finish().error == SlotError::incomplete);
  CHECK(chip.stages(image_of(1)));
  Action action;
  CHECK(chip.step(action) == ExecutorStatus::no_policy);
}
