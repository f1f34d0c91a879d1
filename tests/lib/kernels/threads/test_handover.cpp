// Test: threads
// The handing over of tasks, claim by claim. The threads themselves: test_pool.cpp.
#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "rltools/kernels/threads/handover.h"

using namespace rlt::threads;

namespace {

// Tasks that were done, in order, and whether the caller could have taken them for done while they
// were under way.
struct Work {
  Handover handover;
  std::vector<int> done;
  bool is_done_too_early = false;

  void offer(int count, int workers = 1) {
    handover.offer(
        [](const void* work, int index) {
          auto& self = **static_cast<Work* const*>(work);
          self.done.push_back(index);
          self.is_done_too_early = self.is_done_too_early || self.handover.are_workers_done();
        },
        &self_, count, workers);
  }
  // The caller's claim of tasks, which must be those.
  void require_claim(int first, int end) {
    const Handover::Tasks claimed = handover.claim_first();
    REQUIRE(claimed.count() == end - first);
    if (end > first) REQUIRE(claimed.first == first);
  }
  // A worker's part, on the test's own thread: one claim.
  void serve() {
    if (handover.await_tasks()) handover.do_last();
  }

 private:
  Work* self_ = this;
};

// Whether threads that serve, and fall asleep before each offer, do the tasks of three offers.
template <int Workers>
bool wakes_workers(Handover& handover) {
  static std::atomic<int> done;
  done = 0;
  std::vector<std::thread> workers;
  for (int i = 0; i < Workers; i++) {
    workers.emplace_back([&handover] {
      while (handover.await_tasks()) handover.do_last();
    });
  }
  bool are_served = true;
  for (int offer = 1; offer <= 3 && are_served; offer++) {
    usleep(20000);  // they spin for some 0.1 ms
    // Tasks that wait for each other: none is done until each has a worker.
    handover.offer(
        [](const void* work, int) {
          const int wanted = *static_cast<const int*>(work) * Workers;
          done++;
          for (int i = 0; i < 50000 && done < wanted; i++) usleep(100);
        },
        &offer, Workers + 1, Workers);
    for (int i = 0; i < 50000 && done < offer * Workers; i++) usleep(100);
    are_served = done == offer * Workers;
    while (are_served && !handover.are_workers_done()) usleep(100);
  }
  handover.end_workers();
  for (std::thread& worker : workers) are_served ? worker.join() : worker.detach();
  handover.begin_workers();
  return are_served;
}

}  // namespace

TEST_CASE("the caller claims tasks from the first on, each once") {
  Work work;
  for (int offer = 0; offer < 3; offer++) {
    work.offer(4);
    for (const int index : {1, 2, 3}) work.require_claim(index, index + 1);
    for (int i = 0; i < 2; i++) work.require_claim(0, 0);
    CHECK(work.handover.claimed_by_workers() == 0);
    CHECK(work.handover.are_workers_done());
  }
}

TEST_CASE("a worker claims tasks from the last on, and is done when they are") {
  Work work;
  for (int offer = 0; offer < 3; offer++) {
    work.done.clear();
    work.offer(5);
    CHECK(work.handover.are_workers_done());  // they have claimed none
    work.serve();
    CHECK(work.handover.claimed_by_workers() == 1);
    CHECK(work.handover.are_workers_done());
    work.require_claim(1, 2);
    work.serve();
    work.serve();
    work.require_claim(0, 0);
    CHECK(work.done == std::vector<int>{4, 3, 2});
    CHECK(work.handover.claimed_by_workers() == 3);
    CHECK(work.handover.are_workers_done());
    CHECK_FALSE(work.is_done_too_early);
  }
}

TEST_CASE("of many tasks some are claimed at once, and single ones in the end") {
  Work work;
  work.offer(101, 1);
  work.require_claim(1, 8);  // 1 + 99 / (8 * 2) of 100
  work.serve();              // 1 + 92 / 16 of 93
  CHECK(work.done == std::vector<int>{100, 99, 98, 97, 96, 95});
  CHECK(work.handover.claimed_by_workers() == 6);
  CHECK(work.handover.are_workers_done());
  CHECK_FALSE(work.is_done_too_early);
  int last_claim = 0, next = 8;
  for (;;) {
    const Handover::Tasks claimed = work.handover.claim_first();
    if (claimed.count() == 0) break;
    CHECK(claimed.first == next);
    next = claimed.end;
    last_claim = claimed.count();
  }
  CHECK(next == 95);
  CHECK(last_claim == 1);
  work.offer(101, 3);
  work.require_claim(1, 5);  // 1 + 99 / (8 * 4)
}

TEST_CASE("more tasks than sixteen bits count") {
  Work work;
  work.offer(1000000, 1);
  work.require_claim(1, 1 + 1 + 999998 / 16);
}

TEST_CASE("while it is suspended no task can be claimed, and afterwards what was left") {
  Work work;
  work.offer(4);
  work.require_claim(1, 2);
  work.handover.suspend();
  work.require_claim(0, 0);
  SUBCASE("in the parent") { work.handover.resume(); }
  SUBCASE("in the child, where no worker exists") { work.handover.resume_without_workers(); }
  work.require_claim(2, 3);
  work.serve();  // which would sleep if nothing were left
  work.require_claim(0, 0);
  CHECK(work.done == std::vector<int>{3});
}

TEST_CASE("workers that have fallen asleep are woken, all that are wanted") {
  // They outlive workers that do not wake up.
  static Handover one, three, in_parent;
  [[maybe_unused]] static Handover in_child;
  CHECK(wakes_workers<1>(one));
  CHECK(wakes_workers<3>(three));
  CHECK(wakes_workers<3>(three));  // after their end there may be others
#if !defined(__SANITIZE_THREAD__)  // for which the mutex is still the parent's
  in_child.suspend();
  in_child.resume_without_workers();
  CHECK(wakes_workers<1>(in_child));
#endif
  in_parent.suspend();
  in_parent.resume();
  CHECK(wakes_workers<2>(in_parent));
}
