// Operations on arrays (core/arrays.h) by a block's threads.
#pragma once

#include "rltools/core/arrays.h"
#include "rltools/kernels/block/threads.h"

namespace rlt {

template <int Count, class T>
Block copy(Block device, const T* source, T* result) {
  return block::for_each_element<Count>(
      device, [=](int i) { result[i] = source[i]; }, source, result);
}

template <int Count, class T>
Block fill(Block device, T value, T* result) {
  return block::for_each_element<Count>(device, [=](int i) { result[i] = value; }, result);
}

template <int Count, class T>
Block scale(Block device, T factor, T* value) {
  return block::for_each_element<Count>(device, [=](int i) { value[i] *= factor; }, value);
}

template <int Count, class T>
Block add_scaled(Block device, T factor, const T* x, T* value) {
  return block::for_each_element<Count>(
      device, [=](int i) { add_scaled<1>(Generic{}, factor, x + i, value + i); }, x, value);
}

}  // namespace rlt
