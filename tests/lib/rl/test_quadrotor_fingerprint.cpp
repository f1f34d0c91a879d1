// The fingerprint of a quadrotor: an edit of its physics is another one wherever it shows, also
// with settings that no experiment has by default.
#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <set>
#include <string>

#include "crazyflie_ppo.h"
#include "quadrotor_ppo.h"
#include "rltools/core/finite.h"
#include "rltools/rl/fingerprint.h"

using namespace rlt;

namespace {

using Flown = CrazyfliePpo::Environment;
using Settings = Flown::Settings;
using Parameters = Flown::Parameters;
constexpr int kObserved = kCriticObservationDim<Flown>;

// What is edited, at run time: one compiled environment serves all edits.
struct Edit {
  void (*settings)(Settings&, int which) = nullptr;
  void (*parameters)(Parameters&, int which) = nullptr;
  void (*observation)(float* observation, const float* without_noise, int which) = nullptr;
  void (*reset)(Flown::State&) = nullptr;
  void (*result)(StepResult<float>&) = nullptr;
  int which = 0;
};
Edit edit;

struct Edited : Flown {};

Flown edited(const Edited& environment) {
  Flown flown = environment;
  if (edit.settings != nullptr) edit.settings(flown.settings, edit.which);
  return flown;
}
void sample_parameters(Generic device, const Edited& environment, Parameters& parameters,
                       RandomStream random) {
  sample_parameters(device, edited(environment), parameters, random);
  if (edit.parameters != nullptr) edit.parameters(parameters, edit.which);
}
void reset(Generic device, const Edited& environment, const Parameters& parameters,
           Edited::State& state, RandomStream random) {
  reset(device, edited(environment), parameters, state, random);
  if (edit.reset != nullptr) edit.reset(state);
}
StepResult<float> step(Generic device, const Edited& environment, const Parameters& parameters,
                       Edited::State& state, const float* action, RandomStream random) {
  auto result = step(device, edited(environment), parameters, state, action, random);
  CHECK(is_finite(result.reward));
  if (edit.result != nullptr) edit.result(result);
  return result;
}
void observe(Generic device, const Edited& environment, const Parameters& parameters,
             const Edited::State& state, float* observation, RandomStream random) {
  Flown flown = edited(environment);
  observe(device, flown, parameters, state, observation, random);
  bool finite = true;
  for (int i = 0; i < kObserved; i++) finite = finite && is_finite(observation[i]);
  CHECK(finite);  // of a NaN machines have different bits
  if (edit.observation == nullptr) return;
  float without_noise[kObserved];
  flown.settings.noise = 0.0f;
  observe(device, flown, parameters, state, without_noise, random);
  edit.observation(observation, without_noise, edit.which);
}

std::uint32_t behavior_of(Edit changed) {
  edit = changed;
  return detail::behavior_hash<Edited>();
}
bool is_noticed(Edit changed) {
  static const std::uint32_t as_it_is = behavior_of({});
  return behavior_of(changed) != as_it_is;
}

constexpr float kSlightly = 0.999999f;

void scale_setting(Settings& settings, int which, float factor) {
  const std::uint32_t bits = settings.get_bits(which);
  float value;
  std::memcpy(&value, &bits, sizeof value);
  value *= factor;
  std::uint32_t scaled;
  std::memcpy(&scaled, &value, sizeof scaled);
  if (!settings.set_bits(which, scaled)) settings.set_bits(which, bits);  // out of bounds
}
void change_slightly(Settings& settings, int which) { scale_setting(settings, which, kSlightly); }
void halve(Settings& settings, int which) { scale_setting(settings, which, 0.5f); }

// Those that something is compared with, and what the battery loses in a fraction of a second: a
// slight change of them need not show.
bool shows_slight_change(const std::string& name) {
  static const std::set<std::string> coarse{"latency_ms",  "loss",           "push_every_s",
                                            "start_share", "limit_position", "limit_velocity",
                                            "limit_rate",  "sag_per_min"};
  return coarse.count(name) == 0;
}

}  // namespace

TEST_CASE("what the quadrotor does is known: an edit of its physics must be one on purpose") {
  // Where these numbers change, runs from before do not go on.
  CHECK(behavior_of({}) == 462487260u);
  CHECK(detail::behavior_hash<Flown>() == 462487260u);
  CHECK(detail::behavior_hash<QuadrotorPpo::Environment>() == 1255832034u);
}

TEST_CASE("a probe's settings are such as a run may have") {
  for (int probe = 0; probe < Flown::kProbes; probe++) {
    Settings settings = Flown::probe_settings(probe);
    for (int i = 0; i < Settings::kCount; i++) {
      CAPTURE(std::string(Settings::info(i).name));
      CHECK(settings.set_bits(i, settings.get_bits(i)));
    }
  }
}

