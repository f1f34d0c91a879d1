// The folder of policies on the vehicle's card, as policy_files.h wants it.
// RLT_PX4_FOLDER: where it is.
#pragma once

#include <fcntl.h>
#include <px4_platform_common/defines.h>
#include <px4_platform_common/posix.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef RLT_PX4_FOLDER
#define RLT_PX4_FOLDER PX4_STORAGEDIR "/rlt"
#endif

namespace rlt::px4 {

class PolicyFolder {
 public:
  void make() { ::mkdir(RLT_PX4_FOLDER, 0777); }
  bool exists(const char* name) {
    struct stat status;
    return ::stat(path(name), &status) == 0;
  }
  bool remove(const char* name) { return ::unlink(path(name)) == 0; }
  bool rename(const char* from, const char* to) {
    char source[kPathBytes];
    strncpy(source, path(from), sizeof(source) - 1);
    source[sizeof(source) - 1] = '\0';
    return ::rename(source, path(to)) == 0;
  }
  template <class Take>
  bool read(const char* name, Take&& take) {
    const int file = ::open(path(name), O_RDONLY);
    if (file < 0) return false;
    uint32_t offset = 0;
    ssize_t count;
    while ((count = ::read(file, buffer_, sizeof(buffer_))) > 0) {
      if (!take(offset, buffer_, static_cast<uint32_t>(count))) break;
      offset += static_cast<uint32_t>(count);
    }
    ::close(file);
    return count == 0;
  }

 private:
  static constexpr size_t kPathBytes = 128;
  const char* path(const char* name) {
    snprintf(path_, sizeof(path_), "%s/%s", RLT_PX4_FOLDER, name);
    return path_;
  }
  char path_[kPathBytes] = {};
  uint8_t buffer_[256] = {};
};

}  // namespace rlt::px4
