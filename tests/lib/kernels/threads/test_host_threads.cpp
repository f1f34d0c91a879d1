// Test: -Og threads
// The device with several threads: a network and a training run end in the bits of one thread.
// Other algorithms: test_training_on_threads.cpp; the pool of threads itself: test_pool.cpp.
#include <dirent.h>
#include <doctest/doctest.h>
#include <sched.h>

#include <cstdint>
#include <string>

#include "pendulum_td3.h"
#include "rltools/devices/host_threads.h"
#include "training_run.h"

using namespace rlt;
using training_run::hash_after;

namespace {

threads::Pool own_pool;

// Of this process; 0 where /proc does not tell.
int running_threads() {
  int count = 0;
  if (DIR* const folder = opendir("/proc/self/task")) {
    while (const dirent* const entry = readdir(folder)) count += entry->d_name[0] != '.';
    closedir(folder);
  }
  return count;
}
const int kThreadsAtFirst = running_threads();

// The same with so many threads, on a device with a pool of its own, which every kernel passes on:
// one that made up a device would start the process's pool.
template <class E>
std::string hash_on_threads(int threads, std::uint32_t steps) {
  HostThreads device;
  device.pool = &own_pool;
  REQUIRE(set_threads(device, threads));
  REQUIRE(set_threads(HostThreads{}, 2));  // begun when something uses it
  const std::string hash = hash_after<E>(device, steps);
  CHECK(running_threads() <= kThreadsAtFirst + threads - 1);
  return hash;
}

template <class E>
using WholeBatch = WithTileRows<E, E::kBatchSize>;
template <class E>
using Shared = WithSecondCriticScratch<WholeBatch<E>>;

struct ThreePendulums : PendulumTd3 {
  static constexpr int kEnvironments = 3, kEpisodeSteps = 30;
};

template <class E>
struct Normalized : E {
  static constexpr bool kNormalized = true;
  static constexpr int kAveragedUpdates = 20;  // of the actor, which is the policy
};

}  // namespace

TEST_CASE("TD3 ends with the same bits on one thread, on two and on three") {
  using E = Normalized<ThreePendulums>;
  constexpr std::uint32_t kSteps = 120;
  const std::string expected = hash_after<E>(Generic{}, kSteps);
  for (const int threads : {1, 2, 3}) {
    CAPTURE(threads);
    CHECK(hash_on_threads<Shared<E>>(threads, kSteps) == expected);
  }
}

TEST_CASE("a board's scratch memory has room for one critic's work only") {
  CHECK(Scratch<PendulumTd3>::kGradients == 1);
  CHECK(Scratch<PendulumTd3>::kPasses == 1);
  CHECK(sizeof(Scratch<PendulumTd3>) < sizeof(Scratch<WithSecondCriticScratch<PendulumTd3>>));
}

TEST_CASE("ranges cover all elements, in whole cache lines") {
  static_assert(range_begin<100, 3, 1>(0) == 0 && range_begin<100, 3, 1>(3) == 100);
  static_assert(range_begin<101, 2, 1>(1) == 51);
  static_assert(range_begin<4545, 2, 16>(1) % 16 == 0 && range_begin<4545, 2, 16>(2) == 4545);
  int covered[4545] = {};
  for_ranges<4545, 8, 16>(HostThreads{}, [&](auto, auto range) {
    for (int i = 0; i < decltype(range)::kCount; i++) covered[decltype(range)::kFirst + i]++;
  });
  for (const int times : covered) REQUIRE(times == 1);
}

#if defined(__linux__)
TEST_CASE("a process that is left with one processor goes on with the same bits") {
  const auto nothing = [](int) {};
  run_tasks(HostThreads{}, 2, nothing);
  cpu_set_t before, one;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(threads::available_processors() == 1);
  using Experiment = Normalized<ThreePendulums>;
  const std::string hash = hash_after<Shared<Experiment>>(HostThreads{}, 120);
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
  CHECK(hash == hash_after<Experiment>(Generic{}, 120));
}
#endif
