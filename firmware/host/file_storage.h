// The storage of policies of a board that is a process (rltools/policy/storage.h): the file that
// the environment variable RLT_POLICY_STORAGE names; without it memory, which the process's end
// clears. One process at a time has the file.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "host/shared_file.h"

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
    const char* path = std::getenv(kVariable);
    if (path != nullptr && path[0] != '\0') open(path);
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
    if (file_.is_open() && !write(offset, source, count)) {
      read(offset, count);
      return false;
    }
    std::memcpy(bytes_ + offset, source, count);
    return true;
  }

 private:
  static constexpr const char* kVariable = "RLT_POLICY_STORAGE";
  static constexpr int kPatience = 20;  // tenths of a second that another process may take
  static constexpr std::uint32_t kTenth_ms = 100;

  void open(const char* path) {
    if (!file_.open(kVariable)) fail("cannot be opened", path);
    SharedFile::Lock lock;
    for (int i = 0; (lock = file_.lock()) != SharedFile::Lock::taken; i++) {
      if (lock == SharedFile::Lock::refused) fail("cannot be locked", path);
      if (i == kPatience) fail("is in use by another board", path);
      SharedFile::sleep_ms(kTenth_ms);
    }
    if (!read(0, sizeof(bytes_))) fail("cannot be read", path);
  }

  // Read into memory. A file that is shorter ends in memory that was never programmed.
  bool read(std::uint32_t offset, std::uint32_t count) {
    return file_.read(offset, bytes_ + offset, count) >= 0;
  }

  // Write through to the disk: a record is written when what it describes is on the disk, and is
  // there itself before what follows.
  bool write(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    const bool is_record = offset < kRecordBytes;
    return (!is_record || file_.synchronize()) && file_.write(offset, source, count) &&
           (!is_record || file_.synchronize());
  }

  [[noreturn]] static void fail(const char* what, const char* path) {
    std::fprintf(stderr, "the policies' file %s %s\n", path, what);
    std::_Exit(1);
  }

  SharedFile file_;
  alignas(8) std::uint8_t bytes_[kRecordBytes + 2 * kSlotBytes];
};

}  // namespace rlt
