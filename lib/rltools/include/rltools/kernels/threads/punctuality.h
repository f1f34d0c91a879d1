// When a caller no longer hands tasks to its worker. Where another process has the worker's
// processor, or both share one, tasks that are handed over take longer than the caller would: it
// works alone for a number of calls then, twice as many each time.
#pragma once

namespace rlt {

namespace threads {

class Punctuality {
 public:
  // How long a caller waits for the worker's task before it counts as late: some 0.4 ms, which is
  // longer than a task and shorter than a time slice.
  static constexpr int kPatientSpins = 16384;

  // True where this call is one to work alone.
  bool works_alone() {
    if (alone_ == 0) return false;
    alone_--;
    return true;
  }

  // The worker has not claimed anything: it is late where that goes on for longer than it takes to
  // wake up.
  void note_unclaimed() {
    if (++unclaimed_ == kUnclaimedInARow) note_late();
  }

  void note_late() {
    unclaimed_ = 0;
    alone_ = next_alone_;
    next_alone_ = next_alone_ * 2 < kMostAlone ? next_alone_ * 2 : kMostAlone;
  }

  void note_in_time() {
    unclaimed_ = 0;
    if (next_alone_ > kFewestAlone) next_alone_--;
  }

 private:
  static constexpr int kUnclaimedInARow = 256;
  static constexpr int kFewestAlone = 256, kMostAlone = 16384;  // calls

  int unclaimed_ = 0;  // in a row
  int alone_ = 0;      // calls left
  int next_alone_ = kFewestAlone;
};

}  // namespace threads

}  // namespace rlt
