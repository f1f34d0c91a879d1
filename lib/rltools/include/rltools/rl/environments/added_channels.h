// What wrappers need that put channels behind an environment's observations: texts that are made
// when the program is compiled.
#pragma once

namespace rlt::detail {

// A text that is put together when the program is compiled, of fewer bytes than Capacity.
template <int Capacity>
struct ConstantText {
  char characters[Capacity]{};
  int length = 0;

  constexpr bool fits() const { return length < Capacity; }
  constexpr void add(char character) {
    if (length + 1 < Capacity) characters[length] = character;
    length++;
  }
  constexpr ConstantText& add(const char* text) {
    for (; *text != '\0'; text++) add(*text);
    return *this;
  }
  constexpr ConstantText& add(int number) {
    if (number >= 10) add(number / 10);
    add(static_cast<char>('0' + number % 10));
    return *this;
  }
};

constexpr int kChannelNameBytes = 24, kEnvironmentNameBytes = 32;  // of a policy image

}  // namespace rlt::detail
