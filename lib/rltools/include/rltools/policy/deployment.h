// A policy in use on a board: the slots say which image acts, runners hold the accepted
// images, the executor keeps time and limits. This is what an application, or somebody's own
// firmware, calls.
#pragma once

#include "rltools/policy/executor.h"
#include "rltools/policy/runtime.h"
#include "rltools/policy/slots.h"

namespace rlt {

// The outcome of a staged image's check.
struct StageVerdict {
  SlotError error;        // of the slots; none where the image itself was checked
  PolicyVerdict verdict;  // of the image
  constexpr bool accepted() const { return error == SlotError::none && verdict.accepted(); }
};

namespace detail {

// A runner for the image in each slot.
template <class Runner, int SlotCount>
struct SlotRunners {
  explicit SlotRunners(const PolicyContract& contract)
      : of_slot{Runner(contract), Runner(contract)} {}
  Runner of_slot[2];
};
template <class Runner>
struct SlotRunners<Runner, 1> {
  explicit SlotRunners(const PolicyContract& contract) : of_slot{Runner(contract)} {}
  Runner of_slot[1];
};

}  // namespace detail

// `MaxActions` is the contract's action_dim or more; `ScratchFloats` as of PolicyRunner. A policy
// may see the last `HistoryTicks` actions, which take as many times `MaxActions` floats.
template <class Device, class Storage, int MaxActions, std::size_t ScratchFloats, int SlotCount = 2,
          int HistoryTicks = kHistoryTicks>
class PolicyDeployment {
 public:
  using Runner = PolicyRunner<ScratchFloats, HistoryTicks>;
  using Executor = rlt::Executor<MaxActions, HistoryTicks>;

  PolicyDeployment(Device device, Storage& memory, const PolicyContract& contract,
                   const ExecutorLimits& limits = {})
      : device_(device),
        slots_(memory),
        runners_(contract),
        built_in_(contract),
        executor_(contract, limits) {}

  // Begin after a reset. The last good policy, checked again, acts then, or else the built-in one,
  // whose image the firmware has (four-byte aligned, or null), or none. Return why the built-in one
  // is refused.
  PolicyVerdict begin(const std::uint8_t* built_in = nullptr, std::uint32_t built_in_bytes = 0) {
    PolicyVerdict verdict{PolicyReason::accepted, 0};
    if (built_in != nullptr) verdict = built_in_.accept(device_, built_in, built_in_bytes);
    slots_.begin();
    while (slots_.active().data != nullptr && !accept(slots_.active_slot(), slots_.active())) {
      slots_.give_up_active(DropReason::refused);
    }
    if (slots_.candidate().data != nullptr) accept(slots_.other_slot(), slots_.candidate());
    return verdict;
  }

  // -- a new image --------------------------------------------------------------------------------

  SlotError stage() {
    const std::uint8_t active = slots_.active_slot();
    const SlotError error = slots_.stage();
    if (slots_.active_slot() != active) changed();  // there is one slot only
    if (error == SlotError::none) candidate().give_up();
    return error;
  }
  SlotError write(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    return slots_.write(offset, source, count);
  }
  // Finish an image, and check it. `accepted()` is called when the image has passed, before the
  // state changes: where another task calls step() meanwhile, it takes the lock of both, which the
  // caller gives back. All before that is of the candidate alone, as write() is.
  template <class Accepted>
  StageVerdict finish(Accepted&& accepted) {
    StageVerdict result{SlotError::none, {PolicyReason::accepted, 0}};
    const bool is_staging = slots_.is_staging();  // else what is there stays as it is
    result.error = slots_.finish([&](const std::uint8_t* image, std::uint32_t bytes) {
      result.verdict = candidate().accept(device_, image, bytes);
      if (result.verdict.accepted()) accepted();
      return result.verdict.accepted();
    });
    if (is_staging && result.error != SlotError::none) candidate().give_up();
    return result;
  }
  StageVerdict finish() {
    return finish([] {});
  }

  // -- trial, confirmation, and the way back ------------------------------------------------------

