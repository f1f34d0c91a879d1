// The controller of this firmware: which processor, how large a policy, which image is compiled in.
#include "controller_logic.h"
#include "rltools/devices/cortex_m4.h"

// The image that `rlt export RUN --to c-image` writes as <name>.h, and the array in it, <name>:
// make RLT_POLICY=<file>
#define RLT_TEXT(x) #x
#define RLT_TEXT_OF(x) RLT_TEXT(x)
#ifdef RLT_POLICY_IMAGE
#include RLT_TEXT_OF(RLT_POLICY_IMAGE.h)
#endif

namespace {

// An image of 29-64-64-4 with a normalizer, which sees its last four actions, has 28,560 bytes.
constexpr std::uint32_t kSlotBytes = 112 * 256;
// Scratch memory of 29-64-64-4 with four past actions, or of a recurrent 41-16-GRU16-4 with seven
// of four rotors: the states before and after the last step, and half a float for each.
constexpr std::size_t kScratchFloats =
    rlt::scratch_floats_to_run(41, rlt::products_of(rlt::kGruGates, 16), 16) + 2 * 16 + 7 * 4 / 2;
static_assert(kScratchFloats >= rlt::scratch_floats_to_run(64, 0, 0) + 2 * 4 + 4 * 4 / 2);
using Controller = rlt::crazyflie::Controller<rlt::CortexM4, kSlotBytes, kScratchFloats>;

// Return the controller, made by the first call, which is rlt_restart(): the firmware runs no
// constructors of globals.
Controller& controller() {
  static Controller instance(rlt_settings, rlt_report);
  return instance;
}

}  // namespace

void rlt_restart() { controller().restart(); }
void rlt_decide(const RltSensed* sensed, RltDecision* decision) {
  controller().decide(*sensed, *decision);
}
float rlt_blend_thrust(float stock_thrust, float full_thrust) {
  return controller().blend_thrust(stock_thrust, full_thrust);
}
uint32_t rlt_memory_bytes() { return controller().memory_bytes(); }
bool rlt_write(uint32_t offset, const uint8_t* bytes, uint32_t count) {
  return controller().write(offset, bytes, count);
}
bool rlt_read(uint32_t offset, uint8_t* bytes, uint32_t count) {
  return controller().read(offset, bytes, count);
}
void rlt_begin() {
#ifdef RLT_POLICY_IMAGE
  controller().begin(RLT_POLICY_IMAGE, sizeof(RLT_POLICY_IMAGE));
#else
  controller().begin(nullptr, 0);
#endif
}
void rlt_work(uint32_t now_us) { controller().work(now_us); }
