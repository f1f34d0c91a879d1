// MuJoCo behind the tasks of this folder: one model for the process, which any thread reads, and
// one mjData for each thread, made when it first needs one. Neither is part of an environment's
// state: a task copies a state into this thread's mjData, steps it and copies the result back.
//
// An experiment gets MuJoCo's headers, its library and the folder of the models by a line
// `// Requires: mujoco` (cmake/mujoco.cmake).
#pragma once

#if !defined(RLT_MUJOCO_MODELS) || !__has_include(<mujoco/mujoco.h>)
#error "MuJoCo's tasks are for experiments with the line `// Requires: mujoco`."
#else

#include <mujoco/mujoco.h>

#include <cstdint>
#include <cstdio>
#include <type_traits>

#include "rltools/policy/contract.h"

namespace rlt::mujoco {

static_assert(std::is_same_v<mjtNum, double>, "MuJoCo computes in double");

// A task's description of its model, which must agree.
struct ModelDescription {
  const char* task;
  const char* file;  // in the folder RLT_MUJOCO_MODELS
  int position_count, velocity_count, body_count;
  int action_count;
  const Channel* actions;  // with the actuators' ranges
  int frame_skip;
  std::uint32_t step_interval_us;
};

namespace detail {

// Log errors only. MuJoCo would print warnings on standard output, where a program's link may be,
// and append them to a file in the working directory. A simulation that diverges is one: MuJoCo
// restarts from the model's initial state, which the task's reward shows. After an error MuJoCo
// ends the program.
inline void log_errors_only(const mjLogMessage* message) {
  if (message->level == mjLOG_ERROR) std::fprintf(stderr, "MuJoCo: %s\n", message->subject);
}

// Return whether a step depends on other state than time, qpos, qvel and qacc_warmstart.
inline bool has_other_state(const mjModel& model) {
  const int with_controls_and_forces = 1 + model.nq + 2 * model.nv + model.nu + model.nv;
  return mj_stateSize(&model, mjSTATE_INTEGRATION) != with_controls_and_forces + 6 * model.nbody;
}

inline bool has_these_ranges(const mjModel& model, const Channel* actions) {
  for (int i = 0; i < model.nu; i++) {
    const mjtNum* range = model.actuator_ctrlrange + 2 * i;
    if (!model.actuator_ctrllimited[i] || static_cast<float>(range[0]) != actions[i].minimum ||
        static_cast<float>(range[1]) != actions[i].maximum) {
      return false;
    }
  }
  return true;
}

}  // namespace detail

// A model, which lives as long as the process: threads may step until its end.
class Model {
 public:
  explicit Model(const ModelDescription& description) {
    mju_setLogHandler(detail::log_errors_only);
    if (mj_version() != mjVERSION_HEADER) {
      say("%s: built for version %d of MuJoCo, and the library is of version %d: build again",
          description.task, mjVERSION_HEADER, mj_version());
      return;
    }
    char path[1024], reason[512] = "";
    std::snprintf(path, sizeof path, "%s/%s", RLT_MUJOCO_MODELS, description.file);
    mjModel* model = mj_loadXML(path, nullptr, reason, sizeof reason);
    if (model == nullptr) {
      say("%s: MuJoCo cannot load the model %s: %s", description.task, path, reason);
    } else if (check(*model, description, path)) {
      model_ = model;
    } else {
      mj_deleteModel(model);
    }
  }

  // Return the model; null where unavailable() says why.
  const mjModel* get() const { return model_; }

  // Return one sentence, or null where the model is loaded.
  const char* unavailable() const { return model_ == nullptr ? sentence_ : nullptr; }

 private:
  bool check(const mjModel& model, const ModelDescription& expected, const char* path) {
    if (model.nq != expected.position_count || model.nv != expected.velocity_count ||
        model.nbody != expected.body_count || model.nu != expected.action_count) {
      say("%s: the model %s has %d positions, %d velocities, %d bodies and %d actuators, and the "
          "task is written for %d, %d, %d and %d",
          expected.task, path, model.nq, model.nv, model.nbody, model.nu, expected.position_count,
          expected.velocity_count, expected.body_count, expected.action_count);
      return false;
    }
    if (detail::has_other_state(model)) {
      say("%s: the model %s has a state beside positions and velocities", expected.task, path);
      return false;
    }
    if (!detail::has_these_ranges(model, expected.actions)) {
      say("%s: the ranges of the model %s are not those of the task's actions", expected.task,
          path);
      return false;
    }
    const double step_us = 1e6 * model.opt.timestep * expected.frame_skip;
    if (static_cast<std::uint32_t>(step_us + 0.5) != expected.step_interval_us) {
      say("%s: %d steps of the model %s take %g us, and the task's step %g us", expected.task,
          expected.frame_skip, path, step_us, static_cast<double>(expected.step_interval_us));
      return false;
    }
    return true;
  }

  template <class... Values>
  void say(const char* format, Values... values) {
    std::snprintf(sentence_, sizeof sentence_, format, values...);
    for (char& c : sentence_) {
      if (c == '\n') c = ' ';
    }
  }

  const mjModel* model_ = nullptr;
  char sentence_[2048] = "";
};

// The simulation data with which one thread steps a model.
class Data {
 public:
  explicit Data(const mjModel* model) : data_(model == nullptr ? nullptr : mj_makeData(model)) {}
  ~Data() { mj_deleteData(data_); }
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;
  mjData* get() const { return data_; }

 private:
  mjData* data_;
};

// Both are null where there is no simulator.
struct Simulator {
  const mjModel* model;
  mjData* data;
};

// Return the model, loaded by the first thread that asks, while others wait.
template <class Task>
const Model& model_of() {
  using State = typename Task::State;
  static const Model model{
      {Task::kName, Task::kModelFile, static_cast<int>(std::extent_v<decltype(State::qpos)>),
       static_cast<int>(std::extent_v<decltype(State::qvel)>), Task::kBodyCount, Task::kActionDim,
       Task::kActions, Task::kFrameSkip, Task::kStepInterval_us}};
  return model;
}

template <class Task>
Simulator simulator_of_this_thread() {
  thread_local const Data data{model_of<Task>().get()};
  return {data.get() == nullptr ? nullptr : model_of<Task>().get(), data.get()};
}

}  // namespace rlt::mujoco

#endif
