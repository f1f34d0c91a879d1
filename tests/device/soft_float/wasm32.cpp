// WebAssembly, which has no fused multiply-add, in a host that gives it env.print() and
// env.finish() (run_wasm.mjs). Without a C library: what the compiler calls is here.
#include <cstddef>

#include "machine.h"

extern "C" {

[[clang::import_module("env"), clang::import_name("print")]] void print_text(const char* text);
[[noreturn, clang::import_module("env"), clang::import_name("finish")]] void finish_program();

// As a library may have it: rounds twice.
float fmaf(float a, float b, float c) {
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b) +
                            static_cast<double>(c));
}

// Compiled with -fno-builtin: these loops do not become calls of themselves.
void* memcpy(void* to, const void* from, std::size_t size) {
  for (std::size_t i = 0; i < size; i++) {
    static_cast<unsigned char*>(to)[i] = static_cast<const unsigned char*>(from)[i];
  }
  return to;
}

void* memset(void* to, int value, std::size_t size) {
  for (std::size_t i = 0; i < size; i++) {
    static_cast<unsigned char*>(to)[i] = static_cast<unsigned char>(value);
  }
  return to;
}

int memcmp(const void* a, const void* b, std::size_t size) {
  for (std::size_t i = 0; i < size; i++) {
    const int difference =
        static_cast<const unsigned char*>(a)[i] - static_cast<const unsigned char*>(b)[i];
    if (difference != 0) return difference;
  }
  return 0;
}

}  // extern "C"

void machine::print(const char* text) { print_text(text); }
std::uint64_t machine::instructions() { return 0; }
void machine::finish() { finish_program(); }
