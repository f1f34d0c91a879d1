// Environments that end episodes by themselves, or whose episodes another program plays: what is
// learned from a step that is truncated or lost, and from a checkpoint whose episodes are gone.
#include <doctest/doctest.h>

#include <utility>

#include "pendulum_ppo.h"
#include "pendulum_td3.h"
#include "rltools/rl/evaluation.h"
#include "rltools/rl/fingerprint.h"
#include "scripted_environment.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

template <class Environment_, int Count>
struct ScriptedTd3 : PendulumTd3 {
  using Environment = Environment_;
  using Actor = Td3::TaskActor<Environment, 4>;
  using Critic = Td3::TaskCritic<Environment, 4>;
  static constexpr int kEnvironments = Count;
  static constexpr int kEpisodeSteps = 5, kBatchSize = 40, kTileRows = 20, kReplayCapacity = 40;
};
using OneTd3 = ScriptedTd3<Scripted, 1>;
using TwoTd3 = ScriptedTd3<Scripted, 2>;

struct TwoPpo : PendulumPpo {
  using Environment = Scripted;
  using Actor = Ppo::TaskActor<Environment, 4>;
  using Critic = Ppo::TaskCritic<Environment, 4>;
  static constexpr int kEnvironments = 2, kRolloutSteps = 8, kEpisodeSteps = 5;
  static constexpr int kBatchSize = 8, kTileRows = 4;
};

struct TaskPpo : TwoPpo {
  using Hyperparameters = TaskHyperparametersOf<Ppo, Scripted>;
};

// A run whose steps end as this says.
template <class E>
struct ScriptedRun : Run<E> {
  explicit ScriptedRun(std::vector<Ending> endings) : Run<E>(3) {
    script = {std::move(endings)};
    initialize(Generic{}, this->training);
  }
};

constexpr Ending kOn = Ending::none, kTerminated = Ending::terminated,
                 kTruncated = Ending::truncated, kLost = Ending::lost;

using Observation = std::pair<float, float>;  // episode, steps

template <class Buffer>
Observation seen(const Buffer& buffer, std::uint32_t slot) {
  return {buffer.observation[2 * slot], buffer.observation[2 * slot + 1]};
}

}  // namespace

TEST_CASE("a task of few actions begins with orthogonal weights, an experiment does not") {
  ScriptedRun<TaskPpo> task({});
  ScriptedRun<TwoPpo> experiment({});
  const auto length = [](const auto& run) {  // of the second row of the actor's first layer
    double sum = 0;
    for (int i = 0; i < 4; i++) {
      const double weight = static_cast<double>(run.learner->actor.weights(0)[4 + i]);
      sum += weight * weight;
    }
    return sum;
  };
  CHECK(length(task) == doctest::Approx(2));
  CHECK(length(experiment) != doctest::Approx(2));
  CHECK(task.learner->critic.bias(0)[0] == 0);
  CHECK(experiment.learner->critic.bias(0)[0] != 0);
}

TEST_CASE("the first episodes of a task end after different steps, those of an experiment do not") {
  ScriptedRun<TaskPpo> task({});
  ScriptedRun<TwoPpo> experiment({});
  const std::uint32_t ended[][2] = {{0, 0}, {0, 0}, {0, 1}, {0, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 2}};
  for (std::uint32_t step = 0; step < 8; step++) {  // a rollout, of episodes of five steps
    CAPTURE(step);
    task.train(Generic{}, 1);
    experiment.train(Generic{}, 1);
    for (int i = 0; i < 2; i++) {
      CHECK(task.learner->environments.episodes[i] == ended[step][i]);
      CHECK(experiment.learner->environments.episodes[i] == (step + 1) / 5);
    }
    CHECK(state_is_consistent(task.training));
  }
}

TEST_CASE("an episode that was cut off before its time is none that has ended") {
  ScriptedRun<TaskPpo> run({});
  const std::uint32_t ended[] = {0, 0, 0, 0, 1, 0, 0, 1};  // the third step ends one of three steps
  for (std::uint32_t step = 0; step < 8; step++) {
    CAPTURE(step);
    const auto report = run.step(Generic{});
    CHECK(report.episodes_ended == ended[step]);
    CHECK(report.episode_steps == 5 * ended[step]);
    CHECK(report.episode_returns == report.episode_return * static_cast<float>(ended[step]));
    const float last = run.learner->progress.last_return;
    CHECK(is_finite(last) == (step >= 4));
  }
}

TEST_CASE("a first episode that the environment ends counts with the steps that it had") {
  ScriptedRun<TaskPpo> run({kOn, kOn, kOn, kTerminated});  // the second step of both
  run.step(Generic{});
  const auto report = run.step(Generic{});
  CHECK(report.episodes_ended == 1);
  CHECK(report.episode_steps == 2);
}

