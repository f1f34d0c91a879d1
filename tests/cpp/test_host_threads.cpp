// The device with a second thread: networks and whole training runs end in the bits of one thread,
// and the thread itself hands over, sleeps and does without a processor of its own.
#include <doctest/doctest.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "pendulum_sac.h"
#include "pendulum_td3.h"
#include "rltools/devices/host_threads.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

template <class E, class Device>
std::string hash_after(Device device, std::uint32_t steps) {
  Run<E> run(7);
  initialize(device, run.training);
  run.train(device, steps);
  return run.state_sha256();
}

template <class E>
using WholeBatch = WithTileRows<E, E::kBatchSize>;

// Forward and both backward passes of a batch of 101 (not a multiple of a tile, nor of two).
template <class Network>
struct Passes {
  static constexpr int kBatch = 101;
  Matrix<float, kBatch, Network::kInputDim> input, input_gradient, only_input_gradient;
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
    backward(device, network, input, output, buffer, output_gradient.data(), gradient,
             input_gradient.data(), gradient_buffer);
    adam_step(device, AdamParameters<float>{1e-3f, 0.9f, 0.999f, 1e-8f}, optimizer, gradient,
              network);
  }
};

template <class Network>
void require_same_passes() {
  const auto one = std::make_unique<Passes<Network>>();
  const auto two = std::make_unique<Passes<Network>>();
  one->run(HostSimd{});
  two->run(HostThreads{});
  const auto same = [](const auto& a, const auto& b) {
    return std::memcmp(a.values, b.values, sizeof a.values) == 0;
  };
  CHECK(same(one->output, two->output));
  CHECK(same(one->only_input_gradient, two->only_input_gradient));
  CHECK(same(one->input_gradient, two->input_gradient));
  CHECK(same(one->gradient, two->gradient));
  CHECK(same(one->network, two->network));
  CHECK(same(one->only_input_gradient, one->input_gradient));
}

// A piece of work: how often it ran, and on which thread.
struct Counted {
  long calls = 0;
  pthread_t thread{};
  void operator()() {
    calls++;
    thread = pthread_self();
  }
};

double processor_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

TEST_CASE("networks of every activation and depth give the bits of one thread") {
  require_same_passes<Mlp<float, Dimensions<4, 64, 64, 1>, Activation::relu, Activation::tanh>>();
  require_same_passes<
      Mlp<float, Dimensions<33, 65, 47, 66, 31, 3>, Activation::gelu, Activation::identity>>();
  require_same_passes<Mlp<float, Dimensions<300, 20>, Activation::relu, Activation::tanh>>();
}

TEST_CASE("TD3 ends with the same bits on one thread and on two") {
  const std::string expected = hash_after<PendulumTd3>(Generic{}, 250);
  CHECK(hash_after<WholeBatch<PendulumTd3>>(HostSimd{}, 250) == expected);
  CHECK(hash_after<WithSecondCriticScratch<PendulumTd3>>(HostSimd{}, 250) == expected);
  CHECK(hash_after<WholeBatch<PendulumTd3>>(HostThreads{}, 250) == expected);
  CHECK(hash_after<WithSecondCriticScratch<PendulumTd3>>(HostThreads{}, 250) == expected);
  CHECK(hash_after<WithSecondCriticScratch<WholeBatch<PendulumTd3>>>(HostThreads{}, 250) ==
        expected);
}

TEST_CASE("SAC ends with the same bits on one thread and on two") {
  const std::string expected = hash_after<PendulumSac>(Generic{}, 200);
  CHECK(hash_after<WithSecondCriticScratch<PendulumSac>>(HostSimd{}, 200) == expected);
  CHECK(hash_after<WholeBatch<PendulumSac>>(HostThreads{}, 200) == expected);
  CHECK(hash_after<WithSecondCriticScratch<WholeBatch<PendulumSac>>>(HostThreads{}, 200) ==
        expected);
}

TEST_CASE("a board's scratch memory has room for one critic's work only") {
  CHECK(Scratch<PendulumTd3>::kGradients == 1);
  CHECK(Scratch<PendulumTd3>::kPasses == 1);
  CHECK(sizeof(Scratch<PendulumTd3>) < sizeof(Scratch<WithSecondCriticScratch<PendulumTd3>>));
}

TEST_CASE("both pieces of work run once each, whatever there is to wait for") {
  Counted first, second;
  const auto both = [&] { call_both(HostThreads{}, first, second); };
  for (int i = 0; i < 20000; i++) both();
  CHECK(first.calls == 20000);
  CHECK(second.calls == 20000);
  for (int i = 0; i < 20; i++) {  // the thread has fallen asleep
    usleep(5000);
    both();
  }
  CHECK(second.calls == 20020);
  CHECK(pthread_equal(first.thread, pthread_self()));
}

TEST_CASE("where two processors are, the second thread takes work" *
          doctest::skip(threads::available_processors() < 2)) {
  static threads::SecondThread thread;  // of its own: it is not working alone
  std::atomic<bool> has_run{false};
  pthread_t where = pthread_self();
  auto first = [&] {
    for (int i = 0; i < 100000 && !has_run; i++) usleep(100);
  };
  auto second = [&] {
    where = pthread_self();
    has_run = true;
  };
  thread.run_both(first, second);
  CHECK(has_run);
  CHECK(!pthread_equal(where, pthread_self()));
}

TEST_CASE("work within work is done by whoever comes to it") {
  int sums[4] = {};
  for (int i = 0; i < 1000; i++) {
    run_both(
        HostThreads{},
        [&](auto) { run_both(HostThreads{}, [&](auto) { sums[0]++; }, [&](auto) { sums[1]++; }); },
        [&](auto) { run_both(HostThreads{}, [&](auto) { sums[2]++; }, [&](auto) { sums[3]++; }); });
  }
  for (const int sum : sums) CHECK(sum == 1000);
}

TEST_CASE("the thread takes no processor time while there is nothing to do") {
  Counted first, second;
  call_both(HostThreads{}, first, second);
  const double before = processor_seconds();
  usleep(400000);
  CHECK(processor_seconds() - before < 0.2);
}

#if defined(__linux__)
TEST_CASE("a process that is left with one processor goes on with the same bits") {
  Counted first, second;
  call_both(HostThreads{}, first, second);
  cpu_set_t before, one;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(threads::available_processors() == 1);
  using Experiment = WithSecondCriticScratch<WholeBatch<PendulumTd3>>;
  const std::string hash = hash_after<Experiment>(HostThreads{}, 250);
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
  CHECK(hash == hash_after<WholeBatch<PendulumTd3>>(HostSimd{}, 250));
}
#endif
