// The policy behind PolicyName.h: the library's reader, executor and kernels, apart from Arduino's
// macros and from a sketch's names.
#if defined(__AVR__)
#error "a policy needs a processor of 32 bits: this one is an AVR"
#endif
#if __cplusplus < 201703L
#error "a policy needs C++17: add -std=gnu++17 to the compiler's flags of this board"
#endif

// Arduino's builder has no flags for a library: products and sums are rounded one by one.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

#include "PolicyName.h"

// A Teensy 4 copies constants to its fast memory unless they are told to stay.
#if defined(__IMXRT1062__)
#define RLT_IN_FLASH __attribute__((section(".progmem")))
#else
#define RLT_IN_FLASH
#endif

#include "PolicyName_data.h"
#include "rltools/policy/executor.h"
#include "rltools/policy/runtime.h"
#include "rltools/this_processor.h"

namespace {

constexpr int kObservationCount = PolicyNameClass::kObservationDim;
constexpr int kActionCount = PolicyNameClass::kActionDim;
float safe[kActionCount];
constexpr rlt::PolicyContract kContract{PolicyNameClass::kStepInterval_us,
                                        kObservationCount,
                                        kActionCount,
                                        kObservations,
                                        kActions,
                                        safe};
rlt::PolicyRunner<kScratchFloats, kHistoryTicks> runner(kContract);
rlt::Executor<kActionCount, kHistoryTicks> executor(kContract);
rlt::ExecutorStatus last = rlt::ExecutorStatus::no_policy;

}  // namespace

PolicyNameClass PolicyName;

bool PolicyNameClass::begin(const float* safe_action) {
  rlt::PolicyContract contract = kContract;
  contract.safe_action = safe_action == nullptr ? kSafeAction : safe_action;
  rlt::take_safe_action(contract, safe);
  executor.reset();
  last = rlt::ExecutorStatus::no_policy;
  return runner.accept(rlt::ThisProcessor{}, kImage, sizeof(kImage)).accepted();
}

bool PolicyNameClass::step(uint32_t now_us, const float* observation, float* action) {
  const rlt::ExecutorStatus status =
      executor.step(rlt::ThisProcessor{}, now_us, {observation, now_us}, action, &runner);
  if (status != rlt::ExecutorStatus::held) last = status;
  return !rlt::is_fault(last);
}

const char* PolicyNameClass::status() const { return rlt::executor_status_text(last); }
