// A policy between a control task and a task that receives new ones, over a flash memory: all that
// is not ESP-IDF's. Two locks: `receiver` is held by whoever works on a new image, from the call to
// its end; `state` for the moment in which it is decided what acts, and for a step. So a step waits
// for one record at most, not for the bytes of an image, nor for its check.
#pragma once

#include "rltools/policy/deployment.h"

namespace rlt::esp_idf {

// Both locks have lock() and unlock(), as std::mutex has.
template <class Mutex>
class Locked {
 public:
  explicit Locked(Mutex& mutex) : mutex_(mutex) { mutex_.lock(); }
  ~Locked() { mutex_.unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Mutex& mutex_;
};

// The flash as the slots see it. While a step is under way it takes no record: writing one stops
// every task, and erasing a sector for them takes tens of milliseconds. The slots are in the right
// state even so, and the receiving task writes it down.
template <class Flash>
class FlashBesideControl {
 public:
  static constexpr std::uint32_t kEraseBytes = Flash::kEraseBytes;
  static constexpr std::uint32_t kProgramBytes = Flash::kProgramBytes;

  explicit FlashBesideControl(Flash& flash) : flash_(flash) {}

  std::uint32_t size() const { return flash_.size(); }
  const std::uint8_t* data() const { return flash_.data(); }
  bool erase(std::uint32_t offset) { return !is_held(offset) && flash_.erase(offset); }
  bool program(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    return !is_held(offset) && flash_.program(offset, source, count);
  }
  // Hold records back, by the task that has the lock of the state, as all that writes records does.
  void hold_records(bool held) { held_ = held; }

 private:
  bool is_held(std::uint32_t offset) const { return offset < 2 * kEraseBytes && held_; }

  Flash& flash_;
  bool held_ = false;
};

template <class Device, class Flash, class Mutex, int MaxActions, std::size_t ScratchFloats>
class SharedPolicy {
 public:
  SharedPolicy(Flash& flash, Mutex& receiver, Mutex& state, const PolicyContract& contract,
               const ExecutorLimits& limits = {})
      : flash_(flash),
        receiver_(receiver),
        state_(state),
        deployment_(Device{}, flash_, contract, limits) {}

  // Begin, before the tasks start. Return why the built-in policy is refused.
  PolicyVerdict begin(const std::uint8_t* built_in = nullptr, std::uint32_t bytes = 0) {
    return deployment_.begin(built_in, bytes);
  }

  ExecutorStatus step(std::uint32_t now_us, const Observation& observation, float* action) {
    const Locked<Mutex> locked(state_);
    flash_.hold_records(true);
    const ExecutorStatus status = deployment_.step(now_us, observation, action);
    flash_.hold_records(false);
    return status;
  }

  SlotError stage() {
    return change([this] { return deployment_.stage(); });
  }
  // Write bytes of an image. No trial is under way while an image is being staged, so that a step
  // touches none of this.
  SlotError write(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    const Locked<Mutex> receiving(receiver_);
    return deployment_.write(offset, source, count);
  }
  StageVerdict finish() {
    const Locked<Mutex> receiving(receiver_);
    bool is_locked = false;
    const StageVerdict result = deployment_.finish([&] {
      state_.lock();
      is_locked = true;
    });
    if (is_locked) state_.unlock();
    return result;
  }
  SlotError start_trial(std::uint32_t now_us, std::uint32_t trial_us) {
    return change([&] { return deployment_.start_trial(now_us, trial_us); });
  }
  SlotError confirm(std::uint32_t now_us) {
    return change([&] { return deployment_.confirm(now_us); });
  }
  SlotError roll_back() {
    return change([this] { return deployment_.roll_back(); });
  }
  // End a trial that is over; return false where the storage cannot write the state down.
  bool poll(std::uint32_t now_us) {
    const auto end = [&] {
      deployment_.poll(now_us);
      return deployment_.write_down() ? SlotError::none : SlotError::storage_failed;
    };
    return change(end) == SlotError::none;
  }

  // Call look(deployment), to read it.
  template <class Look>
  void look(Look&& look) {
    const Locked<Mutex> receiving(receiver_);
    const Locked<Mutex> locked(state_);
    look(deployment_);
  }

 private:
  // Change the slots, after writing down what the control task has decided.
  template <class Change>
  SlotError change(Change&& change) {
    const Locked<Mutex> receiving(receiver_);
    const Locked<Mutex> locked(state_);
    deployment_.write_down();
    return change();
  }

  FlashBesideControl<Flash> flash_;
  Mutex& receiver_;
  Mutex& state_;
  PolicyDeployment<Device, FlashBesideControl<Flash>, MaxActions, ScratchFloats> deployment_;
};

}  // namespace rlt::esp_idf
