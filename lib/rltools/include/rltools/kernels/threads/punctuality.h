// Decides when the caller of a pool does its tasks alone. Where other processes keep the workers
// from running, or a worker shares the caller's processor, tasks take longer with workers than
// without. Each time that the workers are late, the caller works alone for a number of calls: 256
// at first, then twice as many as the last time, up to 16,384. Each call in time takes one off that
// number.
#pragma once

namespace rlt {

namespace threads {

class Punctuality {
 public:
  // Spins for which the caller waits for the workers' last tasks until they count as late: some 0.4
  // ms, longer than a task and shorter than a time slice of the system's.
  static constexpr int kPatientSpins = 16384;

  // To be asked once for each call; true where the caller is to work alone in this one.
  bool works_alone() {
    if (alone_ == 0) return false;
    alone_--;
    return true;
  }

  // No worker has claimed a task in this call. After kUnclaimedInARow such calls, which take longer
  // than a worker takes to wake up, the workers count as late.
  void note_unclaimed() {
    if (++unclaimed_ == kUnclaimedInARow) note_late();
  }

  // A worker was on the caller's processor, or was not done in time.
  void note_late() {
    unclaimed_ = 0;
    alone_ = next_alone_;
    next_alone_ = next_alone_ * 2 < kMaxAlone ? next_alone_ * 2 : kMaxAlone;
  }

  // Workers have claimed tasks, and were done in time.
  void note_in_time() {
    unclaimed_ = 0;
    if (next_alone_ > kMinCallsAlone) next_alone_--;
  }

 private:
  static constexpr int kUnclaimedInARow = 256;
  static constexpr int kMinCallsAlone = 256, kMaxAlone = 16384;  // calls

  int unclaimed_ = 0;                // calls in a row in which no worker has claimed a task
  int alone_ = 0;                    // calls that the caller is still to work alone
  int next_alone_ = kMinCallsAlone;  // calls alone when workers are late the next time
};

}  // namespace threads

}  // namespace rlt
