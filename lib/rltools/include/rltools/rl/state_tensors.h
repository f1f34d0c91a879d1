// The arrays of the training state, as algorithms list them: for_each_state_tensor() of
// rl/training.h visits what these functions visit.
#pragma once

#include "rltools/nn/mlp.h"
#include "rltools/nn/optimizer.h"
#include "rltools/rl/normalizer.h"
#include "rltools/rl/training.h"

namespace rlt {

// Visit an array that is no part of a network's layer.
template <class T, class Visitor>
void visit_array(const char* name, T* data, int rows, int columns, Visitor&& visitor) {
  visitor(TensorInfo{name, data_type_of(data), static_cast<std::uint32_t>(rows),
                     static_cast<std::uint32_t>(columns)},
          static_cast<void*>(data));
}

// Visit the same array in each of `count` structs, `stride` bytes apart: (count rows, columns).
template <class T, class Visitor>
void visit_arrays(const char* name, T* first, int count, std::size_t stride, int rows, int columns,
                  Visitor&& visitor) {
  TensorInfo info{name, data_type_of(first), static_cast<std::uint32_t>(count * rows),
                  static_cast<std::uint32_t>(columns)};
  info.pieces = static_cast<std::uint32_t>(count);
  info.stride = static_cast<std::uint32_t>(stride);
  visitor(info, static_cast<void*>(first));
}

// Visit the moments and powers of an optimizer of a network with layers.
template <class Network, class Visitor>
void visit_optimizer(const char* first_moment, const char* second_moment, const char* decay_power,
                     AdamState<Network>& optimizer, Visitor&& visitor) {
  for_each_tensor(first_moment, optimizer.first_moment, visitor);
  for_each_tensor(second_moment, optimizer.second_moment, visitor);
  visit_array(decay_power, optimizer.decay_power, 2, 1, visitor);
}

// Visit a field of each of `count` structs, with its own type: (elements, 1) of a single one, else
// (count, elements).
template <class Struct, class Visitor>
void visit_fields(const char* name, Struct* structs, int count, Visitor&& visitor) {
  structs[0].for_each_field([&](const char* field_name, auto& field) {
    using Field = std::remove_reference_t<decltype(field)>;
    using Element = std::remove_all_extents_t<Field>;
    constexpr auto kElements = static_cast<std::uint32_t>(sizeof(Field) / sizeof(Element));
    const auto number = static_cast<std::uint32_t>(count);
    TensorInfo info{name, data_type_of(static_cast<const Element*>(nullptr)),
                    count == 1 ? kElements : number, count == 1 ? 1u : kElements};
    info.field = field_name;
    info.pieces = number;
    info.stride = sizeof(Struct);
    visitor(info, static_cast<void*>(&field));
  });
}

// Visit an array of the progress, of this name there.
template <class T, class Visitor>
void visit_progress(const char* field_name, T* data, int rows, bool may_be_nan, Visitor&& visitor) {
  TensorInfo info{"progress", data_type_of(data), static_cast<std::uint32_t>(rows), 1};
  info.field = field_name;
  info.may_be_nan = may_be_nan;
  visitor(info, static_cast<void*>(data));
}

// Visit the environments' states and episodes, and the progress of the run.
template <class E, class Visitor>
void for_each_environment_tensor(Training<E>& training, Visitor&& visitor) {
  constexpr int kCount = kEnvironmentCount<E>;
  auto& environments = training.learner.environments;
  auto& progress = training.learner.progress;
  visit_fields("environment_state", environments.state, kCount, visitor);
  if constexpr (kSamplesParameters<typename E::Environment>) {
    visit_fields("environment_parameters", environments.values, kCount, visitor);
  }
  visit_progress("step", &progress.step, 1, false, visitor);
  visit_progress("updates", &progress.updates, 1, false, visitor);
  visit_progress("episodes", environments.episodes, kCount, false, visitor);
  visit_progress("episode_step", environments.episode_step, kCount, false, visitor);
  visit_progress("episode_return", environments.episode_return, kCount, false, visitor);
  visit_progress("last_return", &progress.last_return, 1, true, visitor);
  visit_progress("best_return", &progress.best_return, 1, true, visitor);
}

template <class T, int D, class Visitor>
void for_each_normalizer_tensor(Normalizer<T, D>& normalizer, Visitor&& visitor) {
  visit_array("normalizer/count", &normalizer.count, 1, 1, visitor);
  visit_array("normalizer/mean", normalizer.mean, D, 1, visitor);
  visit_array("normalizer/sum_of_squares", normalizer.sum_of_squares, D, 1, visitor);
  visit_array("normalizer/shift", normalizer.shift, D, 1, visitor);
  visit_array("normalizer/scale", normalizer.scale, D, 1, visitor);
}

}  // namespace rlt
