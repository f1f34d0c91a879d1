// Settings of an environment: numbers of a run that `--set` and the protocol reach as they reach
// the algorithm's, and that every function of the environment sees.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "point_experiments.h"
#include "rltools/devices/generic.h"
#include "rltools/rl/evaluation.h"
#include "rltools/rl/fingerprint.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace rlt {

#define SPRING_STATE(X) X(float, position) X(float, velocity)
#define SPRING_CONSTANTS(X) X(float, stiffness, 1.0f)
#define SPRING_SETTINGS(X)                                                     \
  X(float, spread, 0.5, 0, 1, "1", "Stiffness lies within 1 plus or minus it") \
  X(float, start, 0.25, 0, 2, "m", "Where an episode begins")                  \
  X(float, limit, 3, 0, 10, "m", "Beyond it an episode ends")                  \
  X(float, offset, 0, -1, 1, "m", "Added to what is observed")                 \
  X(std::uint32_t, squared, 0, 0, 1, "", "Whether the cost is squared")

RLT_DEFINE_HYPERPARAMETERS(SpringSettings, SPRING_SETTINGS)

inline float square_factor = 1.0f;

// A mass on a spring.
struct Spring : EnvironmentDefaults {
  using Scalar = float;
  using Settings = SpringSettings;
  RLT_DEFINE_FIELDS(State, SPRING_STATE)
  RLT_DEFINE_CONSTANTS(Parameters, SPRING_CONSTANTS)
  static constexpr const char* kName = "spring";
  static constexpr int kObservationDim = 3, kActionDim = 2;
  static constexpr std::uint32_t kStepInterval_us = 1000;
  static constexpr Channel kObservations[] = {
      {"position", "m", -1.0f, 1.0f}, {"velocity", "m/s", -1.0f, 1.0f}, {"one", "1", 0.0f, 1.0f}};
  static constexpr Channel kActions[] = {{"push", "N", -1.0f, 1.0f}, {"pull", "N", -1.0f, 1.0f}};

  // Each setting away from where it switches nothing on.
  static constexpr int kProbes = 2;
  static Settings probe_settings(int probe) {
    Settings probed;
    probed.offset = 0.5f;
    probed.squared = static_cast<std::uint32_t>(probe);
    return probed;
  }

  Settings settings;
};

inline void sample_parameters(Generic, const Spring& environment, Spring::Parameters& parameters,
                              RandomStream random) {
  const float spread = environment.settings.spread;
  parameters.stiffness = uniform<float>(random, 0, 1.0f - spread, 1.0f + spread + 1e-6f);
}
inline void reset(Generic, const Spring& environment, const Spring::Parameters&,
                  Spring::State& state, RandomStream) {
  state.position = environment.settings.start;
  state.velocity = 0.0f;
}
inline StepResult<float> step(Generic, const Spring& environment,
                              const Spring::Parameters& parameters, Spring::State& state,
                              const float* action, RandomStream) {
  state.velocity += 0.1f * (action[0] - action[1] - parameters.stiffness * state.position);
  state.position += 0.1f * state.velocity;
  const float distance = math::absolute(state.position);
  const float square = square_factor * distance * distance;
  const float cost = environment.settings.squared != 0 ? square : distance;
  return {-cost, distance > environment.settings.limit};
}
inline void observe(Generic, const Spring& environment, const Spring::Parameters&,
                    const Spring::State& state, float* observation, RandomStream) {
  observation[0] = state.position + environment.settings.offset;
  observation[1] = state.velocity;
  observation[2] = 1.0f;
}

}  // namespace rlt

namespace {

static_assert(kIsKept<EnvironmentContract<Spring>>);
static_assert(kHasSettings<Spring> && !kHasSettings<Pendulum<float>>);

using SpringTd3 = PointTd3<Spring>;
struct FarSpringTd3 : SpringTd3 {
  struct EnvironmentSettings : Spring::Settings {
    EnvironmentSettings() { start = 2.0f; }
  };
};
struct SpringPpo : PointPpo {
  static constexpr const char* kName = "spring-ppo";
  using Environment = Spring;
};

constexpr int kAlgorithms = Td3Hyperparameters::kCount;
std::uint32_t bits_of(float value) { return detail::to_bits(value); }

template <class E>
int index_of(const std::string& name) {
  for (int i = 0; i < RunHyperparameters<E>::kCount; i++) {
    if (name == RunHyperparameters<E>::info(i).name) return i;
  }
  return -1;
}

template <class E>
void set(Run<E>& run, const std::string& name, float value) {
  REQUIRE(run.training.hyperparameters.set_bits(index_of<E>(name), bits_of(value)));
}

}  // namespace

