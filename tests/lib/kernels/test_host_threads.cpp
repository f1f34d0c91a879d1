// The device with a second thread: networks and whole training runs end in the bits of one thread,
// and the thread itself hands over, sleeps and does without a processor of its own.
#include <doctest/doctest.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
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

// Two tasks: how often each was done, and on which thread at last.
struct Counted {
  long calls[2] = {};
  pthread_t thread[2] = {};
  void operator()(int index) {
    calls[index]++;
    thread[index] = pthread_self();
  }
};

// Whether the second of two tasks is done by another thread, for which the first one waits. Only of
// a thread that has not been late yet: its caller would work alone for some hundred calls.
bool has_worker(threads::SecondThread& thread) {
  std::atomic<bool> is_done{false};
  bool on_other_thread = false;
  const pthread_t caller = pthread_self();
  const auto tasks = [&](int index) {
    if (index == 0) {
      for (int i = 0; i < 100000 && !is_done; i++) usleep(100);
    } else {
      on_other_thread = !pthread_equal(pthread_self(), caller);
      is_done = true;
    }
  };
  thread.run_tasks(2, tasks);
  return on_other_thread;
}

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

TEST_CASE("each task is done once, whatever there is to wait for") {
  Counted counted;
  for (int i = 0; i < 20000; i++) run_tasks(HostThreads{}, 2, counted);
  CHECK(counted.calls[0] == 20000);
  CHECK(counted.calls[1] == 20000);
  for (int i = 0; i < 20; i++) {  // the thread has fallen asleep
    usleep(5000);
    run_tasks(HostThreads{}, 2, counted);
  }
  CHECK(counted.calls[1] == 20020);
  CHECK(pthread_equal(counted.thread[0], pthread_self()));
}

TEST_CASE("any number of tasks is done, each once") {
  for (const int count : {0, 1, 2, 3, 7, 64}) {
    for (int repetition = 0; repetition < 500; repetition++) {
      std::atomic<int> calls[64] = {};
      run_tasks(HostThreads{}, count, [&](int index) { calls[index]++; });
      bool once_each = true;
      for (int i = 0; i < 64; i++) once_each = once_each && calls[i] == (i < count ? 1 : 0);
      REQUIRE(once_each);
    }
  }
}

TEST_CASE("ranges cover all elements, in whole cache lines") {
  static_assert(range_begin<100, 3, 1>(0) == 0 && range_begin<100, 3, 1>(3) == 100);
  static_assert(range_begin<101, 2, 1>(1) == 51);
  static_assert(range_begin<4545, 2, 16>(1) % 16 == 0 && range_begin<4545, 2, 16>(2) == 4545);
  int covered[4545] = {};
  for_ranges<4545, true, 16>(HostThreads{}, [&](auto, auto range) {
    for (int i = 0; i < decltype(range)::kCount; i++) covered[decltype(range)::kFirst + i]++;
  });
  for (const int times : covered) REQUIRE(times == 1);
}

TEST_CASE("where two processors are, the second thread takes a task" *
          doctest::skip(threads::available_processors() < 2)) {
  static threads::SecondThread thread;  // of its own: it is not working alone
  CHECK(has_worker(thread));
}

TEST_CASE("a device computes with the thread that it carries") {
  static threads::SecondThread thread;
  HostThreads device;
  device.thread = &thread;
  std::atomic<bool> is_done{false};
  bool was_alone = false;
  // While its thread is taken, the device's tasks are the caller's, one after another.
  const auto tasks = [&](int index) {
    if (index == 1) return;
    run_tasks(device, 2, [&](int inner) {
      if (inner == 1) is_done = true;
      if (inner == 0) {
        for (int i = 0; i < 500 && !is_done; i++) usleep(100);
        was_alone = !is_done;
      }
    });
  };
  thread.run_tasks(2, tasks);
  CHECK(was_alone);
  CHECK(is_done);
}

TEST_CASE("tasks within a task are done by the thread that comes to them") {
  std::atomic<int> sums[2][2] = {};
  for (int i = 0; i < 1000; i++) {
    run_tasks(HostThreads{}, 2, [&](int outer) {
      run_tasks(HostThreads{}, 2, [&](int inner) { sums[outer][inner]++; });
    });
  }
  for (const auto& pair : sums) {
    for (const auto& sum : pair) CHECK(sum == 1000);
  }
}

TEST_CASE("the thread takes no processor time while there is nothing to do") {
  Counted counted;
  run_tasks(HostThreads{}, 2, counted);
  const double before = processor_seconds();
  usleep(400000);
  CHECK(processor_seconds() - before < 0.2);
}

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

TEST_CASE("the child of a fork has a thread of its own" *
          doctest::skip(threads::available_processors() < 2)) {
  static threads::SecondThread thread;
  REQUIRE(has_worker(thread));
  CHECK(status_of_child([&] { return has_worker(thread); }) == 0);
  Counted counted;
  for (int i = 0; i < 1000; i++) thread.run_tasks(2, counted);
  CHECK(counted.calls[1] == 1000);
}

// The thread holds its mutex when it falls asleep and when it wakes up, some 0.1 ms after a task.
TEST_CASE("a fork at any time leaves neither process waiting") {
  static threads::SecondThread thread;
  Counted counted;
  for (int i = 0; i < 300; i++) {
    thread.run_tasks(2, counted);
    usleep(static_cast<unsigned>(i % 30 * 10));
    const int status = status_of_child([&] {
      Counted own;
      for (int k = 0; k < 3; k++) thread.run_tasks(2, own);
      return own.calls[0] == 3 && own.calls[1] == 3;
    });
    REQUIRE(status == 0);
  }
  CHECK(counted.calls[1] == 300);
}

TEST_CASE("a fork while another thread computes leaves neither process waiting") {
  static threads::SecondThread thread;
  std::atomic<bool> is_over{false};
  std::atomic<long> done{0};
  std::thread computing([&] {
    Counted counted;
    while (!is_over) thread.run_tasks(2, counted);
    done = counted.calls[0] == counted.calls[1] ? counted.calls[0] : -1;
  });
  for (int i = 0; i < 100; i++) {
    REQUIRE(status_of_child([&] {
              Counted own;
              thread.run_tasks(2, own);
              return own.calls[0] == 1 && own.calls[1] == 1;
            }) == 0);
  }
  is_over = true;
  computing.join();
  CHECK(done > 0);
}

TEST_CASE("a task may fork, and its child goes on alone") {
  static threads::SecondThread thread;
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
    thread.run_tasks(3, tasks);
    if (is_child) _exit(calls == 3 ? 0 : 1);
    REQUIRE(status == 0);
    REQUIRE(calls == 3);
  }
}
#endif

#if defined(__linux__)
TEST_CASE("a process that is left with one processor goes on with the same bits") {
  Counted counted;
  run_tasks(HostThreads{}, 2, counted);
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
