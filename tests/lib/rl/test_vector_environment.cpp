// Many environments run as one: each has the bits of one that is stepped alone with its streams,
// whether its steps go to a replay buffer or to a rollout; and with parameters of each episode's
// own.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "environment_alone.h"
#include "point_experiments.h"
#include "rltools/devices/generic.h"
#include "rltools/rl/evaluation.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

using RandomPointTd3 = PointTd3<RandomPoint>;

using Alone = rlt::Alone<RandomPoint>;

template <class E>
std::vector<Alone> each_alone(std::uint32_t seed) {
  std::vector<Alone> result;
  for (int i = 0; i < E::kEnvironments; i++) {
    result.emplace_back(seed, i, static_cast<std::uint32_t>(E::kEpisodeSteps));
  }
  return result;
}

// The observation number `index` of an array.
Observation observation_at(const float* observations, std::uint32_t index) {
  return {observations + index * 3, observations + (index + 1) * 3};
}

// Steps of every environment into the replay buffers, each compared with those of one alone; and
// what a sample of each transition is to hold.
struct Sample {
  Observation next;
  float reward;
  bool terminated;
};
using Samples = std::map<std::pair<Observation, Observation>, Sample>;

Samples check_replay_buffers(Run<RandomPointTd3>& run, std::vector<Alone>& alone, int steps) {
  using Buffer = std::remove_reference_t<decltype(buffer_of(*run.replay, 0))>;
  Samples samples;
  for (int step = 0; step < steps; step++) {
    const std::uint32_t number = run.learner->progress.step;
    std::uint32_t slots[3];
    for (int i = 0; i < 3; i++) slots[i] = buffer_of(*run.replay, i).position;
    const auto report = run.step(Generic{});
    CHECK(run.learner->progress.step == number + 3);
    std::uint32_t ended = 0;
    float last_return = 0;
    for (int i = 0; i < 3; i++) {
      const Buffer& buffer = buffer_of(*run.replay, i);
      const std::uint32_t slot = slots[i];
      const float* action = buffer.action + slot * 2;
      const Observation before = alone[i].present();
      const auto expected = alone[i].take(number, action);
      CHECK(observation_at(buffer.observation, slot) == before);
      CHECK(buffer.reward[slot] == expected.reward);
      CHECK(buffer.flags[slot] ==
            (Buffer::kTransition | (expected.terminated ? Buffer::kTerminated : 0)));
      CHECK(observation_at(buffer.observation, slot + 1) == expected.reached);
      REQUIRE(buffer.position == slot + (expected.ended() ? 2 : 1));
      CHECK(observation_at(buffer.observation, buffer.position) == alone[i].present());
      samples[{before, {action, action + 2}}] = {expected.reached, expected.reward,
                                                 expected.terminated};
      if (!expected.ended()) continue;
      ended++;
      last_return = alone[i].returns.back();
    }
    CHECK(report.episodes_ended == ended);
    CHECK(report.episode_return == last_return);
    if (ended > 0) CHECK(run.learner->progress.last_return == last_return);
  }
  return samples;
}

}  // namespace

TEST_CASE("each replay buffer has what its environment does alone") {
  Run<RandomPointTd3> run(21);
  run.training.hyperparameters.learning_starts = 60;
  initialize(Generic{}, run.training);
  auto alone = each_alone<RandomPointTd3>(21);
  const Samples samples = check_replay_buffers(run, alone, 100);
  CHECK(run.learner->progress.updates > 0);
  CHECK(samples.size() == 300);
  int terminated = 0;
  for (const auto& [key, sample] : samples) terminated += sample.terminated;
  CHECK(terminated > 10);
  for (int i = 0; i < 3; i++) {
    CHECK(alone[i].returns.size() == run.learner->environments.episodes[i]);
    CHECK(alone[i].returns.size() > static_cast<std::size_t>(100 / 7));  // some were terminated
  }

  // A batch holds transitions of all of them, each with what came after it.
  std::set<Observation> drawn;
  for (std::uint32_t update = 1000; update < 1040; update++) {
    run.learner->progress.updates = update;
    gather_batch(Generic{}, run.training);
    const auto& scratch = *run.scratch;
    for (int row = 0; row < RandomPointTd3::kBatchSize; row++) {
      const float* input = scratch.observation_action.row(row);
      const auto found = samples.find({{input, input + 3}, {input + 3, input + 5}});
      REQUIRE(found != samples.end());
      const Sample& expected = found->second;
      CHECK(observation_at(scratch.observation.data(), row) == Observation(input, input + 3));
      CHECK(observation_at(scratch.next_observation.data(), row) == expected.next);
      CHECK(scratch.reward(row, 0) == expected.reward);
      CHECK(scratch.not_terminated(row, 0) == (expected.terminated ? 0.0f : 1.0f));
      drawn.insert(Observation(input, input + 3));
    }
  }
  CHECK(drawn.size() > 280);  // of 300, in 1,200 draws: on average 294.5
}

