// What the second thread consists of: the handing over of tasks, claim by claim, and the rule by
// which a caller works alone. The thread itself: test_host_threads.cpp.
#include <doctest/doctest.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "rltools/kernels/threads/handover.h"
#include "rltools/kernels/threads/punctuality.h"

using namespace rlt::threads;

namespace {

// Tasks that were done, in order, and whether the caller could have taken them for done while they
// were under way.
struct Work {
  Handover handover;
  std::vector<int> done;
  bool is_done_too_early = false;

  void offer(int count) {
    handover.offer(
        [](const void* work, int index) {
          auto& self = **static_cast<Work* const*>(work);
          self.done.push_back(index);
          self.is_done_too_early = self.is_done_too_early || self.handover.is_worker_done();
        },
        &self_, count);
  }
  // The worker's part, on the test's own thread: one task.
  void serve() {
    handover.serve([this] { is_done_too_early = is_done_too_early || handover.is_worker_done(); });
  }

 private:
  Work* self_ = this;
};

// Whether a thread that serves, and falls asleep before each offer, does one of two tasks each
// time.
bool wakes_worker(Work& work) {
  std::thread worker([&work] {
    for (int i = 0; i < 3; i++) work.serve();
  });
  for (int offer = 1; offer <= 3; offer++) {
    usleep(20000);  // it spins for some 0.1 ms
    work.offer(2);
    const auto is_served = [&work] {
      return work.handover.claimed_by_worker() == 1 && work.handover.is_worker_done();
    };
    for (int i = 0; i < 5000 && !is_served(); i++) usleep(1000);
    if (!is_served()) {
      worker.detach();
      return false;
    }
  }
  worker.join();
  return work.done == std::vector<int>{1, 1, 1};
}

// How many calls in a row are to work alone.
int calls_alone(Punctuality& punctuality) {
  int calls = 0;
  while (calls < 100000 && punctuality.works_alone()) calls++;
  return calls;
}

}  // namespace

TEST_CASE("the caller claims tasks from the first on, each once") {
  Work work;
  for (int offer = 0; offer < 3; offer++) {
    work.offer(4);
    for (const int index : {1, 2, 3, 0, 0}) CHECK(work.handover.claim_first() == index);
    CHECK(work.handover.claimed_by_worker() == 0);
    CHECK(work.handover.is_worker_done());
  }
}

TEST_CASE("the worker claims tasks from the last on, and is done when they are") {
  Work work;
  for (int offer = 0; offer < 3; offer++) {
    work.done.clear();
    work.offer(5);
    CHECK(work.handover.is_worker_done());  // it has claimed none
    work.serve();
    CHECK(work.handover.claimed_by_worker() == 1);
    CHECK(work.handover.is_worker_done());
    CHECK(work.handover.claim_first() == 1);
    work.serve();
    work.serve();
    CHECK(work.handover.claim_first() == 0);
    CHECK(work.done == std::vector<int>{4, 3, 2});
    CHECK(work.handover.claimed_by_worker() == 3);
    CHECK(work.handover.is_worker_done());
    CHECK_FALSE(work.is_done_too_early);
  }
}

TEST_CASE("while it is suspended no task can be claimed, and afterwards what was left") {
  Work work;
  work.offer(4);
  CHECK(work.handover.claim_first() == 1);
  work.handover.suspend();
  CHECK(work.handover.claim_first() == 0);
  SUBCASE("in the parent") { work.handover.resume(); }
  SUBCASE("in the child, where no worker exists") { work.handover.resume_without_worker(); }
  REQUIRE(work.handover.claim_first() == 2);
  work.serve();  // which would sleep if nothing were left
  CHECK(work.handover.claim_first() == 0);
  CHECK(work.done == std::vector<int>{3});
}

TEST_CASE("a worker that has fallen asleep takes a task") {
  // They outlive a worker that does not wake up.
  static Work work, in_child, in_parent;
  CHECK(wakes_worker(work));
  in_child.handover.suspend();
  in_child.handover.resume_without_worker();
  CHECK(wakes_worker(in_child));
  in_parent.handover.suspend();
  in_parent.handover.resume();
  CHECK(wakes_worker(in_parent));
}

TEST_CASE("after the worker was late the caller works alone, longer each time, within bounds") {
  Punctuality punctuality;
  CHECK(calls_alone(punctuality) == 0);
  for (const int expected : {256, 512, 1024, 2048, 4096, 8192, 16384, 16384, 16384}) {
    punctuality.note_late();
    CHECK(calls_alone(punctuality) == expected);
  }
}

TEST_CASE("each time in time shortens what comes after the next delay, down to the least") {
  Punctuality punctuality;
  punctuality.note_late();  // 512 the next time
  CHECK(calls_alone(punctuality) == 256);
  for (int i = 0; i < 100; i++) punctuality.note_in_time();
  punctuality.note_late();  // 412; 824 the next time
  CHECK(calls_alone(punctuality) == 412);
  for (int i = 0; i < 10000; i++) punctuality.note_in_time();
  punctuality.note_late();
  CHECK(calls_alone(punctuality) == 256);
}

TEST_CASE("a worker that claims nothing is late when that goes on, in a row") {
  Punctuality punctuality;
  for (int i = 0; i < 255; i++) punctuality.note_unclaimed();
  CHECK(calls_alone(punctuality) == 0);
  punctuality.note_in_time();
  for (int i = 0; i < 255; i++) punctuality.note_unclaimed();
  CHECK(calls_alone(punctuality) == 0);
  punctuality.note_unclaimed();
  CHECK(calls_alone(punctuality) == 256);
  for (int i = 0; i < 255; i++) punctuality.note_unclaimed();  // counted anew
  CHECK(calls_alone(punctuality) == 0);
}
