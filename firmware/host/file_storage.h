// The storage of policies of a board that is a process (rltools/policy/storage.h): the file that
// the environment variable RLT_POLICY_STORAGE names; without it memory, which the process's end
// clears. One process at a time has the file.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace rlt {

class FileStorage {
 public:
  static constexpr std::uint32_t kEraseBytes = 4096;
  static constexpr std::uint32_t kProgramBytes = 32;
  static constexpr std::uint32_t kSlotBytes = 512 * 1024;
  static constexpr std::uint32_t kRecordBytes = 2 * kEraseBytes;  // what slots.h writes last

  // End the process where the file cannot be had: policies must not get lost unnoticed.
  FileStorage() {
    std::memset(bytes_, 0xff, sizeof(bytes_));
    const char* path = std::getenv("RLT_POLICY_STORAGE");
    if (path != nullptr && path[0] != '\0') open(path);
  }
  ~FileStorage() {
    if (file_ >= 0) ::close(file_);
  }
  FileStorage(const FileStorage&) = delete;
  FileStorage& operator=(const FileStorage&) = delete;

  std::uint32_t size() const { return sizeof(bytes_); }
  const std::uint8_t* data() const { return bytes_; }
  bool erase(std::uint32_t offset) {
    std::uint8_t erased[kEraseBytes];
    std::memset(erased, 0xff, sizeof(erased));
    return program(offset, erased, sizeof(erased));
  }
  // Program bytes. If that fails, data() has what the file has, and the next process will read.
  bool program(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    if (file_ >= 0 && !write(offset, source, count)) {
      read(offset, count);
      return false;
    }
    std::memcpy(bytes_ + offset, source, count);
    return true;
  }

 private:
  static constexpr int kPatience = 20;  // tenths of a second that another process may take
  static constexpr ::useconds_t kTenth_us = 100'000;

  void open(const char* path) {
    file_ = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0) fail("cannot be opened", path);
    for (int i = 0; ::flock(file_, LOCK_EX | LOCK_NB) != 0; i++) {
      if (errno != EWOULDBLOCK && errno != EINTR) fail("cannot be locked", path);
      if (i == kPatience) fail("is in use by another board", path);
      ::usleep(kTenth_us);
    }
    if (!read(0, sizeof(bytes_))) fail("cannot be read", path);
  }

  // Read into memory. A file that is shorter ends in memory that was never programmed.
  bool read(std::uint32_t offset, std::uint32_t count) {
    while (count > 0) {
      const ssize_t got = again([&] { return ::pread(file_, bytes_ + offset, count, offset); });
      if (got <= 0) return got == 0;
      offset += static_cast<std::uint32_t>(got);
      count -= static_cast<std::uint32_t>(got);
    }
    return true;
  }

  // Write through to the disk: a record is written when what it describes is on the disk, and is
  // there itself before what follows.
  bool write(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    const bool is_record = offset < kRecordBytes;
    if (is_record && !is_on_disk()) return false;
    while (count > 0) {
      const ssize_t written = again([&] { return ::pwrite(file_, source, count, offset); });
      if (written <= 0) return false;
      source += written;
      offset += static_cast<std::uint32_t>(written);
      count -= static_cast<std::uint32_t>(written);
    }
    return !is_record || is_on_disk();
  }
  bool is_on_disk() {
    return again([this] { return ::fdatasync(file_); }) == 0;
  }
  // Call call() again as often as a signal interrupts it.
  template <class Call>
  static ssize_t again(Call&& call) {
    ssize_t result;
    do {
      result = call();
    } while (result < 0 && errno == EINTR);
    return result;
  }

  [[noreturn]] static void fail(const char* what, const char* path) {
    std::fprintf(stderr, "the policies' file %s %s\n", path, what);
    std::_Exit(1);
  }

  int file_ = -1;
  alignas(8) std::uint8_t bytes_[kRecordBytes + 2 * kSlotBytes];
};

}  // namespace rlt