TEST_CASE("each environment takes the action for its own observation") {
  Run<RandomPointTd3> run(22);
  auto& h = run.training.hyperparameters;
  h.learning_starts = 30;
  h.action_noise = 0;
  h.learning_rate = 0;
  initialize(Generic{}, run.training);
  std::set<float> warmup_actions;
  for (int step = 0; step < 30; step++) {
    std::uint32_t slots[3];
    for (int i = 0; i < 3; i++) slots[i] = buffer_of(*run.replay, i).position;
    run.step(Generic{});
    for (int i = 0; i < 3; i++) {
      const float* taken = buffer_of(*run.replay, i).action + slots[i] * 2;
      if (step < 10) {
        warmup_actions.insert({taken[0], taken[1]});
        continue;
      }
      const MatrixView<const float, 1, 3> observation{buffer_of(*run.replay, i).observation +
                                                      slots[i] * 3};
      Matrix<float, 1, 2> action;
      act(Generic{}, run.training, observation, action);
      CHECK(taken[0] == action(0, 0));
      CHECK(taken[1] == action(0, 1));
    }
  }
  CHECK(warmup_actions.size() == 10 * 3 * 2);
}

TEST_CASE("a rollout has what each environment does alone, also at the end of several episodes") {
  Run<RandomPointPpo> run(23);
  using E = RandomPointPpo;
  using Rollout = Replay<E>;
  run.training.hyperparameters.n_epochs = 1;
  initialize(Generic{}, run.training);
  auto alone = each_alone<E>(23);
  int truncated = 0, terminated = 0, most = 0;
  for (int iteration = 0; iteration < 4; iteration++) {
    const std::uint32_t first = run.learner->progress.step;
    run.train(Generic{}, E::kRolloutSteps);
    const Rollout& rollout = *run.replay;
    REQUIRE(rollout.size == E::kRolloutSteps);
    for (int i = 0; i < E::kEnvironments; i++) {
      int cut_off = 0;
      for (int step = 0; step < E::kRolloutSteps; step++) {
        const int row = step * E::kEnvironments + i;
        CHECK(observation_at(rollout.observation, row) == alone[i].present());
        float action[2];
        for (int k = 0; k < 2; k++) {
          action[k] = math::clamp(rollout.action[row * 2 + k], -1.0f, 1.0f);
        }
        const auto expected =
            alone[i].take(first + static_cast<std::uint32_t>(step * E::kEnvironments), action);
        CHECK(rollout.reward[row] == expected.reward);
        CHECK(rollout.done[row] == (expected.terminated  ? Rollout::kTerminated
                                    : expected.truncated ? Rollout::kTruncated
                                                         : Rollout::kRunning));
        terminated += expected.terminated;
        if (!expected.truncated) continue;
        CHECK(observation_at(rollout.final_observation + i * Rollout::kTruncations * 3, cut_off) ==
              expected.reached);
        cut_off++;
      }
      CHECK(observation_at(rollout.current_observation, i) == alone[i].present());
      truncated += cut_off;
      most = std::max(most, cut_off);
    }
    run.train(Generic{}, kMinibatches<E>);  // one epoch
    CHECK(rollout.size == 0);
    for (int i = 0; i < E::kEnvironments; i++) {
      CHECK(run.learner->environments.values[i].strength == alone[i].strength());
      CHECK(run.learner->environments.episodes[i] == alone[i].returns.size());
    }
  }
  CHECK(terminated > 5);
  CHECK(truncated > 10);
  CHECK(most >= 3);
}

