// Test: threads
// The pool of threads: each task is done once, by as many threads as there are to be; they sleep,
// wake up, end, and do without a processor or a thread that is not to be had; a process that forks
// goes on, and its child too.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <thread>
#include <vector>

#include "rltools/devices/host_threads.h"

using namespace rlt;
using threads::available_processors;
using threads::Pool;

namespace {

// Two tasks: how often each was done.
struct Counted {
  long calls[2] = {};
  void operator()(int index) { calls[index]++; }
};

// How many threads compute, the caller among them: of `count` tasks, each of which waits until as
// many have begun as threads exist, for as long as these may take, and then a while for others.
int threads_of(Pool& pool, int count, int existing) {
  std::atomic<int> begun{0};
  std::vector<pthread_t> on(static_cast<std::size_t>(count));
  const auto tasks = [&](int index) {
    on[static_cast<std::size_t>(index)] = pthread_self();
    begun++;
    for (int i = 0; i < 100000 && begun < existing; i++) usleep(100);
    for (int i = 0; i < 1000 && begun < count; i++) usleep(100);
  };
  pool.run_long_tasks(count, tasks);
  std::sort(on.begin(), on.end());
  return static_cast<int>(std::unique(on.begin(), on.end()) - on.begin());
}
int threads_of(Pool& pool, int count) { return threads_of(pool, count, count); }

double processor_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

#if !defined(__SANITIZE_THREAD__)  // which does not support threads in a forked child
namespace {

// Ends with the status 0 where `function` returns true, and by an alarm where it hangs.
template <class Function>
int status_of_child(Function&& function) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(function() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)  // which needs all of the addresses
namespace {

std::size_t address_space_bytes() {
  std::size_t pages = 0;
  if (std::FILE* statm = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(statm, "%zu", &pages) != 1) pages = 0;
    std::fclose(statm);
  }
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

// The first test, as the system keeps the stacks of threads that have ended for others.
TEST_CASE("threads that are not to be had are done without" *
          doctest::skip(available_processors() < 2)) {
  static Pool pool;
  REQUIRE(pool.set_threads(6));
  for (const int stacks : {0, 2}) {  // of 8 MiB each, for which there is room
    CAPTURE(stacks);
    CHECK(status_of_child([&] {
            const rlim_t room = static_cast<rlim_t>(stacks * 8 + 4) << 20;
            const rlim_t limit = address_space_bytes() + room;
            const rlimit limits{limit, limit};
            if (setrlimit(RLIMIT_AS, &limits) != 0) return false;
            Counted counted;
            pool.run_tasks(2, counted);
            return threads_of(pool, 6, stacks + 1) == stacks + 1 &&
                   threads_of(pool, stacks + 1) == stacks + 1 && counted.calls[1] == 1;
          }) == 0);
  }
}
#endif
#endif

TEST_CASE("no task, and a single one, are the caller's" *
          doctest::skip(available_processors() < 2)) {
  static Pool none, one;
  int calls = 0;
  const auto count = [&](int index) { calls += index == 0 ? 1 : 100; };
  none.run_tasks(0, count);
  none.run_long_tasks(0, count);
  CHECK(calls == 0);
  one.run_tasks(1, count);
  one.run_long_tasks(1, count);
  CHECK(calls == 2);
}

TEST_CASE("each task is done once, whatever there is to wait for") {
  static Pool pool;
  Counted counted;
  for (int i = 0; i < 20000; i++) pool.run_tasks(2, counted);
  CHECK(counted.calls[0] == 20000);
  CHECK(counted.calls[1] == 20000);
  for (int i = 0; i < 20; i++) {  // the thread has fallen asleep
    usleep(5000);
    pool.run_tasks(2, counted);
  }
  CHECK(counted.calls[1] == 20020);
}

TEST_CASE("any number of tasks is done, each once, by any number of threads") {
  static Pool pool;
  for (const int threads : {1, 2, 3, 5}) {
    REQUIRE(pool.set_threads(threads));
    for (const int count : {0, 1, 2, 3, 7, 64}) {
      for (int repetition = 0; repetition < 100; repetition++) {
        std::atomic<int> calls[64] = {};
        const auto task = [&](int index) { calls[index]++; };
        if (repetition % 2 == 0) pool.run_tasks(count, task);
        if (repetition % 2 == 1) pool.run_long_tasks(count, task);
        bool once_each = true;
        for (int i = 0; i < 64; i++) once_each = once_each && calls[i] == (i < count ? 1 : 0);
        REQUIRE(once_each);
      }
    }
  }
}

TEST_CASE("tasks that are not alike give the same on one thread, on two and on three") {
  static Pool pool;
  const auto results = [](int threads) {
    REQUIRE(pool.set_threads(threads));
    HostThreads device;
    device.pool = &pool;
    std::vector<float> sums(64);
    for (int repetition = 0; repetition < 20; repetition++) {
      for_each_index(device, 64, [&](HostSimd, int index) {
        float& sum = sums[static_cast<std::size_t>(index)];
        const int terms = index % 7 == 0 ? 20000 : 100 + index;
        for (int i = 0; i < terms; i++) sum += 1.0f / static_cast<float>(i + index + 1);
      });
    }
    return sums;
  };
  const std::vector<float> expected = results(1);
  CHECK(results(2) == expected);
  CHECK(results(3) == expected);
}

// One task is as long as all others together: who has it leaves those to the other thread.
TEST_CASE("a thread in a long task leaves the others to those that are free" *
          doctest::skip(available_processors() < 2)) {
  static Pool pool;
  for (const int longest : {0, 63}) {
    CAPTURE(longest);
    std::atomic<int> others{0};
    bool were_done_meanwhile = false;
    const auto task = [&](int index) {
      if (index != longest) {
        others++;
        return;
      }
      // A worker's first claim has the tasks beside it.
      for (int i = 0; i < 100000 && others < 55; i++) usleep(100);
      were_done_meanwhile = others >= 55;
    };
    pool.run_long_tasks(64, task);
    CHECK(were_done_meanwhile);
    CHECK(others == 63);
  }
}

TEST_CASE("as many threads compute as there are to be" *
          doctest::skip(available_processors() < 2)) {
  static Pool pool;
  CHECK(threads_of(pool, 2) == 2);
  CHECK(threads_of(pool, 3, 2) == 2);  // by default
  for (const int threads : {3, 1, 5, 2, 2}) {
    CAPTURE(threads);
    REQUIRE(pool.set_threads(threads));
    CHECK(threads_of(pool, threads) == threads);
    CHECK(threads_of(pool, threads + 1, threads) == threads);
  }
}

TEST_CASE("the number of threads has bounds, and is not changed from within a task") {
  static Pool pool;
  for (const int threads : {-1, 0, Pool::kMaxThreads + 1}) CHECK_FALSE(pool.set_threads(threads));
  CHECK(pool.set_threads(Pool::kMaxThreads));
  CHECK(pool.set_threads(3));
  std::atomic<int> accepted{0};
  const auto task = [&](int) { accepted += pool.set_threads(2) ? 1 : 0; };
  pool.run_long_tasks(8, task);
  CHECK(accepted == 0);
  if (available_processors() > 1) CHECK(threads_of(pool, 3) == 3);
}

TEST_CASE("a device computes with the pool that it carries, and alone while that is taken" *
          doctest::skip(available_processors() < 2)) {
  static Pool own;  // and the process's pool has not been used
  HostThreads device;
  device.pool = &own;
  for (const bool are_long : {false, true}) {
    std::atomic<bool> is_done{false};
    bool was_alone = false;
    const auto inner = [&](int index) {
      if (index == 1) is_done = true;
      for (int i = 0; index == 0 && i < 2000 && !is_done; i++) usleep(100);
      if (index == 0) was_alone = !is_done;
    };
    const auto outer = [&](int index) {
      if (index == 0 && are_long) run_long_tasks(device, 2, inner);
      if (index == 0 && !are_long) run_tasks(device, 2, inner);
    };
    own.run_long_tasks(2, outer);
    CHECK(was_alone);
    CHECK(is_done);
  }
}

TEST_CASE("tasks within a task are done by the thread that comes to them") {
  static Pool pool;
  REQUIRE(pool.set_threads(3));
  std::atomic<int> sums[3][3] = {};
  for (int i = 0; i < 1000; i++) {
    const auto outer = [&](int row) {
      const auto inner = [&](int column) { sums[row][column]++; };
      pool.run_tasks(3, inner);
    };
    pool.run_tasks(3, outer);
  }
  for (const auto& row : sums) {
    for (const auto& sum : row) CHECK(sum == 1000);
  }
}

TEST_CASE("the threads take no processor time while there is nothing to do") {
  static Pool pool;
  REQUIRE(pool.set_threads(4));
  Counted counted;
  pool.run_tasks(2, counted);
  const double before = processor_seconds();
  usleep(400000);
  CHECK(processor_seconds() - before < 0.2);
}

#if !defined(__SANITIZE_THREAD__)
TEST_CASE("the child of a fork has threads of its own" *
          doctest::skip(available_processors() < 2)) {
  static Pool pool;
  REQUIRE(pool.set_threads(3));
  REQUIRE(threads_of(pool, 3) == 3);
  CHECK(status_of_child([&] { return threads_of(pool, 3) == 3; }) == 0);
  CHECK(status_of_child([&] { return pool.set_threads(2) && threads_of(pool, 2) == 2; }) == 0);
  Counted counted;
  for (int i = 0; i < 1000; i++) pool.run_tasks(2, counted);
  CHECK(counted.calls[1] == 1000);
}

// A worker holds the mutex when it falls asleep and when it wakes up, some 0.1 ms after a task.
TEST_CASE("a fork at any time leaves neither process waiting") {
  static Pool pool;
  REQUIRE(pool.set_threads(3));
  Counted counted;
  for (int i = 0; i < 300; i++) {
    pool.run_tasks(2, counted);
    usleep(static_cast<unsigned>(i % 30 * 10));
    const int status = status_of_child([&] {
      Counted own;
      for (int k = 0; k < 3; k++) pool.run_tasks(2, own);
      return own.calls[0] == 3 && own.calls[1] == 3;
    });
    REQUIRE(status == 0);
  }
  CHECK(counted.calls[1] == 300);
}

TEST_CASE("a fork while another thread computes leaves neither process waiting") {
  static Pool pool;
  std::atomic<bool> is_over{false};
  std::atomic<long> done{0};
  std::thread computing([&] {
    Counted counted;
    while (!is_over) pool.run_tasks(2, counted);
    done = counted.calls[0] == counted.calls[1] ? counted.calls[0] : -1;
  });
  for (int i = 0; i < 100; i++) {
    REQUIRE(status_of_child([&] {
              Counted own;
              pool.run_tasks(2, own);
              return own.calls[0] == 1 && own.calls[1] == 1;
            }) == 0);
  }
  is_over = true;
  computing.join();
  CHECK(done > 0);
}

TEST_CASE("a task may fork, and its child goes on alone") {
  static Pool pool;
  for (int i = 0; i < 50; i++) {
    int status = -1;
    std::atomic<int> calls{0};
    bool is_child = false;
    const auto tasks = [&](int index) {
      calls++;
      if (index > 0) return;
      const pid_t child = fork();
      is_child = child == 0;
      if (is_child) {
        alarm(60);
      } else {
        waitpid(child, &status, 0);
      }
    };
    pool.run_tasks(3, tasks);
    if (is_child) _exit(calls == 3 ? 0 : 1);
    REQUIRE(status == 0);
    REQUIRE(calls == 3);
  }
}

TEST_CASE("where one processor is, the caller does all tasks" *
          doctest::skip(available_processors() < 2)) {
  static Pool pool;
  CHECK(status_of_child([&] {
          cpu_set_t one;
          CPU_ZERO(&one);
          CPU_SET(threads::current_processor(), &one);
          if (sched_setaffinity(0, sizeof one, &one) != 0) return false;
          return pool.set_threads(4) && threads_of(pool, 4, 1) == 1;
        }) == 0);
}
#endif