TEST_CASE("a transition that an environment truncates is not stored as terminated") {
  ScriptedRun<OneTd3> run({kOn, kTruncated, kOn, kTerminated, kOn});
  run.train(Generic{}, 5);
  const auto& replay = *run.replay;
  const std::uint8_t flags[] = {1, 1, 0, 1, 3, 0, 1, 0};
  const Observation expected[] = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}};
  REQUIRE(replay.size == 8);
  for (std::uint32_t slot = 0; slot < 8; slot++) {
    CAPTURE(slot);
    CHECK(replay.flags[slot] == flags[slot]);
    CHECK(seen(replay, slot) == expected[slot]);
  }
  // What follows a truncated step counts: its value is that of the state that was reached.
  gather_batch(Generic{}, run.training);
  int bootstrapped = 0;
  for (int i = 0; i < OneTd3::kBatchSize; i++) {
    const Observation at{run.scratch->observation(i, 0), run.scratch->observation(i, 1)};
    const bool is_terminal = at == Observation{1, 1};
    CHECK(run.scratch->not_terminated(i, 0) == (is_terminal ? 0.0f : 1.0f));
    if (at != Observation{0, 1}) continue;
    bootstrapped++;
    CHECK(run.scratch->next_observation(i, 0) == 0);
    CHECK(run.scratch->next_observation(i, 1) == 2);
  }
  CHECK(bootstrapped > 0);
  CHECK(state_is_consistent(run.training));
}

TEST_CASE("only an environment that says so truncates") {
  ScriptedRun<ScriptedTd3<ScriptedHere, 1>> run({kTruncated, kTruncated, kLost});
  run.train(Generic{}, 3);
  CHECK(run.learner->environments.episodes[0] == 0);
  CHECK(run.learner->environments.episode_return[0] == 1 + 1 + 77);
}

TEST_CASE("nothing is learned from a step that is lost") {
  ScriptedRun<OneTd3> run({kOn, kLost, kOn, kLost, kLost, kOn});
  const bool lost[] = {false, true, false, true, true, false};
  for (const bool expected : lost) {
    const auto report = run.step(Generic{});
    CHECK(report.lost == expected);
    CHECK(report.episodes_ended == 0);
    CHECK(report.finite);
  }
  // The observation that no action was taken from ends its episode.
  const auto& replay = *run.replay;
  const std::uint8_t flags[] = {1, 0, 1, 0, 0, 1, 0};
  const Observation expected[] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {3, 0}, {3, 1}};
  REQUIRE(replay.size == 7);
  for (std::uint32_t slot = 0; slot < 7; slot++) {
    CAPTURE(slot);
    CHECK(replay.flags[slot] == flags[slot]);
    CHECK(seen(replay, slot) == expected[slot]);
    CHECK(replay.reward[slot] == (flags[slot] ? 1.0f : 0.0f));
  }
  CHECK(run.learner->progress.step == 6);
  CHECK(run.learner->environments.episodes[0] == 3);
  CHECK(run.learner->progress.best_return != run.learner->progress.best_return);  // no episode
  CHECK(state_is_consistent(run.training));
  CHECK(state_is_finite(run.training));
}

TEST_CASE("an update waits for a step that is not lost") {
  ScriptedRun<OneTd3> run({kLost, kLost, kLost, kOn, kLost, kOn});
  run.training.hyperparameters.learning_starts = 1;
  const std::uint32_t updates[] = {0, 0, 0, 1, 1, 2};
  for (const std::uint32_t expected : updates) {
    CHECK(run.step(Generic{}).finite);
    CHECK(run.learner->progress.updates == expected);
  }
}

TEST_CASE("a checkpoint may hold fewer transitions than steps, and no more") {
  ScriptedRun<OneTd3> run({kOn, kLost, kOn});
  run.train(Generic{}, 3);
  CHECK(state_is_consistent(run.training));
  run.learner->progress.step = 1;
  CHECK_FALSE(state_is_consistent(run.training));
  ScriptedRun<ScriptedTd3<ScriptedHere, 1>> here({});
  here.train(Generic{}, 3);
  here.learner->progress.step = 4;  // where no step can be lost they are as many
  CHECK_FALSE(state_is_consistent(here.training));
}

TEST_CASE("a rollout has room for an episode that is truncated at every step") {
  ScriptedRun<TwoPpo> run(std::vector<Ending>(16, kTruncated));
  run.train(Generic{}, 8);
  auto& rollout = *run.replay;
  REQUIRE(rollout.size == 8);
  for (int row = 0; row < 16; row++) CHECK(rollout.done[row] == rollout.kTruncated);
  for (int number = 0; number < 8; number++) {
    for (int environment = 0; environment < 2; environment++) {
      const float* final = final_observation(rollout, environment, number);
      CHECK(Observation{final[0], final[1]} == Observation{static_cast<float>(number), 1});
    }
  }
  CHECK(state_is_consistent(run.training));
  CHECK(run.step(Generic{}).finite);
  CHECK(state_is_consistent(run.training));
}

