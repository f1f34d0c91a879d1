// A file that one process at a time has.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#if defined(_WIN32)
#include <windows.h>
#else
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#endif

namespace rlt {

class SharedFile {
 public:
  enum class Lock { taken, in_use, refused };

  SharedFile() = default;
  ~SharedFile() {
    if (is_open()) close();
  }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  bool is_open() const { return handle_ != kNone; }

  // Read the bytes from an offset on, and return how many there are before the file's end; -1 where
  // it cannot be read.
  long read(std::uint32_t offset, std::uint8_t* destination, std::uint32_t count) {
    std::uint32_t done = 0;
    while (done < count) {
      const long got = read_some(offset + done, destination + done, count - done);
      if (got < 0) return -1;
      if (got == 0) break;
      done += static_cast<std::uint32_t>(got);
    }
    return static_cast<long>(done);
  }

  // Return whether all bytes were written.
  bool write(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    std::uint32_t done = 0;
    while (done < count) {
      const long written = write_some(offset + done, source + done, count - done);
      if (written <= 0) return false;
      done += static_cast<std::uint32_t>(written);
    }
    return true;
  }

#if defined(_WIN32)
  // Open the file that an environment variable names, or make it.
  bool open(const char* variable) {
    wchar_t name[64] = {}, path[4096];
    for (int i = 0; variable[i] != '\0' && i < 63; i++) name[i] = static_cast<wchar_t>(variable[i]);
    const DWORD length = ::GetEnvironmentVariableW(name, path, sizeof path / sizeof *path);
    if (length == 0 || length >= sizeof path / sizeof *path) return false;
    handle_ = ::CreateFileW(path, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE,
                            nullptr, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, nullptr);
    return is_open();
  }

  // Lock it for this process, until that ends.
  Lock lock() {
    OVERLAPPED place = at(kLockedByte);
    constexpr DWORD kHow = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
    if (::LockFileEx(handle_, kHow, 0, 1, 0, &place)) return Lock::taken;
    const DWORD error = ::GetLastError();
    const bool is_others = error == ERROR_LOCK_VIOLATION || error == ERROR_IO_PENDING;
    return is_others ? Lock::in_use : Lock::refused;
  }

  // Return whether all that was written is on the disk.
  bool synchronize() { return ::FlushFileBuffers(handle_) != 0; }

  static void sleep_ms(std::uint32_t duration_ms) { ::Sleep(duration_ms); }

 private:
  using Handle = HANDLE;
  static inline const Handle kNone = INVALID_HANDLE_VALUE;
  static constexpr std::uint32_t kLockedByte = 0x7ffffffe;  // behind all that a file has

  static OVERLAPPED at(std::uint32_t offset) {
    OVERLAPPED place{};
    place.Offset = offset;
    return place;
  }
  void close() { ::CloseHandle(handle_); }
  long read_some(std::uint32_t offset, std::uint8_t* destination, std::uint32_t count) {
    OVERLAPPED place = at(offset);
    DWORD got = 0;
    if (::ReadFile(handle_, destination, count, &got, &place)) return static_cast<long>(got);
    return ::GetLastError() == ERROR_HANDLE_EOF ? 0 : -1;
  }
  long write_some(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    OVERLAPPED place = at(offset);
    DWORD written = 0;
    if (!::WriteFile(handle_, source, count, &written, &place)) return -1;
    return static_cast<long>(written);
  }
#else
  // Open the file that an environment variable names, or make it.
  bool open(const char* variable) {
    handle_ = ::open(std::getenv(variable), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    return is_open();
  }

  // Lock it for this process, until that ends.
  Lock lock() {
    if (::flock(handle_, LOCK_EX | LOCK_NB) == 0) return Lock::taken;
    return errno == EWOULDBLOCK || errno == EINTR ? Lock::in_use : Lock::refused;
  }

  // Return whether all that was written is on the disk.
  bool synchronize() {
    return again([this] {
#if defined(__APPLE__)
             return ::fcntl(handle_, F_FULLFSYNC);  // fsync() leaves it to the drive
#else
             return ::fdatasync(handle_);
#endif
           }) != -1;
  }

  static void sleep_ms(std::uint32_t duration_ms) { ::usleep(duration_ms * 1000); }

 private:
  using Handle = int;
  static constexpr Handle kNone = -1;

  void close() { ::close(handle_); }
  long read_some(std::uint32_t offset, std::uint8_t* destination, std::uint32_t count) {
    return again([&] { return ::pread(handle_, destination, count, offset); });
  }
  long write_some(std::uint32_t offset, const std::uint8_t* source, std::uint32_t count) {
    return again([&] { return ::pwrite(handle_, source, count, offset); });
  }
  // Call call() again as often as a signal interrupts it.
  template <class Call>
  static long again(Call&& call) {
    long result;
    do {
      result = static_cast<long>(call());
    } while (result < 0 && errno == EINTR);
    return result;
  }
#endif

  Handle handle_ = kNone;
};

}  // namespace rlt
