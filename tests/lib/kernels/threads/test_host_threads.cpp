// Test: -Og threads
// The device with several threads: a network and a training run end in the bits of one thread.
// Other algorithms: test_training_on_threads.cpp; the pool of threads itself: test_pool.cpp.
#include <dirent.h>
#include <doctest/doctest.h>
#include <sched.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "pendulum_td3.h"
#include "rltools/devices/host_threads.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

threads::Pool own_pool;

template <class E, class Device>
std::string hash_after(Device device, std::uint32_t steps) {
  Run<E> run(7);
  initialize(device, run.training);
  run.train(device, steps);
  return run.state_sha256();
}

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

// Forward and both backward passes of a batch of 101 (not a multiple of a tile, nor of two).
template <class Network>
struct Passes {
  static constexpr int kBatch = 101;
  Matrix<float, kBatch, Network::kInputDim> input, input_gradient, only_input_gradient;
  Matrix<float, kBatch, 1> last_input_gradient;
  Matrix<float, kBatch, Network::kOutputDim> output, output_gradient;
  MlpBuffer<Network, kBatch> buffer;
  GradientBuffer<float, kBatch, Network::widest_hidden()> gradient_buffer;
  Network network, gradient;
  AdamState<Network> optimizer;

  template <class Device>
  void run(Device device) {
    const auto fill = [&](auto& matrix, std::uint32_t index) {
      fill_standard_normal(device, {5, Purpose::shuffle, index}, matrix.data(),
                           kBatch * std::decay_t<decltype(matrix)>::kColumns);
    };
    initialize_kaiming(device, network, 5, 0);
    initialize(optimizer);
    set_zero(gradient);
    fill(input, 0);
    forward(device, network, input, output, buffer);
    fill(output_gradient, 1);
    backward_input(device, network, input, output, buffer, output_gradient.data(),
                   only_input_gradient.data(), gradient_buffer);
    fill(output_gradient, 1);
    backward_input<Network::kInputDim - 1>(device, network, input, output, buffer,
                                           output_gradient.data(), last_input_gradient.data(),
                                           gradient_buffer);
    fill(output_gradient, 1);
    backward(device, network, input, output, buffer, output_gradient.data(), gradient,
             input_gradient.data(), gradient_buffer);
    adam_step(device, AdamParameters<float>{1e-3f, 0.9f, 0.999f, 1e-8f}, optimizer, gradient,
              network);
  }
};

template <class Network>
void require_same_passes(int threads) {
  HostThreads device;
  device.pool = &own_pool;
  REQUIRE(set_threads(device, threads));
  const auto one = std::make_unique<Passes<Network>>();
  const auto two = std::make_unique<Passes<Network>>();
  one->run(HostSimd{});
  two->run(device);
  const auto same = [](const auto& a, const auto& b) {
    return std::memcmp(a.values, b.values, sizeof a.values) == 0;
  };
  CHECK(same(one->output, two->output));
  CHECK(same(one->only_input_gradient, two->only_input_gradient));
  CHECK(same(one->input_gradient, two->input_gradient));
  CHECK(same(one->gradient, two->gradient));
  CHECK(same(one->network, two->network));
  CHECK(same(one->only_input_gradient, one->input_gradient));
  CHECK(same(one->last_input_gradient, two->last_input_gradient));
  for (int row = 0; row < Passes<Network>::kBatch; row++) {
    CHECK(one->last_input_gradient(row, 0) == one->input_gradient(row, Network::kInputDim - 1));
  }
}

}  // namespace

TEST_CASE("a network gives the bits of one thread") {
  for (const int threads : {1, 2, 3}) {
    CAPTURE(threads);
    // The second layer is divided into more parts than there are threads.
    require_same_passes<
        Mlp<float, Dimensions<33, 150, 131, 3>, Activation::gelu, Activation::identity>>(threads);
  }
}

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
