// The fingerprint of a quadrotor: an edit of its physics is another one wherever it shows, also
// with settings that no experiment has by default.
#include <doctest/doctest.h>

#include <cstring>
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
}
StepResult<float> step(Generic device, const Edited& environment, const Parameters& parameters,
                       Edited::State& state, const float* action, RandomStream random) {
  const auto result = step(device, edited(environment), parameters, state, action, random);
  CHECK(is_finite(result.reward));
  return result;
}
void observe(Generic device, const Edited& environment, const Parameters& parameters,
             const Edited::State& state, float* observation, RandomStream random) {
  Flown flown = edited(environment);
  observe(device, flown, parameters, state, observation, random);
  bool finite = true;
  for (int i = 0; i < kObserved; i++) finite = finite && is_finite(observation[i]);
  CHECK(finite);  // of a NaN machines have different bits
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
  CHECK(behavior_of({}) == 153593267u);
  CHECK(detail::behavior_hash<Flown>() == 153593267u);
  CHECK(detail::behavior_hash<QuadrotorPpo::Environment>() == 2096669239u);
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
