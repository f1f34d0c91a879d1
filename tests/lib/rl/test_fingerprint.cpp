// The fingerprint: other for everything that changes learning, the same for everything else; and
// its items, which say in what two experiments differ.
#include <doctest/doctest.h>

#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "pendulum_sac.h"
#include "pendulum_td3.h"
#include "pendulum_xqc.h"
#include "rltools/devices/generic.h"
#include "rltools/rl/fingerprint.h"
#include "training_run.h"

using namespace rlt;
using training_run::Run;

namespace {

// Collects items. No template: it would be compiled anew for each of the experiments.
struct Items {
  std::map<std::string, std::string> text_of;

  void operator()(const ItemName& item, const char* text) { add(item, text); }
  void operator()(const ItemName& item, std::uint32_t number) { add(item, std::to_string(number)); }
  void operator()(const ItemName& item, double number);

 private:
  void add(const ItemName& item, const std::string& text);
};

[[gnu::noinline]] std::string name_of(const ItemName& item) {
  std::string name;
  write_item_name(item, [&](char c) { name += c; });
  return name;
}

[[gnu::noinline]] void Items::operator()(const ItemName& item, double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", number);
  add(item, text);
}

[[gnu::noinline]] void Items::add(const ItemName& item, const std::string& text) {
  const std::string name = name_of(item);
  CHECK(text_of.count(name) == 0);
  text_of[name] = text;
}

template <class E>
std::map<std::string, std::string> items_of() {
  Run<E> run;
  Items items;
  for_each_learning_item(run.training, items);
  return items.text_of;
}

template <class E>
std::uint32_t fingerprint_of() {
  Run<E> run;
  return fingerprint(run.training);
}

using Names = std::set<std::string>;

// The names of the items that differ from those of PendulumTd3; the fingerprint differs exactly
// where there are some.
Names differences(const std::map<std::string, std::string>& theirs, std::uint32_t fingerprint) {
  const auto ours = items_of<PendulumTd3>();
  Names names;
  for (const auto& [name, value] : ours) {
    const auto found = theirs.find(name);
    if (found == theirs.end() || found->second != value) names.insert(name);
  }
  for (const auto& item : theirs) {
    if (ours.count(item.first) == 0) names.insert(item.first);
  }
  CHECK((fingerprint != fingerprint_of<PendulumTd3>()) == !names.empty());
  return names;
}
template <class E>
Names differences() {
  return differences(items_of<E>(), fingerprint_of<E>());
}

constexpr const char* kBehavior = "environment.behavior";

template <class Environment_>
struct In : PendulumTd3 {
  using Environment = Environment_;
};

// Pendulum with another constant, channel or rate.
struct Heavier : Pendulum<float> {
  struct Parameters : Pendulum<float>::Parameters {
    constexpr Parameters() { mass_kg = 1.0000001f; }  // the next float
  };
};
struct OtherRange : Pendulum<float> {
  static constexpr Channel kObservations[3] = {{"cos_angle", "1", -1.0f, 1.0f},
                                               {"sin_angle", "1", -1.0f, 1.0f},
                                               {"velocity", "rad/s", -8.0f, 9.0f}};
};
struct OtherRate : Pendulum<float> {
  static constexpr std::uint32_t kStepInterval_us = 50001;
};

// Each with another one of its functions, in the last digits.
using Parameters = Pendulum<float>::Parameters;
using State = Pendulum<float>::State;
struct OtherStart : Pendulum<float> {};
void reset(Generic device, const OtherStart&, const Parameters& parameters, State& state,
           RandomStream random) {
  reset(device, Pendulum<float>{}, parameters, state, random);
  state.velocity_rad_s *= 1.000001f;
}
struct OtherStep : Pendulum<float> {};
StepResult<float> step(Generic device, const OtherStep&, const Parameters& parameters, State& state,
                       const float* action, RandomStream random) {
  const auto result = step(device, Pendulum<float>{}, parameters, state, action, random);
  state.angle_rad *= 1.000001f;
  return result;
}
struct OtherObservation : Pendulum<float> {};
void observe(Generic device, const OtherObservation&, const Parameters& parameters,
             const State& state, float* observation, RandomStream random) {
  observe(device, Pendulum<float>{}, parameters, state, observation, random);
  observation[2] *= 1.000001f;
}
struct OtherReward : Pendulum<float> {};
StepResult<float> step(Generic device, const OtherReward&, const Parameters& parameters,
                       State& state, const float* action, RandomStream random) {
  auto result = step(device, Pendulum<float>{}, parameters, state, action, random);
  result.reward *= 1.000001f;
  return result;
}
struct OtherEnd : Pendulum<float> {};
StepResult<float> step(Generic device, const OtherEnd&, const Parameters& parameters, State& state,
                       const float* action, RandomStream random) {
  auto result = step(device, Pendulum<float>{}, parameters, state, action, random);
  result.terminated = math::absolute(state.velocity_rad_s) > 4.0f;
  return result;
}

struct Td4 : Td3 {
  static constexpr const char* kName = "TD4";
};
struct OtherAlgorithm : PendulumTd3 {
  using Algorithm = Td4;
};
struct LongerEpisodes : PendulumTd3 {
  static constexpr int kEpisodeSteps = 201;  // as many slots in the buffer
};
struct OtherBatch : PendulumTd3 {
  static constexpr int kBatchSize = 40;
};
struct OtherActor : PendulumTd3 {
  using Actor = Mlp<float, Actor::Shape, Activation::gelu, Activation::tanh>;
};
struct WiderCritic : PendulumTd3 {
  using Critic = Mlp<float, Dimensions<4, 64, 65, 1>, Activation::relu, Activation::identity>;
};
struct InDouble : PendulumTd3 {
  using Scalar = double;
  using Environment = Pendulum<double>;
  using Actor = Mlp<double, PendulumTd3::Actor::Shape, Activation::relu, Activation::tanh>;
  using Critic = Mlp<double, PendulumTd3::Critic::Shape, Activation::relu, Activation::identity>;
};
struct OtherDefaults : PendulumTd3 {
  struct Hyperparameters : Td3Hyperparameters {
    Hyperparameters() { learning_rate = 0.5f; }
  };
};

}  // namespace