  // Start the trial of the staged image. Times are those of step().
  SlotError start_trial(std::uint32_t now_us, std::uint32_t trial_us) {
    if (candidate().view() == nullptr && slots_.candidate_state() == Candidate::staged) {
      return SlotError::not_staged;
    }
    const SlotError error = slots_.start_trial(now_us, trial_us);
    if (error == SlotError::none) executor_.reset();
    return error;
  }
  SlotError confirm(std::uint32_t now_us) {
    poll(now_us);
    return slots_.confirm(now_us);
  }
  SlotError roll_back() {
    if (slots_.candidate_state() == Candidate::previous && candidate().view() == nullptr) {
      return SlotError::no_previous;  // it does not pass the check any more
    }
    const bool is_last = !is_in_trial() && slots_.candidate_state() != Candidate::previous &&
                         slots_.active().data != nullptr && built_in_.view() != nullptr;
    const SlotError error =
        is_last ? slots_.give_up_active(DropReason::rolled_back) : slots_.roll_back();
    // Also where the storage has failed: the state is another one even so.
    if (error != SlotError::no_previous) changed();
    return error;
  }
  // Drop a staged image that is not wanted any more.
  SlotError drop_staged() {
    if (slots_.candidate_state() != Candidate::staged) return SlotError::not_staged;
    const bool is_written = slots_.drop(DropReason::rolled_back);
    candidate().give_up();
    return is_written ? SlotError::none : SlotError::storage_failed;
  }
  // End a trial whose time is over; true then. step() does it too, tick() does not.
  bool poll(std::uint32_t now_us) {
    if (!slots_.poll(now_us)) return false;
    changed();
    return true;
  }

  // Write down what step() could not, in a storage that refused it: PolicySlots.
  bool write_down() { return slots_.write_down(); }

  // -- acting -------------------------------------------------------------------------------------

  // End a trial that is over, and then as Executor::step().
  ExecutorStatus step(std::uint32_t now_us, const Observation& observation, float* action) {
    poll(now_us);
    return tick(now_us, observation, action);
  }
  // Do the same without a look at the trial, where the clock of observations is another one.
  ExecutorStatus tick(std::uint32_t now_us, const Observation& observation, float* action) {
    const ExecutorStatus status = executor_.step(device_, now_us, observation, action, acting());
    if (status == ExecutorStatus::output_not_finite && is_in_trial()) {
      slots_.drop(DropReason::fault);
      changed();
    }
    return status;
  }

  void reset_executor() { executor_.reset(); }

  bool is_in_trial() const { return slots_.candidate_state() == Candidate::trial; }
  // Return the policy that acts; null where there is none.
  Runner* acting() {
    const std::uint8_t slot = is_in_trial() ? slots_.other_slot() : slots_.active_slot();
    auto& runner = slot == PolicySlots<Storage>::kNoSlot ? built_in_ : runners_.of_slot[slot];
    return runner.view() == nullptr ? nullptr : &runner;
  }
  // Return the states in which it may be handed the vehicle; without a policy, those of an image
  // that states none.
  EntryEnvelope entry_envelope() {
    const Runner* runner = acting();
    return runner == nullptr ? kEntryAtRest : runner->view()->entry;
  }
  bool has_built_in() const { return built_in_.view() != nullptr; }
  // Return the accepted image of a slot; null where there is none.
  const PolicyView* view(std::uint8_t slot) const { return runners_.of_slot[slot].view(); }
  const PolicySlots<Storage, SlotCount>& slots() const { return slots_; }
  const Executor& executor() const { return executor_; }

 private:
  Runner& candidate() { return runners_.of_slot[slots_.other_slot()]; }
  bool accept(std::uint8_t slot, SlotImage image) {
    return runners_.of_slot[slot].accept(device_, image.data, image.bytes).accepted();
  }
  // Reset the executor, as another policy acts from now on, and give up a candidate that counts no
  // more.
  void changed() {
    if (slots_.candidate_state() == Candidate::none) candidate().give_up();
    executor_.reset();
  }

  Device device_;
  PolicySlots<Storage, SlotCount> slots_;
  detail::SlotRunners<Runner, SlotCount> runners_;
  Runner built_in_;
  Executor executor_;
};

}  // namespace rlt