TEST_CASE("the fingerprint reaches what every setting of the quadrotor's switches on") {
  int numbers = 0;
  for (int i = 0; i < Settings::kCount; i++) {
    const ParameterInfo& info = Settings::info(i);
    CAPTURE(std::string(info.name));
    if (info.type != DataType::f32) continue;
    // The torques of rotors at rest cancel.
    const bool matters = std::string(info.name) != "torque_0";
    Edit changed;
    changed.settings = shows_slight_change(info.name) ? change_slightly : halve;
    changed.which = i;
    CHECK(is_noticed(changed) == matters);
    numbers++;
  }
  CHECK(numbers + 2 == Settings::kCount);  // with the choices of airframe and task
}

TEST_CASE("the fingerprint reaches every airframe and every task") {
  Edit changed;
  changed.parameters = [](Parameters& parameters, int table) {
    if (static_cast<int>(parameters.table) == table) parameters.lift_2 *= kSlightly;
    if (static_cast<int>(parameters.table) == table) parameters.lift_1 *= kSlightly;
  };
  for (int table = 0; table <= quadrotor::kTableCount; table++) {  // 0: the settings' own values
    CAPTURE(table);
    changed.which = table;
    CHECK(is_noticed(changed));
  }
  const auto drawn = [](std::uint32_t choice) {  // which tables its probe draws
    static std::uint32_t choice_of_airframe;
    static std::set<std::uint32_t> tables;
    choice_of_airframe = choice;
    tables.clear();
    Edit watched;
    watched.settings = [](Settings& settings, int) {
      if (settings.airframe != choice_of_airframe) settings.airframe = 0;
    };
    watched.parameters = [](Parameters& parameters, int) { tables.insert(parameters.table); };
    behavior_of(watched);
    tables.erase(0);
    return tables;
  };
  CHECK(drawn(quadrotor::kAnyCrazyflie).size() == quadrotor::kCrazyflieTables);
  CHECK(*drawn(quadrotor::kAnyAirframe).rbegin() > quadrotor::kCrazyflieTables);

  Edit target;
  target.settings = [](Settings& settings, int task) {
    if (static_cast<int>(settings.task) == task) settings.target_m *= kSlightly;
  };
  for (const auto task : {quadrotor::Task::waypoints, quadrotor::Task::figure_eight}) {
    CAPTURE(static_cast<int>(task));
    target.which = static_cast<int>(task);
    CHECK(is_noticed(target));
  }
  Edit hovers;
  hovers.settings = [](Settings& settings, int) {
    if (settings.task == static_cast<std::uint32_t>(quadrotor::Task::hover)) settings.task = 1;
  };
  CHECK(is_noticed(hovers));
}

TEST_CASE("the fingerprint reaches every parameter of an episode") {
  static int count;
  const auto edit_field = [](Parameters& parameters, int which) {
    count = 0;
    parameters.for_each_field([&](const char* name, auto& field) {
      if (count++ != which) return;
      using Field = std::remove_reference_t<decltype(field)>;
      if constexpr (std::is_array_v<Field>) {
        field[0] *= kSlightly;
      } else if constexpr (std::is_floating_point_v<Field>) {
        field *= shows_slight_change(name) ? kSlightly : 0.5f;
      } else if (name == std::string("latency")) {
        field += 1;
      }
    });
  };
  Edit changed;
  changed.parameters = edit_field;
  changed.which = -1;
  CHECK_FALSE(is_noticed(changed));
  // Neither a number to look up nor what torques from outside do, of which there are none.
  const std::set<std::string> idle{"table", "per_inertia_x", "per_inertia_y", "per_inertia_z"};
  Parameters().for_each_field([&](const char* name, auto&) {
    changed.which++;
    CAPTURE(std::string(name));
    CHECK(is_noticed(changed) == (idle.count(name) == 0));
  });
  CHECK(changed.which + 1 == count);
}

TEST_CASE("the fingerprint reaches every sensor with its noise, starts and rewards") {
  Edit value;
  value.observation = [](float* observation, const float*, int which) {
    observation[which] *= kSlightly;
  };
  Edit noise;
  noise.observation = [](float* observation, const float* without_noise, int which) {
    const float difference = observation[which] - without_noise[which];
    observation[which] = without_noise[which] + difference * 1.001f;
  };
  for (int i = 0; i < kObserved; i++) {
    CAPTURE(i);
    value.which = noise.which = i;
    CHECK(is_noticed(value));
    CHECK(is_noticed(noise) == (i < contracts::Quadrotor::kObservationDim));
  }
  Edit start;
  start.reset = [](Flown::State& state) { state.velocity_m_s[1] += 1e-4f; };
  CHECK(is_noticed(start));
  Edit reward;
  reward.result = [](StepResult<float>& result) { result.reward *= kSlightly; };
  CHECK(is_noticed(reward));
  Edit end;
  end.result = [](StepResult<float>& result) { result.terminated = false; };
  CHECK(is_noticed(end));
}
