// Times in units of the board's counter.
#pragma once

#include "board_api.h"

namespace rlt::link {

// Return the counts of the counter in a second. Guest instructions are no measure of time: an
// emulator executes some 10^8 a second while it computes, and counts about 30 million while it
// sleeps.
inline std::uint64_t counts_a_second() {
  return board::kCountsInstructions ? 30'000'000u : 1'000'000u;
}

// Says when the next heartbeat is due.
class HeartbeatClock {
 public:
  // Return true once a second, and at first.
  bool strike() {
    const std::uint64_t now = board::counter();
    if (running_ && now - since_ < counts_a_second()) return false;
    restart(now);
    return true;
  }
  void restart(std::uint64_t now) {
    running_ = true;
    since_ = now;
  }

 private:
  bool running_ = false;
  std::uint64_t since_ = 0;
};

}  // namespace rlt::link
