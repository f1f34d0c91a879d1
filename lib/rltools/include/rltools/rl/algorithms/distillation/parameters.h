// Hyperparameters and metrics of distillation (distillation.h).
#pragma once

#include "rltools/rl/ppo_parameters.h"

namespace rlt {

// PPO's are those of the teacher.
#define RLT_DISTILLATION_HYPERPARAMETERS(X)                                                        \
  RLT_PPO_HYPERPARAMETERS(X)                                                                       \
  X(std::uint32_t, teacher_steps, 50000, 1, 4294967295.0, "steps", "Of all steps, the teacher's.") \
  X(float, teacher_acts, 0.2, 0, 1, "",                                                            \
    "Part of the student's steps until it acts everywhere: the teacher acts less and less.")       \
  X(float, retry, 0, 0, 1, "",                                                                     \
    "Part of the student's episodes after one that terminated that have its parameters again.")    \
  X(float, student_learning_rate, 1e-3, 0, 1, "",                                                  \
    "Adam's learning rate of the student, at the start.")                                          \
  X(float, student_lr_end_factor, 0.1, 0, 1, "",                                                   \
    "Factor of that at the end; its square root falls evenly.")                                    \
  X(std::uint32_t, student_epochs, 2, 1, 1000, "", "Optimization epochs of the student.")

RLT_DEFINE_HYPERPARAMETERS(DistillationHyperparameters, RLT_DISTILLATION_HYPERPARAMETERS)

#define RLT_DISTILLATION_METRICS(X)                                                        \
  X(imitation_loss, "Mean squared difference of the student's and the teacher's actions.") \
  X(student_learning_rate, "Adam's learning rate of the student.")                         \
  RLT_PPO_METRICS(X)

RLT_DEFINE_METRICS(DistillationMetrics, RLT_DISTILLATION_METRICS)

// The defaults of PPO's are those of the teacher's experiment.
template <class Teacher>
struct DistillationDefaults : DistillationHyperparameters {
  DistillationDefaults() {
    const typename Teacher::Hyperparameters teachers;
    for (int i = 0; i < PpoHyperparameters::kCount; i++) set_bits(i, teachers.get_bits(i));
    teacher_steps = teachers.steps;
  }
};

}  // namespace rlt
