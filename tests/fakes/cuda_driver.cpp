// NVIDIA's driver library (libcuda.so.1) on a computer without a GPU: the functions that a launcher
// calls, with their signatures and error codes. Programs are PTX, run by what ptx.py makes of it;
// device memory is this computer's. A launch runs at once, and says itself what a GPU would say
// later on. cuda_driver.py builds the library. Environment variables:
//   STAND_IN_CUDA_TRANSLATE        command that makes a library of PTX, given the files of both
//   STAND_IN_CUDA_DEVICES          number of GPUs (1)
//   STAND_IN_CUDA_VERSION          version of CUDA (12080: 12.8)
//   STAND_IN_CUDA_MEMORY           bytes of memory that a GPU has (1 GiB)
//   STAND_IN_CUDA_REVERSED         1: of a block's threads, the last one goes first
//   STAND_IN_CUDA_FALLS_OFF_AFTER  number of the launch that fails, as does any call behind it
//   STAND_IN_CUDA_SIGTERM_AT       number of the launch during which SIGTERM reaches this process
#include <dlfcn.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#define ERRORS(X)                            \
  X(CUDA_SUCCESS, 0)                         \
  X(CUDA_ERROR_INVALID_VALUE, 1)             \
  X(CUDA_ERROR_OUT_OF_MEMORY, 2)             \
  X(CUDA_ERROR_NOT_INITIALIZED, 3)           \
  X(CUDA_ERROR_NO_DEVICE, 100)               \
  X(CUDA_ERROR_INVALID_DEVICE, 101)          \
  X(CUDA_ERROR_INVALID_CONTEXT, 201)         \
  X(CUDA_ERROR_INVALID_PTX, 218)             \
  X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222) \
  X(CUDA_ERROR_INVALID_HANDLE, 400)          \
  X(CUDA_ERROR_NOT_FOUND, 500)               \
  X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)         \
  X(CUDA_ERROR_LAUNCH_FAILED, 719)

namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

#define CODE(Name, Number) Name = Number,
enum Result : int { ERRORS(CODE) };
#define ENTRY(Name, Number) {Name, #Name},
const std::map<int, const char*> error_names = {ERRORS(ENTRY)};

constexpr int kMaxThreads = 1024;
constexpr int kSharedBytes = 48 << 10;  // of a block whose kernel does not ask for more
constexpr int kOptInSharedBytes = 232448;
constexpr u8 kUntouched = 0xcd;  // what ptx_launch fills shared memory with

// By CUdevice_attribute.
const std::map<int, int> device_attributes = {
    {16, 4},                 // MULTIPROCESSOR_COUNT
    {39, 2048},              // MAX_THREADS_PER_MULTIPROCESSOR
    {75, 9},                 // COMPUTE_CAPABILITY_MAJOR
    {76, 0},                 // COMPUTE_CAPABILITY_MINOR
    {97, kOptInSharedBytes}  // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
};
constexpr int kMaxDynamicSharedBytes = 8;         // of CUfunction_attribute
constexpr int kErrorLog = 5, kErrorLogBytes = 6;  // of CUjit_option

using Ranges = std::map<u64, u64>;  // bytes from an address on

struct Module {
  void* library;
  std::string ptx;
  u8* dynamic_shared;
  int static_shared_bytes;
  Ranges globals;  // that were asked for
};
struct Kernel {
  Module* module;
  std::string name;
  std::vector<bool> is_pointer;  // of each parameter
  int dynamic_shared_bytes;      // that a launch may ask for
};
struct Device {
  int references = 0;  // to its primary context
  u64 used = 0;
  Ranges allocations;
  std::list<Module> modules;
  std::list<Kernel> kernels;
};

std::mutex mutex;
std::vector<Device> devices;  // none before cuInit
thread_local Device* current = nullptr;
Result failure = CUDA_SUCCESS;  // that every call returns from then on
u64 launches = 0;

u64 setting(const char* name, u64 otherwise) {
  const char* text = std::getenv((std::string("STAND_IN_CUDA_") + name).c_str());
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}
u64 total_memory() { return setting("MEMORY", u64{1} << 30); }
u64 aligned(u64 bytes) { return (bytes + 255) / 256 * 256; }

bool has(const Ranges& ranges, u64 address, u64 bytes) {
  const auto behind = ranges.upper_bound(address);
  if (behind == ranges.begin()) return false;
  const auto [first, size] = *std::prev(behind);
  return address - first < size && bytes <= size - (address - first);
}
bool has(const Device& device, u64 address, u64 bytes) {
  const auto has_it = [=](const Module& module) { return has(module.globals, address, bytes); };
  return has(device.allocations, address, bytes) ||
         std::any_of(device.modules.begin(), device.modules.end(), has_it);
}

