// Steps a second of environments of the core, with observation, reward and new episodes: what the
// programs environment_steps, quadrotor_environment_steps and mujoco_environment_steps do. They
// take turns with the other contenders of `rlt bench environments` (peers/turns.py): an order is a
// task, how many environments of it, and how many steps of all of them together.
#pragma once

#include RLT_DEVICE_HEADER

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "host/thread_count.h"
#include "measuring.h"
#include "rltools/rl/vector_environment.h"

namespace rlt {
namespace environment_steps {

constexpr int kActionSets = 64;  // random actions, drawn before the clock starts, used in turn

// N environments of a kind, from one order to the next.
template <class E, int N>
class Environments {
  using T = typename E::Scalar;

 public:
  explicit Environments(std::uint32_t episode_steps) : episode_steps_(episode_steps) {
    fill_uniform(RLT_DEVICE{}, RandomStream{0, Purpose::warmup_action, 0}, action_[0],
                 kActionSets * N * E::kActionDim, T(-1), T(1));
    begin_all(RLT_DEVICE{}, E{}, environments_, 0,
              [this](int index) { return observation_[index]; });
  }

  void step(std::uint64_t steps) {
    for (std::uint64_t done = 0; done < steps; done += N) {
      step_all(RLT_DEVICE{}, E{}, environments_, 0, step_, episode_steps_,
               action_[step_ % kActionSets], IntoArrays{*this});
      step_++;
    }
  }
  std::uint32_t episodes() const { return episodes_ended(environments_); }
  // Of what was computed last, so that it is.
  double sum() const {
    double total = 0;
    for (int i = 0; i < N; i++) total += static_cast<double>(reward_[i] + observation_[i][0]);
    return total;
  }

 private:
  struct IntoArrays {
    Environments& all;
    T* reached(int index, const Transition<T>& transition) const {
      all.reward_[index] = transition.reward;
      return all.observation_[index];
    }
    T* begun(int index) const { return all.observation_[index]; }
  };

  VectorEnvironment<E, N> environments_;
  T action_[kActionSets][N * E::kActionDim];
  T observation_[N][E::kObservationDim];
  T reward_[N];
  std::uint32_t episode_steps_, step_ = 0;
};

struct Order {
  char task[32];
  int count;
  unsigned long long steps;
};

// Steps `all` as an order says, and answers it.
template <class All>
bool take(const Order& order, All& all) {
  const double began = processor_seconds();
  all.step(order.steps);
  const double processor_s = processor_seconds() - began;
  std::printf("{\"steps\": %llu, \"cpu_s\": %.9g, \"episodes\": %u, \"sum\": %.9g}\n",
              (order.steps + order.count - 1) / order.count * order.count, processor_s,
              all.episodes(), all.sum());
  std::fflush(stdout);
  return true;
}

// Answers an order for one of Counts environments of E; false where it is for others.
template <class E, int... Counts>
bool answer(const Order& order, std::uint32_t episode_steps, const char* name = E::kName) {
  if (std::strcmp(order.task, name) != 0) return false;
  const auto one = [&](auto* kind) {
    using Kind = std::remove_pointer_t<decltype(kind)>;
    static Kind environments(episode_steps);
    return take(order, environments);
  };
  return ((order.count == Counts && one(static_cast<Environments<E, Counts>*>(nullptr))) || ...);
}

// Takes orders until there are no more; answers(order) says whether it is one of the program's.
template <class Answers>
int take_orders(Answers&& answers) {
  if (!take_thread_count(RLT_DEVICE{}, RLT_BOARD_NAME)) return 2;
  std::printf("{\"version\": \"\", \"device\": \"%s\"}\n", RLT_BOARD_NAME);
  std::fflush(stdout);
  Order order;
  while (std::scanf("%31s %d %llu", order.task, &order.count, &order.steps) == 3) {
    if (answers(order)) continue;
    std::fprintf(stderr, "no order: %s %d %llu\n", order.task, order.count, order.steps);
    return 2;
  }
  return 0;
}

}  // namespace environment_steps
}  // namespace rlt