// Arrays for environments whose number is known at run time, and the observations that they give.
struct AtRunTime {
  explicit AtRunTime(int count)
      : states(count),
        parameters(count),
        episodes(count, 99),
        episode_step(count, 99),
        episode_return(count, 99),
        observations(3 * count),
        final_observations(3 * count) {
    environments.environment_count = count;
    environments.state = states.data();
    environments.values = parameters.data();
    environments.episodes = episodes.data();
    environments.episode_step = episode_step.data();
    environments.episode_return = episode_return.data();
  }

  float* reached(int index, const Transition<float>& transition) {
    transitions[index] = transition;
    return (transition.ended() ? final_observations : observations).data() + 3 * index;
  }
  float* begun(int index) { return observations.data() + 3 * index; }

  VectorEnvironment<RandomPoint, kAtRunTime> environments;
  std::vector<RandomPoint::State> states;
  std::vector<RandomPoint::Parameters> parameters;
  std::vector<std::uint32_t> episodes, episode_step;
  std::vector<float> episode_return, observations, final_observations;
  std::map<int, Transition<float>> transitions;
};

void check_at_run_time(int count) {
  constexpr std::uint32_t kSeed = 31, kCut = 7;
  AtRunTime together(count);
  begin_all(Generic{}, RandomPoint{}, together.environments, kSeed,
            [&](int i) { return together.begun(i); });
  std::vector<rlt::Alone<RandomPoint>> alone;
  for (int i = 0; i < count; i++) alone.emplace_back(kSeed, i, kCut);
  std::vector<float> actions(2 * count);
  int ended = 0;
  for (std::uint32_t number = 0; number < 60; number++) {
    fill_uniform(Generic{}, RandomStream{1, Purpose::warmup_action, number}, actions.data(),
                 2 * count, -1.0f, 1.0f);
    step_all(Generic{}, RandomPoint{}, together.environments, kSeed, number, kCut, actions.data(),
             together);
    for (int i = 0; i < count; i++) {
      const auto expected = alone[i].take(number, &actions[2 * i]);
      const auto& transition = together.transitions[i];
      REQUIRE(transition.reward == expected.reward);
      REQUIRE(transition.terminated == expected.terminated);
      REQUIRE(transition.truncated == expected.truncated);
      REQUIRE(together.parameters[i].strength == alone[i].strength());
      REQUIRE(observation_at(together.observations.data(), static_cast<std::uint32_t>(i)) ==
              alone[i].present());
      if (!expected.ended()) continue;
      REQUIRE(observation_at(together.final_observations.data(), static_cast<std::uint32_t>(i)) ==
              expected.reached);
      REQUIRE(transition.episode_return == alone[i].returns.back());
      ended++;
    }
  }
  CHECK(ended > 8 * count);
  CHECK(episodes_ended(together.environments) == static_cast<std::uint32_t>(ended));
}

TEST_CASE("environments whose number is known at run time have the bits of each alone") {
  check_at_run_time(5);
  check_at_run_time(70);  // in lanes, a block of 64 and the rest
}

TEST_CASE("an environment that is stepped alone stays where its episode has ended") {
  AtRunTime one(1);
  begin_all(Generic{}, RandomPoint{}, one.environments, 32u, [&](int i) { return one.begun(i); });
  rlt::Alone<RandomPoint> alone(32, 0, 4);
  const float action[2] = {0.25f, -0.5f};
  for (std::uint32_t number = 0;; number++) {
    const bool has_ended = step_and_observe(Generic{}, RandomPoint{}, one.environments, 0, 32u,
                                            number, 4u, action, one);
    const auto expected = alone.take(number, action);
    CHECK(has_ended == expected.ended());
    if (!has_ended) continue;
    CHECK(observation_at(one.final_observations.data(), 0) == expected.reached);
    CHECK(one.episode_step[0] == number + 1);
    CHECK(one.episodes[0] == 0);
    break;
  }
}

