// two_threads STEPS REPETITIONS: a training run of TD3 on Pendulum-v1 with one thread and with two,
// in turn, as JSON. `rlt bench roofline` holds this program to two cores and evaluates what it
// prints; a run with one thread is held to one of them here.
#include <sched.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "app/services/training/state_bytes.h"
#include "pendulum_td3.h"
#include "rltools/devices/host_threads.h"

namespace rlt {

namespace two_threads {

// As firmware/app/train/trained_experiment.h does for these devices.
using WholeBatch = WithTileRows<PendulumTd3, PendulumTd3::kBatchSize>;
using BothCritics = WithSecondCriticScratch<WholeBatch>;

template <class E>
struct Memory {
  Learner<E> learner;
  Replay<E> replay;
  Scratch<E> scratch;
};

Memory<WholeBatch> one;
Memory<BothCritics> two;

struct Run {
  double wall_s;
  std::uint8_t digest[32];
};

// From the first step to the last.
template <class E, class Device>
Run timed_run(Device device, Memory<E>& memory, std::uint32_t steps) {
  using Clock = std::chrono::steady_clock;
  Training<E> training{{}, memory.learner, memory.replay, memory.scratch};
  training.hyperparameters.steps = steps;
  initialize(device, training);
  const auto started = Clock::now();
  while (!finished(training)) train_step(device, training);
  Run run;
  run.wall_s = std::chrono::duration<double>(Clock::now() - started).count();
  hash_state(training, run.digest);
  return run;
}

#if defined(__linux__)
// Holds the calling thread to the last processor of those that it may use, until the end of the
// block.
class OneProcessor {
 public:
  OneProcessor() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t last;
    CPU_ZERO(&last);
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && CPU_COUNT(&last) == 0; cpu--) {
      if (CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &last);
    }
    sched_setaffinity(0, sizeof last, &last);
  }
  ~OneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  cpu_set_t before_;
};
#else
struct OneProcessor {
  OneProcessor() {}
};
#endif

int run(std::uint32_t steps, int repetitions) {
  bool same_bits = true;
  const int processors = threads::available_processors();
  std::printf("{\"processors\": %d, \"steps\": %u, \"runs\": [", processors, steps);
  for (int repetition = 0; repetition < repetitions; repetition++) {
    Run with_one;
    {
      const OneProcessor held;
      with_one = timed_run(HostSimd{}, one, steps);
    }
    const Run with_two = timed_run(HostThreads{}, two, steps);
    same_bits = same_bits && std::memcmp(with_one.digest, with_two.digest, 32) == 0;
    std::printf("%s{\"one_thread_s\": %.9g, \"two_threads_s\": %.9g}", repetition ? ", " : "",
                with_one.wall_s, with_two.wall_s);
  }
  std::printf("], \"same_bits\": %s}\n", same_bits ? "true" : "false");
  return 0;
}

}  // namespace two_threads

}  // namespace rlt

int main(int argument_count, char** arguments) {
  const auto number = [&](int index) {
    return argument_count == 3 ? std::strtoul(arguments[index], nullptr, 10) : 0;
  };
  const unsigned long steps = number(1), repetitions = number(2);
  if (steps < 1 || repetitions < 1) {
    std::fprintf(stderr, "usage: two_threads STEPS REPETITIONS\n");
    return 2;
  }
  return rlt::two_threads::run(static_cast<std::uint32_t>(steps), static_cast<int>(repetitions));
}
