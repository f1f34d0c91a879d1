// A main for compilers without libFuzzer: runs a target over the files that it is given.
#include "input.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace {

void run(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const fuzz::Bytes bytes{std::istreambuf_iterator<char>(file), {}};
  // A copy of its very size, so that the address sanitizer sees what is read behind it.
  std::fprintf(stderr, "%s\n", path.c_str());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int argument_count, char** arguments) {
  int files = 0;
  for (int i = 1; i < argument_count; i++) {
    if (!std::filesystem::is_directory(arguments[i])) {
      run(arguments[i]);
      files++;
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(arguments[i])) {
      run(entry.path());
      files++;
    }
  }
  std::printf("%d inputs\n", files);
  return files > 0 ? 0 : 1;
}
