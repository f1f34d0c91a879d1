// Files of named arrays of double: the goldens that tests/goldens/generate.py makes with PyTorch,
// and its inputs. For each array: u32 length of the name, the name, u32 count, count doubles; all
// little-endian, nothing in between.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace golden {

using Array = std::vector<double>;

inline void write_array(std::FILE* file, const std::string& name, const Array& values) {
  const auto length = static_cast<std::uint32_t>(name.size());
  const auto count = static_cast<std::uint32_t>(values.size());
  std::fwrite(&length, sizeof length, 1, file);
  std::fwrite(name.data(), 1, length, file);
  std::fwrite(&count, sizeof count, 1, file);
  std::fwrite(values.data(), sizeof(double), count, file);
}

class File {
 public:
  // `name` is a file of tests/goldens; tests run in the root of the tree.
  explicit File(const std::string& name) : path_("tests/goldens/" + name) {
    std::FILE* file = std::fopen(path_.c_str(), "rb");
    if (file == nullptr) throw std::runtime_error("cannot read " + path_);
    std::uint32_t length, count;
    while (std::fread(&length, sizeof length, 1, file) == 1) {
      std::string array_name(length, '\0');
      read(file, array_name.data(), length);
      read(file, &count, sizeof count);
      Array values(count);
      read(file, values.data(), sizeof(double) * count);
      arrays_[array_name] = values;
    }
    std::fclose(file);
  }

  const Array& operator[](const std::string& name) const {
    const auto found = arrays_.find(name);
    if (found == arrays_.end()) throw std::runtime_error(path_ + " has no array " + name);
    return found->second;
  }

 private:
  void read(std::FILE* file, void* destination, std::size_t bytes) const {
    if (std::fread(destination, 1, bytes, file) == bytes) return;
    throw std::runtime_error(path_ + " is cut short");
  }

  std::string path_;
  std::map<std::string, Array> arrays_;
};

}  // namespace golden
