// The storage of a board that is a process: what is in its file when the process has ended.
#include <doctest/doctest.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "host/file_storage.h"
#include "rltools/policy/slots.h"
#include "slot_push.h"

using namespace rlt;

namespace {

// What the system's calls answer in place of what they do, from one of them on.
struct Disk {
  int syncs_until_failure = -1;
  int interruptions = 0;
  bool takes_half = false;
};
Disk disk;

bool is_interrupted() {
  if (disk.interruptions == 0) return false;
  disk.interruptions--;
  errno = EINTR;
  return true;
}

}  // namespace

extern "C" ssize_t pwrite(int file, const void* source, size_t count, off_t offset) {
  if (is_interrupted()) return -1;
  const size_t part = disk.takes_half ? (count + 1) / 2 : count;
  return syscall(SYS_pwrite64, file, source, part, offset);
}
extern "C" ssize_t pread(int file, void* destination, size_t count, off_t offset) {
  return is_interrupted() ? -1 : syscall(SYS_pread64, file, destination, count, offset);
}
extern "C" int fdatasync(int file) {
  if (is_interrupted()) return -1;
  if (disk.syncs_until_failure >= 0 && disk.syncs_until_failure-- == 0) {
    errno = EIO;  // once
    return -1;
  }
  return static_cast<int>(syscall(SYS_fdatasync, file));
}

namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr const char* kVariable = "RLT_POLICY_STORAGE";

// A file for one test, which does not exist at first, named by the variable.
class File {
 public:
  File() {
    char folder[] = "/tmp/rlt-storage-XXXXXX";
    REQUIRE(mkdtemp(folder) != nullptr);
    folder_ = folder;
    path = folder_ + "/policies.bin";
    setenv(kVariable, path.c_str(), 1);
  }
  ~File() {
    unsetenv(kVariable);
    unlink(path.c_str());
    rmdir(folder_.c_str());
  }
  // Erased memory, in which no part reads as zeros that nobody has written.
  void erase() const {
    const std::string erased(FileStorage::kRecordBytes + 2 * FileStorage::kSlotBytes, '\xff');
    std::ofstream(path, std::ios::binary) << erased;
  }
  Bytes content() const {
    std::ifstream stream(path, std::ios::binary);
    return Bytes(std::istreambuf_iterator<char>(stream), {});
  }

  std::string path;

 private:
  std::string folder_;
};

std::unique_ptr<FileStorage> opened() { return std::make_unique<FileStorage>(); }

// Exit code of a process that opens the storage.
int code_of_another() {
  const pid_t child = fork();
  if (child == 0) {
    std::freopen("/dev/null", "w", stderr);
    opened();
    std::_Exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("without the variable it is memory, erased at first") {
  unsetenv(kVariable);
  const auto storage = opened();
  CHECK(storage->size() % FileStorage::kEraseBytes == 0);
  CHECK(Bytes(storage->data(), storage->data() + storage->size()) == Bytes(storage->size(), 0xff));
  const std::uint8_t unit[FileStorage::kProgramBytes] = {1, 2, 3};
  CHECK(storage->program(32, unit, sizeof(unit)));
  CHECK(storage->data()[33] == 2);
  CHECK(storage->erase(0));
  CHECK(storage->data()[33] == 0xff);
}

TEST_CASE("what is programmed and erased is in the file, at its place") {
  const File file;
  const auto storage = opened();
  std::uint8_t unit[FileStorage::kProgramBytes];
  for (std::uint8_t& byte : unit) byte = 7;
  const std::uint32_t image = FileStorage::kRecordBytes + 64;
  CHECK(storage->program(0, unit, sizeof(unit)));
  CHECK(storage->program(image, unit, sizeof(unit)));
  Bytes content = file.content();
  REQUIRE(content.size() == image + sizeof(unit));
  CHECK(content[31] == 7);
  CHECK(content[image] == 7);
  CHECK(storage->erase(0));
  content = file.content();
  CHECK(Bytes(content.begin(), content.begin() + FileStorage::kEraseBytes) ==
        Bytes(FileStorage::kEraseBytes, 0xff));
  CHECK(content[image] == 7);
}

TEST_CASE("slots are found again, and a file that ends early is erased memory behind its end") {
  const File file;
  const Bytes image(1000, 42);
  {
    const auto storage = opened();
    PolicySlots<FileStorage> slots(*storage);
    REQUIRE(slots.begin());
    CHECK(slots.slot_bytes() == FileStorage::kSlotBytes);
    REQUIRE(slot_push::push(slots, image) == SlotError::none);
  }
  const auto storage = opened();
  PolicySlots<FileStorage> slots(*storage);
  REQUIRE(slots.begin());
  REQUIRE(slots.active().bytes == 1000);
  CHECK(Bytes(slots.active().data, slots.active().data + 1000) == image);
  CHECK(storage->data()[storage->size() - 1] == 0xff);
}

TEST_CASE("one process at a time has the file") {
  const File file;
  auto storage = opened();
  CHECK(code_of_another() == 1);
  storage.reset();
  CHECK(code_of_another() == 0);
}

TEST_CASE("a file that cannot be opened ends the process") {
  const File file;
  setenv(kVariable, "/nowhere/policies.bin", 1);
  CHECK(code_of_another() == 1);
}

// -- a disk that fails ----------------------------------------------------------------------------

namespace {

Bytes memory_of(const FileStorage& storage) {
  return Bytes(storage.data(), storage.data() + storage.size());
}

// As long as it is there, files end at `bytes`, and what would make one longer fails.
class FullDisk {
 public:
  explicit FullDisk(std::uint64_t bytes) {
    before_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit_);
    const rlimit full{bytes, limit_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &full) == 0);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &limit_);
    std::signal(SIGXFSZ, before_);
  }

 private:
  rlimit limit_{};
  void (*before_)(int) = SIG_DFL;
};

}  // namespace

