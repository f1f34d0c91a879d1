// NAME=VALUE, as a program on this machine is given a hyperparameter or a setting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "rltools/rl/hyperparameters.h"

namespace rlt {

// Take it into the values; false where it has no such form, names none of them or is out of
// bounds.
template <class Values>
bool assign(Values& values, const char* argument) {
  const char* equals = std::strchr(argument, '=');
  if (equals == nullptr) return false;
  const auto length = static_cast<std::size_t>(equals - argument);
  for (int i = 0; i < Values::kCount; i++) {
    const char* name = Values::info(i).name;
    if (std::strncmp(name, argument, length) != 0 || name[length] != '\0') continue;
    char* end = nullptr;
    const double value = std::strtod(equals + 1, &end);
    const bool is_integer = Values::info(i).type == DataType::u32;
    const std::uint32_t bits =
        is_integer ? static_cast<std::uint32_t>(value) : detail::to_bits(static_cast<float>(value));
    return *end == '\0' && values.set_bits(i, bits);
  }
  return false;
}

}  // namespace rlt
