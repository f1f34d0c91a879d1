// What program.cpp needs of the machine that it runs on.
#pragma once

#include <cstdint>

namespace machine {

void print(const char* text);
std::uint64_t instructions();  // executed so far; 0 where nothing counts them
[[noreturn]] void finish();

}  // namespace machine