TEST_CASE("the fingerprint is the same where no bit of learning changes") {
  CHECK(differences<PendulumTd3>().empty());
  CHECK(differences<WithTileRows<PendulumTd3, 10>>().empty());
  CHECK(differences<WithSecondCriticScratch<PendulumTd3>>().empty());
  CHECK(differences<OtherDefaults>().empty());  // values are set for each run
  Run<PendulumTd3> run, trained(2);
  initialize(Generic{}, trained.training);
  trained.train(Generic{}, 3);
  CHECK(fingerprint(trained.training) == fingerprint(run.training));
}

TEST_CASE("the fingerprint of an experiment without settings stays: its runs go on") {
  CHECK(fingerprint_of<PendulumTd3>() == 2431364855u);
  CHECK(fingerprint_of<PendulumSac>() == 38084460u);
  CHECK(fingerprint_of<PendulumXqc>() == 2299413263u);
}

TEST_CASE("a constant of the environment, a channel or the rate changes the fingerprint") {
  CHECK(differences<In<Heavier>>() == Names{"environment.mass_kg", kBehavior});
  CHECK(differences<In<OtherRange>>() == Names{"observations[2].maximum"});
  CHECK(differences<In<OtherRate>>() == Names{"environment.step_interval_us"});
}

TEST_CASE("an equation of the environment changes the fingerprint") {
  CHECK(differences<In<OtherStart>>() == Names{kBehavior});
  CHECK(differences<In<OtherStep>>() == Names{kBehavior});
  CHECK(differences<In<OtherObservation>>() == Names{kBehavior});
  CHECK(differences<In<OtherReward>>() == Names{kBehavior});
  CHECK(differences<In<OtherEnd>>() == Names{kBehavior});
}

TEST_CASE("experiment, algorithm, sizes and networks change the fingerprint") {
  CHECK(differences<OtherAlgorithm>() == Names{"algorithm"});
  CHECK(differences<LongerEpisodes>() == Names{"episode_steps"});
  CHECK(differences<OtherBatch>() == Names{"batch_size"});
  CHECK(differences<OtherActor>() == Names{"actor.activations[0]", "actor.activations[1]"});
  CHECK(differences<WiderCritic>() == Names{"critic.widths[2]", "state_layout"});
  CHECK(differences<PendulumSac>().count("algorithm") == 1);
  CHECK(differences<InDouble>().count("state_layout") == 1);  // its tensors' types
}
