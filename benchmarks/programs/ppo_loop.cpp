// ppo_loop SEED STEPS: training of ant-ppo in one process as the firmware of board host-threads
// does it, with the threads that RLT_THREADS says, but without link, screen, log and evaluations.
// It takes turns with `rlt bench ppo`'s other contenders (peers/turns.py): an order is a
// number of environment steps, in whole iterations.
// Requires: mujoco
#define RLT_EXPERIMENT AntPpo
#define RLT_EXPERIMENT_HEADER "ant_ppo.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "app/train/trained_experiment.h"
#include "host/thread_count.h"
#include "measuring.h"

namespace rlt {

template StepReport<program::Experiment> train_step(RLT_DEVICE, Training<program::Experiment>&);

namespace {

using E = program::Experiment;
using Clock = std::chrono::steady_clock;

constexpr int kEnvironments = kEnvironmentCount<E>;

// The mean of the last 100 training episodes' returns.
class Returns {
 public:
  // After a step of every environment.
  void note(const Replay<E>& rollout) {
    const int first = (static_cast<int>(rollout.size) - 1) * kEnvironments;
    for (int i = 0; i < kEnvironments; i++) {
      running_[i] += static_cast<double>(rollout.reward[first + i]);
      if (rollout.done[first + i] == rollout.kRunning) continue;
      last_[ended_++ % kWindow] = running_[i];
      running_[i] = 0;
    }
  }
  std::uint32_t ended() const { return ended_; }
  void print_mean() const {
    if (ended_ < kWindow) {
      std::printf("null");
      return;
    }
    double sum = 0;
    for (const double value : last_) sum += value;
    std::printf("%.9g", sum / kWindow);
  }

 private:
  static constexpr std::uint32_t kWindow = 100;
  double running_[kEnvironments] = {}, last_[kWindow] = {};
  std::uint32_t ended_ = 0;
};

// False where training has met a number that is not finite, and where the run is at its end.
bool one_iteration(Training<E>& training, Returns& returns) {
  do {
    if (finished(training)) return false;
    const std::uint32_t before = training.replay.size;
    if (!train_step(RLT_DEVICE{}, training).finite) return false;
    if (training.replay.size > before) returns.note(training.replay);
  } while (!E::Algorithm::is_complete(training));
  return true;
}

int run(std::uint32_t seed, std::uint32_t steps) {
  static Learner<E> learner;
  static Replay<E> replay;
  static Scratch<E> scratch;
  static Returns returns;
  Training<E> training{{}, learner, replay, scratch};
  training.hyperparameters.seed = seed;
  training.hyperparameters.steps = steps;
  if (!take_thread_count(RLT_DEVICE{}, RLT_BOARD_NAME)) return 2;
  initialize(RLT_DEVICE{}, training);
  const char* threads = std::getenv("RLT_THREADS");
  std::printf(
      "{\"version\": \"\", \"observation_dim\": %d, \"action_dim\": %d, "
      "\"threads\": {\"host-threads\": %s}, \"simulator\": \"MuJoCo %s\", "
      "\"settings\": \"%d x %d, %d, %u epochs, 256-256\"}\n",
      E::Environment::kObservationDim, E::Environment::kActionDim,
      threads != nullptr && threads[0] != '\0' ? threads : "2", mj_versionString(), kEnvironments,
      E::kRolloutSteps, E::kBatchSize, training.hyperparameters.n_epochs);
  std::fflush(stdout);
  unsigned long wanted = 0;
  while (std::scanf("%lu", &wanted) == 1) {
    const std::uint32_t from = learner.progress.step;
    const auto began = Clock::now();
    const double processor_began = processor_seconds();
    bool goes_on = true;
    std::printf("{\"iterations\": [");
    while (goes_on && learner.progress.step - from < wanted) {
      const bool is_first = learner.progress.step == from;
      goes_on = one_iteration(training, returns);
      if (!goes_on) break;
      std::printf("%s{\"wall_s\": %.9g, \"steps\": %u, \"return_mean\": ", is_first ? "" : ", ",
                  std::chrono::duration<double>(Clock::now() - began).count(),
                  learner.progress.step);
      returns.print_mean();
      std::printf("}");
    }
    std::printf("], \"steps\": %u, \"cpu_s\": %.9g, \"episodes\": %u}\n",
                learner.progress.step - from, processor_seconds() - processor_began,
                returns.ended());
    std::fflush(stdout);
    if (!goes_on) {
      std::fprintf(stderr, "training is at its end after %u steps\n", learner.progress.step);
      return 1;
    }
  }
  return 0;
}

}  // namespace

}  // namespace rlt

int main(int count, char** arguments) {
  const auto number = [&](int index) {
    return count == 3 ? static_cast<std::uint32_t>(std::strtoul(arguments[index], nullptr, 10)) : 0;
  };
  if (number(2) < 1) {
    std::fprintf(stderr, "usage: ppo_loop SEED STEPS\n");
    return 2;
  }
  return rlt::run(number(1), number(2));
}