TEST_CASE("episodes have parameters of their own, which are part of the state") {
  Run<RandomPointPpo> run(24), other(24);
  initialize(Generic{}, run.training);
  initialize(Generic{}, other.training);
  std::set<float> strengths;
  for (int step = 0; step <= 200; step++) {
    if (step > 0) run.step(Generic{});
    for (const auto& values : run.learner->environments.values) {
      CHECK(values.strength >= 0.25f);
      CHECK(values.strength < 1.0f);
      strengths.insert(values.strength);
    }
  }
  CHECK(strengths.size() == episodes_ended(run.learner->environments) + 4);
  std::string fields;
  for_each_state_tensor(run.training, [&](const TensorInfo& info, void*) {
    if (std::strcmp(info.name, "environment_parameters") != 0) return;
    fields += info.field;
    CHECK(info.rows == 4);
    CHECK(info.columns == 1);
    CHECK(info.bytes() == 16);
  });
  CHECK(fields == "strength");
  other.set_state(run.state());
  for (int i = 0; i < 4; i++) {
    CHECK(other.learner->environments.at(i).strength == run.learner->environments.at(i).strength);
  }
  // Of an environment without parameters of its own the state has none.
  Run<PointPpo> nominal(24);
  for_each_state_tensor(nominal.training, [&](const TensorInfo& info, void*) {
    CHECK(std::strcmp(info.name, "environment_parameters") != 0);
  });
  CHECK(nominal.learner->environments.at(2).strength == 0.5f);
}

TEST_CASE("an evaluation draws parameters of its own, and leaves those of training") {
  Run<RandomPointPpo> run(25);
  run.training.hyperparameters.n_eval_episodes = 6;
  initialize(Generic{}, run.training);
  run.train(Generic{}, 40);
  const auto before = run.state();
  Evaluation<RandomPointPpo> evaluation;
  begin_evaluation(Generic{}, run.training, evaluation);
  std::set<float> strengths;
  do {
    RandomPoint::Parameters expected;
    sample_parameters(Generic{}, RandomPoint{}, expected,
                      {25, Purpose::evaluation_parameters, evaluation.episode});
    CHECK(evaluation.parameters.strength == expected.strength);
    strengths.insert(evaluation.parameters.strength);
  } while (evaluate_step(Generic{}, run.training, evaluation));
  CHECK(strengths.size() == 6);
  for (const auto& values : run.learner->environments.values) {
    CHECK(strengths.count(values.strength) == 0);
  }
  CHECK(run.state() == before);
}

TEST_CASE("what lies in several pieces is counted, named and stored as one array") {
  Run<RandomPointTd3> run(27);
  initialize(Generic{}, run.training);
  run.train(Generic{}, 50);
  std::map<std::string, std::pair<std::uint32_t, std::uint32_t>> shapes;
  std::vector<std::uint8_t> positions;
  for_each_state_tensor(run.training, [&](const TensorInfo& info, const void* data) {
    std::string name;
    write_full_name(info, [&](char c) { name += c; });
    CHECK(shapes.count(name) == 0);
    shapes[name] = {info.rows, info.columns};
    if (name != "replay/position") return;
    for_each_piece(info, data, [&](const std::uint8_t* piece, std::uint32_t bytes) {
      positions.insert(positions.end(), piece, piece + bytes);
    });
  });
  constexpr std::uint32_t kSlots = Replay<RandomPointTd3>::kSlots;
  CHECK(kSlots == 200 + (200 + 6) / 7 + 1);  // a third of the capacity each
  CHECK(shapes["replay/observation"] == std::pair{3 * kSlots, 3u});
  CHECK(shapes["replay/action"] == std::pair{3 * kSlots, 2u});
  CHECK(shapes["replay/flags"] == std::pair{3 * kSlots, 1u});
  CHECK(shapes["replay/position"] == std::pair{3u, 1u});
  CHECK(shapes["environment_state/x"] == std::pair{3u, 1u});
  CHECK(shapes["environment_parameters/strength"] == std::pair{3u, 1u});
  CHECK(shapes["progress/episodes"] == std::pair{3u, 1u});
  CHECK(shapes["progress/step"] == std::pair{1u, 1u});
  std::uint32_t expected[3];
  for (int i = 0; i < 3; i++) expected[i] = run.replay->buffer[i].position;
  REQUIRE(positions.size() == sizeof expected);
  CHECK(std::memcmp(positions.data(), expected, sizeof expected) == 0);
  CHECK(state_bytes(run.training) == run.state().size());
}