TEST_CASE("settings follow the algorithm's hyperparameters in one list") {
  using Joined = RunHyperparameters<SpringTd3>;
  Joined values;
  CHECK(Joined::kCount == kAlgorithms + 5);
  CHECK(std::string(Joined::info(kAlgorithms - 1).name) ==
        Td3Hyperparameters::info(kAlgorithms - 1).name);
  CHECK(std::string(Joined::info(kAlgorithms).name) == "spread");
  CHECK(std::string(Joined::info(Joined::kCount - 1).name) == "squared");
  CHECK(values.get_bits(kAlgorithms + 1) == bits_of(0.25f));
  CHECK(values.set_bits(kAlgorithms + 1, bits_of(1.5f)));
  CHECK(values.environment.start == 1.5f);
  CHECK(values.get_bits(kAlgorithms + 1) == bits_of(1.5f));
  CHECK_FALSE(values.set_bits(kAlgorithms + 1, bits_of(2.5f)));  // out of bounds
  CHECK_FALSE(values.set_bits(Joined::kCount, 0));
  CHECK_FALSE(values.set_bits(-1, 0));
  for (int i = 0; i < Joined::kCount; i++) CHECK(values.set_bits(i, values.get_bits(i)));
  CHECK(values.environment.start == 1.5f);
  CHECK(values.set_bits(0, 77));
  CHECK(values.seed == 77);
}

TEST_CASE_TEMPLATE("every function of the environment sees the run's settings", E, SpringTd3,
                   SpringPpo) {
  Run<E> run;
  set(run, "start", 1.0f);
  set(run, "spread", 0.0f);
  set(run, "offset", 0.5f);
  set(run, "limit", 0.5f);  // below the start: every step ends its episode
  initialize(Generic{}, run.training);
  auto& environments = run.training.learner.environments;
  for (int i = 0; i < environments.count(); i++) {
    CHECK(environments.state[i].position == 1.0f);
    CHECK(environments.values[i].stiffness == doctest::Approx(1.0f));
  }
  const auto steps = static_cast<std::uint32_t>(environments.count());
  std::uint32_t ended = 0;
  while (steps_done(run.training) < 3 * steps) {
    ended += train_step(Generic{}, run.training).episodes_ended;
  }
  CHECK(ended == 3 * steps);
}

TEST_CASE("the fingerprint names the settings and leaves their values to the run") {
  Run<SpringTd3> run;
  initialize(Generic{}, run.training);
  const std::uint32_t before = fingerprint(run.training);
  std::vector<std::string> names;
  int items = 0;
  for_each_learning_item(run.training, [&](const ItemName& item, auto value) {
    if constexpr (std::is_same_v<decltype(value), const char*>) {
      if (item.group == std::string("hyperparameters")) names.emplace_back(value);
    } else if (item.group == std::string("environment.probes")) {
      CHECK(value == Spring::kProbes);
    }
    items += item.group == std::string("environment.probes");
  });
  CHECK(std::find(names.begin(), names.end(), "spread") != names.end());
  CHECK(items == 1);  // that says of which kind the fingerprint is
  set(run, "start", 2.0f);
  CHECK(fingerprint(run.training) == before);
  Run<FarSpringTd3> other_defaults;
  CHECK(fingerprint(other_defaults.training) == before);
}

TEST_CASE("the fingerprint covers what settings switch on, whatever their defaults") {
  CHECK(SpringSettings{}.squared == 0);
  const std::uint32_t before = detail::behavior_hash<Spring>();
  square_factor = 1.000001f;  // an edit of the equation
  CHECK(detail::behavior_hash<Spring>() != before);
  square_factor = 1.0f;
  CHECK(detail::behavior_hash<Spring>() == before);
}