TEST_CASE("a full disk: each write that does not fit fails, and memory is what the file has") {
  const File file;
  file.erase();
  auto storage = opened();
  PolicySlots<FileStorage> slots(*storage);
  REQUIRE(slots.begin());
  const Bytes first(1000, 42), second(10000, 43);
  REQUIRE(slot_push::push(slots, first) == SlotError::none);
  {
    // Within the second slot's second block, and within a unit of it.
    const std::uint32_t slot = FileStorage::kRecordBytes + FileStorage::kSlotBytes;
    const FullDisk full(slot + FileStorage::kEraseBytes + 100);
    CHECK(slot_push::push(slots, second) == SlotError::storage_failed);
    CHECK(slots.candidate_state() == Candidate::none);
    const std::uint8_t unit[FileStorage::kProgramBytes] = {1, 2, 3};
    CHECK_FALSE(storage->erase(slot + 2 * FileStorage::kEraseBytes));
    CHECK_FALSE(storage->program(slot + 2 * FileStorage::kEraseBytes, unit, sizeof(unit)));
  }
  const Bytes memory = memory_of(*storage);
  storage.reset();
  const auto next = opened();
  CHECK((memory == memory_of(*next)));
  PolicySlots<FileStorage> found(*next);
  REQUIRE(found.begin());
  REQUIRE(found.active().bytes == 1000);
  CHECK(slot_push::push(found, second) == SlotError::none);  // there is room again
}

TEST_CASE("a disk without any room: nothing is taken") {
  setenv(kVariable, "/dev/full", 1);
  const auto storage = opened();
  unsetenv(kVariable);
  const std::uint8_t unit[FileStorage::kProgramBytes] = {1, 2, 3};
  CHECK_FALSE(storage->program(FileStorage::kRecordBytes, unit, sizeof(unit)));
  CHECK_FALSE(storage->erase(FileStorage::kRecordBytes));
  CHECK(storage->data()[FileStorage::kRecordBytes] == 0);  // as the device reads
}

TEST_CASE("a record that is not on the disk is not written, whenever that is found out") {
  for (const int syncs : {0, 1}) {  // before the record, and behind it
    CAPTURE(syncs);
    const File file;
    file.erase();
    auto storage = opened();
    PolicySlots<FileStorage> slots(*storage);
    REQUIRE(slots.begin());
    const Bytes first(1000, 42), second(1000, 43);
    REQUIRE(slot_push::push(slots, first) == SlotError::none);
    REQUIRE(slots.stage() == SlotError::none);
    REQUIRE(slots.write(0, second.data(), 1000) == SlotError::none);
    const auto accept = [](const std::uint8_t*, std::uint32_t) { return true; };
    REQUIRE(slots.finish(accept) == SlotError::none);
    REQUIRE(slots.start_trial(0, 1000) == SlotError::none);
    disk.syncs_until_failure = syncs;
    CHECK(slots.confirm(1) == SlotError::storage_failed);
    disk = {};
    CHECK(slots.poll(1000));
    CHECK(slots.active().data[0] == 42);
    const Bytes memory = memory_of(*storage);
    storage.reset();
    const auto next = opened();
    CHECK((memory == memory_of(*next)));
    PolicySlots<FileStorage> found(*next);
    REQUIRE(found.begin());
    CHECK(found.active().data[0] == 42);
  }
}

TEST_CASE("a call that a signal interrupts is made again, and one that takes a part goes on") {
  const File file;
  const Bytes image(1000, 42);
  {
    const auto storage = opened();
    PolicySlots<FileStorage> slots(*storage);
    REQUIRE(slots.begin());
    disk.interruptions = 5;
    disk.takes_half = true;
    CHECK(slot_push::push(slots, image) == SlotError::none);
    CHECK(disk.interruptions == 0);
  }
  disk = {};
  disk.interruptions = 1;
  const auto storage = opened();
  CHECK(disk.interruptions == 0);
  PolicySlots<FileStorage> slots(*storage);
  REQUIRE(slots.begin());
  CHECK(slots.active().bytes == 1000);
}

TEST_CASE("a file that cannot be read ends the process: it is no empty one") {
  setenv(kVariable, "/proc/self/mem", 1);  // opened, locked, and not read at 0
  CHECK(code_of_another() == 1);
  unsetenv(kVariable);
}
