// The second thread where it has not been late yet, so that its caller does not work alone: what
// test_host_threads.cpp checks of it depends on how busy the machine is.
#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>

#include "rltools/devices/host_threads.h"

using namespace rlt;

TEST_CASE("no task, and a single one, are the caller's" *
          doctest::skip(threads::available_processors() < 2)) {
  static threads::SecondThread none, one;
  int calls = 0;
  const auto count = [&](int index) { calls += index == 0 ? 1 : 100; };
  none.run_tasks(0, count);
  CHECK(calls == 0);
  one.run_tasks(1, count);
  CHECK(calls == 1);
}

TEST_CASE("a device's tasks are one after another while the thread that it carries is taken" *
          doctest::skip(threads::available_processors() < 2)) {
  static threads::SecondThread own;  // and the process's thread has not been used
  HostThreads device;
  device.thread = &own;
  std::atomic<bool> is_done{false};
  bool was_alone = false;
  const auto tasks = [&](int index) {
    if (index == 1) return;
    run_tasks(device, 2, [&](int inner) {
      if (inner == 1) is_done = true;
      for (int i = 0; inner == 0 && i < 2000 && !is_done; i++) usleep(100);
      if (inner == 0) was_alone = !is_done;
    });
  };
  own.run_tasks(2, tasks);
  CHECK(was_alone);
  CHECK(is_done);
}
