// What the Crazyflie's app makes of the last turn, by its own source: linked with
// --wrap=rlt_decide, so that what crazyflie_os.c tells the logic passes by here.
#include "controller_logic.h"

namespace {

RltSensed sensed;

}  // namespace

extern "C" {

void __real_rlt_decide(const RltSensed* seen, RltDecision* decision);
void __wrap_rlt_decide(const RltSensed* seen, RltDecision* decision) {
  sensed = *seen;
  __real_rlt_decide(seen, decision);
}
bool flight_observation(float* observation) { return rlt::crazyflie::observe(sensed, observation); }
}