TEST_CASE("a row of a rollout that is lost has no advantage") {
  std::vector<Ending> endings(16, kOn);
  endings[2 * 3 + 1] = kLost;  // the second environment's fourth step
  ScriptedRun<TwoPpo> run(endings);
  run.train(Generic{}, 8);
  auto& rollout = *run.replay;
  CHECK(rollout.done[2 * 3 + 1] == rollout.kLost);
  CHECK(rollout.reward[2 * 3 + 1] == 0);
  CHECK(rollout.observation[2 * (2 * 4 + 1)] == 1);  // the next episode
  CHECK(rollout.observation[2 * (2 * 4 + 1) + 1] == 0);
  CHECK(state_is_consistent(run.training));
  CHECK(run.step(Generic{}).finite);
  CHECK(rollout.advantage[2 * 3 + 1] == 0);
  CHECK(rollout.advantage[2 * 3] != 0);
  rollout.done[0] = 4;
  CHECK_FALSE(state_is_consistent(run.training));
}

TEST_CASE("after a checkpoint an off-policy run begins new episodes behind those that are gone") {
  ScriptedRun<TwoTd3> run({});
  run.train(Generic{}, 3);
  const auto before = run.learner->progress;
  restart_lost_episodes(Generic{}, run.training);
  CHECK(run.learner->progress.step == before.step);
  for (int index = 0; index < 2; index++) {
    const auto& buffer = run.replay->buffer[index];
    REQUIRE(buffer.size == 5);
    CHECK(buffer.flags[3] == 0);
    CHECK(seen(buffer, 3) == Observation{0, 3});
    CHECK(seen(buffer, 4) == Observation{1, 0});
    CHECK(buffer.position == 4);
    CHECK(run.learner->environments.episode_step[index] == 0);
    CHECK(run.learner->environments.episode_return[index] == 0);
  }
  CHECK(state_is_consistent(run.training));
  run.train(Generic{}, 1);
  CHECK(run.replay->buffer[0].flags[4] == 1);
}

TEST_CASE("after a checkpoint an on-policy run's episodes were truncated where they were") {
  std::vector<Ending> endings(6, kOn);
  endings[5] = kTerminated;  // the second environment's last step
  ScriptedRun<TwoPpo> run(endings);
  run.train(Generic{}, 3);
  auto& rollout = *run.replay;
  restart_lost_episodes(Generic{}, run.training);
  CHECK(rollout.done[4] == rollout.kTruncated);
  CHECK(rollout.done[5] == rollout.kTerminated);
  const float* final = final_observation(rollout, 0, 0);
  CHECK(Observation{final[0], final[1]} == Observation{0, 3});
  CHECK(Observation{rollout.current_observation[0], rollout.current_observation[1]} ==
        Observation{1, 0});
  CHECK(Observation{rollout.current_observation[2], rollout.current_observation[3]} ==
        Observation{2, 0});
  CHECK(state_is_consistent(run.training));
  run.train(Generic{}, 5 + 2);
  CHECK(state_is_consistent(run.training));
}

TEST_CASE("an episode that has had all of its steps is not one under way") {
  ScriptedRun<TwoPpo> run({});
  run.train(Generic{}, 1);
  auto& step = run.learner->environments.episode_step[1];
  step = static_cast<std::uint32_t>(TwoPpo::kEpisodeSteps) - 1;
  CHECK(state_is_consistent(run.training));
  step++;
  CHECK_FALSE(state_is_consistent(run.training));
}

TEST_CASE("where the core plays the episodes a checkpoint has all of them") {
  ScriptedRun<ScriptedTd3<ScriptedHere, 1>> run({});
  run.train(Generic{}, 3);
  const auto before = run.state();
  restart_lost_episodes(Generic{}, run.training);
  CHECK(run.state() == before);
}

TEST_CASE("an evaluation's episode ends where it is truncated or lost") {
  ScriptedRun<OneTd3> run({kOn, kTruncated, kOn, kOn, kLost, kTerminated});
  run.training.hyperparameters.n_eval_episodes = 3;
  const EvaluationReport report = evaluate(Generic{}, run.training);
  CHECK(report.mean == doctest::Approx(5.0 / 3));
  CHECK(report.max == 2);
  CHECK(report.min == 1);
}

TEST_CASE("what another program does is no part of the fingerprint") {
  const auto has_behavior = [](auto& run) {
    bool found = false;
    for_each_learning_item(run.training, [&](const ItemName& name, auto) {
      found = found || std::string(name.group) == "environment.behavior";
    });
    return found;
  };
  ScriptedRun<OneTd3> run({});
  ScriptedRun<ScriptedTd3<ScriptedHere, 1>> here({});
  CHECK_FALSE(has_behavior(run));
  CHECK(has_behavior(here));
}
