// Shared library for Python (ctypes): a quadrotor's policy, as a board with the
// program infer has it, so that a flight over a board has one on this machine beside it, bit for
// bit. The caller gives the memory, on a boundary of 64 bytes.
#include <new>
#include <string>

#include "describe.h"
#include "rltools/policy/contracts/quadrotor.h"
#include "rltools/policy/deployment.h"

namespace {

using Contract = rlt::contracts::Quadrotor;

constexpr std::uint32_t kSlotBytes = 1u << 20;
constexpr std::size_t kScratchFloats = 1u << 14;
constexpr std::uint32_t kTrial_us = 0x7fffffffu;  // longer than a flight

using Storage = rlt::RamStorage<2 * 256 + 2 * kSlotBytes>;
using Deployment =
    rlt::PolicyDeployment<rlt::Generic, Storage, Contract::kActionDim, kScratchFloats>;

struct Pilot {
  Storage storage{};
  Deployment deployment{rlt::Generic{}, storage, rlt::policy_contract<Contract>()};
};

}  // namespace

extern "C" {

// Let the image act from now on, in trial or for good. Return why it does not, a PolicyReason, or
// -1 where it is too large.
int rlt_pilot_begin(void* memory, const std::uint8_t* image, std::uint32_t bytes, int in_trial) {
  auto& deployment = (new (memory) Pilot)->deployment;
  deployment.begin();
  if (deployment.stage() != rlt::SlotError::none) return -1;
  if (deployment.write(0, image, bytes) != rlt::SlotError::none) return -1;
  const rlt::StageVerdict verdict = deployment.finish();
  if (!verdict.verdict.accepted()) return static_cast<int>(verdict.verdict.reason);
  if (verdict.error != rlt::SlotError::none) return -1;
  if (deployment.start_trial(0, kTrial_us) != rlt::SlotError::none) return -1;
  if (in_trial == 0 && deployment.confirm(0) != rlt::SlotError::none) return -1;
  return 0;
}

// Act as RLT_OBSERVE_STEP does on a board: `action` (4) is always set. Return the ExecutorStatus.
int rlt_pilot_tick(Pilot* pilot, std::uint32_t now_us, std::uint32_t taken_us,
                   const float* observation, float* action) {
  return static_cast<int>(pilot->deployment.tick(now_us, {observation, taken_us}, action));
}

const char* rlt_describe() {
  static const std::string text = rlt::describe::text_of([](rlt::describe::Json& json) {
    json.pair("pilot_bytes", sizeof(Pilot));
    json.object("functions", [&] {
      RLT_DESCRIBE_FUNCTION(json, rlt_pilot_begin);
      RLT_DESCRIBE_FUNCTION(json, rlt_pilot_tick);
    });
  });
  return text.c_str();
}

}  // extern "C"