// ---- Calls --------------------------------------------------------------------------------------

template <class Function>
Result call(Function&& function) {
  const std::lock_guard<std::mutex> lock(mutex);
  return failure == CUDA_SUCCESS ? function() : failure;
}
template <class Function>
Result call_on(int ordinal, Function&& function) {
  return call([&] {
    if (devices.empty()) return CUDA_ERROR_NOT_INITIALIZED;
    if (ordinal < 0 || ordinal >= int(devices.size())) return CUDA_ERROR_INVALID_DEVICE;
    return function(devices[u32(ordinal)]);
  });
}
template <class Function>
Result call_in_context(Function&& function) {
  return call_on(0, [&](Device&) {
    const bool is_retained = current != nullptr && current->references > 0;
    return is_retained ? function(*current) : CUDA_ERROR_INVALID_CONTEXT;
  });
}
template <class Handle, class Function>
Result call_with(std::list<Handle> Device::* all, const Handle* handle, Function&& function) {
  return call_in_context([&](Device& device) {
    for (Handle& each : device.*all) {
      if (&each == handle) return function(device, each);
    }
    return CUDA_ERROR_INVALID_HANDLE;
  });
}
template <class Function>
Result call_at(u64 address, u64 bytes, Function&& function) {
  return call_in_context([&](Device& device) {
    if (bytes > 0 && !has(device, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    function(reinterpret_cast<void*>(address));
    return CUDA_SUCCESS;
  });
}
template <class T, class Value>
Result give(T* result, Value value) {
  *result = static_cast<T>(value);
  return CUDA_SUCCESS;
}

// ---- Programs -----------------------------------------------------------------------------------

template <class Signature>
Signature* function_of(const Module& module, const char* name) {
  return reinterpret_cast<Signature*>(dlsym(module.library, name));
}

// Return the program's library, or nullptr, with the reason in `log`.
void* translated(const char* ptx, std::string& log) {
  std::string folder = std::filesystem::temp_directory_path() / "stand-in-cuda-XXXXXX";
  const char* translate = std::getenv("STAND_IN_CUDA_TRANSLATE");
  if (translate == nullptr || mkdtemp(folder.data()) == nullptr) return nullptr;
  const std::string ptx_path = folder + "/program.ptx", path = folder + "/program.so";
  std::ofstream(ptx_path) << ptx;
  const std::string log_path = folder + "/log";
  const std::string command =
      std::string(translate) + " '" + ptx_path + "' '" + path + "' 2> '" + log_path + "'";
  const bool is_made = std::system(command.c_str()) == 0;
  void* library = is_made ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  std::ifstream log_file(log_path);
  log.assign(std::istreambuf_iterator<char>(log_file), {});
  std::filesystem::remove_all(folder);
  return library;
}

Result load(Device& device, const char* ptx, Module** result, std::string& log) {
  int major = 0, minor = 0;
  const char* version = std::strstr(ptx, ".version ");
  if (version == nullptr || std::sscanf(version, ".version %d.%d", &major, &minor) != 2) {
    return CUDA_ERROR_INVALID_PTX;
  }
  // CUDA 11.x reads PTX up to 7.x, 12.x up to 8.x (from 12.6 on, one less).
  const int cuda = int(setting("VERSION", 12080)) / 10;
  const int newest = cuda - 400 - (cuda >= 1206 && cuda < 1300 ? 1 : 0);
  if (major * 100 + minor > newest) return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  void* library = translated(ptx, log);
  if (library == nullptr) return CUDA_ERROR_INVALID_PTX;
  Module& module = device.modules.emplace_back(Module{library, ptx, nullptr, 0, {}});
  auto* shared = function_of<int(u8**)>(module, "ptx_shared_memory");
  module.static_shared_bytes = shared(&module.dynamic_shared);
  return give(result, &module);
}

void unload(Device& device, Module& module) {
  device.kernels.remove_if([&](const Kernel& each) { return each.module == &module; });
  dlclose(module.library);
  device.modules.remove_if([&](const Module& each) { return &each == &module; });
}

int default_dynamic_bytes(const Module& module) {
  return kSharedBytes - module.static_shared_bytes;
}

Result find(Device& device, Module& module, const std::string& name, Kernel** result) {
  for (Kernel& each : device.kernels) {
    if (each.module == &module && each.name == name) return give(result, &each);
  }
  const std::size_t head = module.ptx.find(".entry " + name + "(");
  if (head == std::string::npos) return CUDA_ERROR_NOT_FOUND;
  Kernel kernel{&module, name, {}, default_dynamic_bytes(module)};
  const std::string parameters = module.ptx.substr(head, module.ptx.find(')', head) - head);
  for (std::size_t at = parameters.find(".param "); at != std::string::npos;) {
    const std::size_t next = parameters.find(".param ", at + 1);
    const std::string parameter = parameters.substr(at, next - at);
    kernel.is_pointer.push_back(parameter.find(" .ptr ") != std::string::npos);
    at = next;
  }
  return give(result, &device.kernels.emplace_back(kernel));
}

// Faults: the address of no device memory, and a block that wrote behind its shared memory.
Result launch(const Device& device, const Kernel& kernel, u32 blocks, u32 threads, u32 shared,
              void** parameters) {
  std::vector<void*> all(parameters, parameters + kernel.is_pointer.size());
  for (std::size_t i = 0; i < all.size(); i++) {
    if (!kernel.is_pointer[i]) continue;
    const u64 address = *static_cast<const u64*>(all[i]);
    if (address != 0 && !has(device, address, 1)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  all.resize(8);
  using Launch = long(const char*, u32, u32, void**, int);
  auto* ptx_launch = function_of<Launch>(*kernel.module, "ptx_launch");
  ptx_launch(kernel.name.c_str(), blocks, threads, all.data(), setting("REVERSED", 0) == 1);
  const u8* memory = kernel.module->dynamic_shared;
  const auto is_touched = [](u8 byte) { return byte != kUntouched; };
  return std::any_of(memory + shared, memory + kOptInSharedBytes, is_touched)
             ? CUDA_ERROR_ILLEGAL_ADDRESS
             : CUDA_SUCCESS;
}

}  // namespace

// ---- The library's functions --------------------------------------------------------------------

extern "C" {

int cuGetErrorName(int error, const char** name) {
  const auto found = error_names.find(error);
  *name = found == error_names.end() ? nullptr : found->second;
  return *name == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

int cuInit(u32 flags) {
  return call([&] {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (devices.empty()) devices = std::vector<Device>(setting("DEVICES", 1));
    return devices.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
  });
}
int cuDriverGetVersion(int* version) {
  return call([&] { return give(version, setting("VERSION", 12080)); });
}

int cuDeviceGetCount(int* count) {
  return call_on(0, [&](Device&) { return give(count, devices.size()); });
}
int cuDeviceGet(int* device, int ordinal) {
  return call_on(ordinal, [&](Device&) { return give(device, ordinal); });
}
int cuDeviceGetName(char* name, int bytes, int device) {
  return call_on(device, [&](Device&) {
    const bool is_written = bytes > 0 && std::snprintf(name, u32(bytes), "Stand-in GPU") > 0;
    return is_written ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return call_on(device, [&](Device&) {
    const auto found = device_attributes.find(attribute);
    const bool is_known = found != device_attributes.end();
    return is_known ? give(value, found->second) : CUDA_ERROR_INVALID_VALUE;
  });
}

int cuDevicePrimaryCtxRetain(Device** context, int device) {
  return call_on(device, [&](Device& own) {
    own.references++;
    return give(context, &own);
  });
}
// The last release frees what the context has.
int cuDevicePrimaryCtxRelease_v2(int device) {
  return call_on(device, [&](Device& own) {
    if (own.references == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--own.references > 0) return CUDA_SUCCESS;
    while (!own.modules.empty()) unload(own, own.modules.front());
    for (const auto& each : own.allocations) std::free(reinterpret_cast<void*>(each.first));
    own = Device{};
    return CUDA_SUCCESS;
  });
}
int cuCtxSetCurrent(Device* context) {
  return call_on(0, [&](Device&) {
    const bool is_retained = std::any_of(devices.begin(), devices.end(), [&](const Device& each) {
      return &each == context && each.references > 0;
    });
    if (context != nullptr && !is_retained) return CUDA_ERROR_INVALID_CONTEXT;
    return give(&current, context);
  });
}
int cuCtxSetLimit(int limit, std::size_t) {
  return call_in_context(
      [&](Device&) { return limit == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; });
}
int cuCtxSynchronize() {
  return call_in_context([](Device&) { return CUDA_SUCCESS; });
}

int cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total) {
  return call_in_context([&](Device& device) {
    *total = total_memory();
    return give(free_bytes, *total - device.used);
  });
}
int cuMemAlloc_v2(u64* address, std::size_t bytes) {
  return call_in_context([&](Device& device) {
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    const u64 left = total_memory() - device.used;
    const bool is_room = bytes <= left && aligned(bytes) <= left;
    void* memory = is_room ? std::aligned_alloc(256, aligned(bytes)) : nullptr;
    if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    std::memset(memory, 0xa5, bytes);  // it has what was there
    device.used += aligned(bytes);
    device.allocations[reinterpret_cast<u64>(memory)] = bytes;
    return give(address, reinterpret_cast<u64>(memory));
  });
}
int cuMemFree_v2(u64 address) {
  return call_in_context([&](Device& device) {
    const auto found = device.allocations.find(address);
    if (found == device.allocations.end()) return CUDA_ERROR_INVALID_VALUE;
    device.used -= aligned(found->second);
    device.allocations.erase(found);
    std::free(reinterpret_cast<void*>(address));
    return CUDA_SUCCESS;
  });
}
int cuMemcpyHtoD_v2(u64 to, const void* from, std::size_t bytes) {
  return call_at(to, bytes, [&](void* memory) { std::memcpy(memory, from, bytes); });
}
int cuMemcpyDtoH_v2(void* to, u64 from, std::size_t bytes) {
  return call_at(from, bytes, [&](void* memory) { std::memcpy(to, memory, bytes); });
}

// Of the options, those of the log of errors count; how long it is replaces its size.
int cuModuleLoadDataEx(Module** module, const void* image, u32 count, int* options, void** values) {
  return call_in_context([&](Device& device) {
    std::string log;
    const Result result = load(device, static_cast<const char*>(image), module, log);
    char* text = nullptr;
    void** bytes = nullptr;
    for (u32 i = 0; i < count; i++) {
      if (options[i] == kErrorLog) text = static_cast<char*>(values[i]);
      if (options[i] == kErrorLogBytes) bytes = &values[i];
    }
    if (text != nullptr && bytes != nullptr && *bytes != nullptr) {
      const u64 length = std::min<u64>(log.size(), reinterpret_cast<u32&>(*bytes) - 1);
      std::strcpy(text, log.substr(0, length).c_str());
      *bytes = reinterpret_cast<void*>(length);
    }
    return result;
  });
}
int cuModuleUnload(Module* module) {
  return call_with(&Device::modules, module, [](Device& device, Module& own) {
    unload(device, own);
    return CUDA_SUCCESS;
  });
}
int cuModuleGetFunction(Kernel** kernel, Module* module, const char* name) {
  return call_with(&Device::modules, module,
                   [&](Device& device, Module& own) { return find(device, own, name, kernel); });
}
int cuModuleGetGlobal_v2(u64* address, std::size_t* bytes, Module* module, const char* name) {
  return call_with(&Device::modules, module, [&](Device&, Module& own) {
    const u64 found =
        reinterpret_cast<u64>(function_of<void*(const char*)>(own, "ptx_global")(name));
    if (found == 0) return CUDA_ERROR_NOT_FOUND;
    own.globals[found] = sizeof(u32);
    if (address != nullptr) *address = found;
    if (bytes != nullptr) *bytes = sizeof(u32);
    return CUDA_SUCCESS;
  });
}

int cuFuncSetAttribute(Kernel* kernel, int attribute, int value) {
  return call_with(&Device::kernels, kernel, [&](Device&, Kernel& own) {
    const int most = kOptInSharedBytes - own.module->static_shared_bytes;
    const bool is_valid = attribute == kMaxDynamicSharedBytes && value >= 0 && value <= most;
    return is_valid ? give(&own.dynamic_shared_bytes, value) : CUDA_ERROR_INVALID_VALUE;
  });
}
int cuLaunchKernel(Kernel* kernel, u32 blocks, u32 grid_y, u32 grid_z, u32 threads, u32 block_y,
                   u32 block_z, u32 shared, void* stream, void** parameters, void** extra) {
  return call_with(&Device::kernels, kernel, [&](Device& device, Kernel& own) {
    if (++launches == setting("FALLS_OFF_AFTER", 0)) return failure = CUDA_ERROR_LAUNCH_FAILED;
    if (launches == setting("SIGTERM_AT", 0)) std::raise(SIGTERM);
    const int allowed = std::max(own.dynamic_shared_bytes, default_dynamic_bytes(*own.module));
    const bool is_line = grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1;
    const bool is_of_size = blocks - 1 < 0x7fffffff && threads - 1 < kMaxThreads;
    if (!is_line || !is_of_size || shared > u32(allowed)) return CUDA_ERROR_INVALID_VALUE;
    if (stream != nullptr || extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (parameters == nullptr && !own.is_pointer.empty()) return CUDA_ERROR_INVALID_VALUE;
    return failure = launch(device, own, blocks, threads, shared, parameters);
  });
}

}  // extern "C"
