// Behind the functions of a translated GPU program: its kernels, for who loads it.

extern "C" u8 __start_ptx_shared[], __stop_ptx_shared[];

static Function started;
static u8** start_arguments;

static void begin() {
  started(start_arguments);
  self->is_done = true;
  _longjmp(scheduler, 1);
}

// Run a thread to its next barrier, or to its end.
[[gnu::noinline]] static void resume(Thread& thread) {
  self = &thread;
  if (_setjmp(scheduler) != 0) return;
  if (thread.has_begun) _longjmp(thread.barrier, 1);
  thread.has_begun = true;
  setcontext(&thread.start);
}

// Run a kernel on a grid of blocks. `parameters` are pointers to its arguments. Of the threads,
// those before others go first from barrier to barrier, or last (`reversed`). Returns how many
// barriers there were, or -1 for no such kernel.
extern "C" long ptx_launch(const char* name, u32 blocks, u32 threads, void** parameters,
                           int reversed) {
  const Entry* entry = entries;
  while (entry->name != nullptr && std::strcmp(entry->name, name) != 0) entry++;
  if (entry->name == nullptr || threads > kMaxThreads) return -1;
  static Thread all[kMaxThreads];
  u8* arguments[9] = {nullptr};
  for (int i = 0; entry->parameter_bytes[i] != 0 && i < 8; i++) {
    arguments[i + 1] = static_cast<u8*>(parameters[i]);
  }
  started = entry->function;
  start_arguments = arguments;
  long barriers = 0;
  for (u32 block = 0; block < blocks; block++) {
    std::memset(dynamic_shared, 0xcd, sizeof dynamic_shared);  // it has what was there
    std::memset(__start_ptx_shared, 0xcd,
                static_cast<std::size_t>(__stop_ptx_shared - __start_ptx_shared));
    for (u32 i = 0; i < threads; i++) {
      Thread& thread = all[i];
      thread.tid = i;
      thread.block = block;
      thread.is_done = thread.has_begun = false;
      getcontext(&thread.start);
      thread.start.uc_stack.ss_sp = stacks[i];
      thread.start.uc_stack.ss_size = kStackBytes;
      thread.start.uc_link = nullptr;
      makecontext(&thread.start, begin, 0);
    }
    for (bool is_running = true; is_running; barriers += is_running) {
      is_running = false;
      for (u32 i = 0; i < threads; i++) {
        Thread& thread = all[reversed ? threads - 1 - i : i];
        if (thread.is_done) continue;
        resume(thread);
        is_running = is_running || !thread.is_done;
      }
    }
  }
#if defined(PTX_COUNTS)
  if (const char* path = std::getenv("PTX_COUNTS")) {
    std::FILE* file = std::fopen(path, "wb");
    for (u32 i = 0; i < threads; i++) std::fwrite(all[i].counts, 1, sizeof all[i].counts, file);
    std::fclose(file);
  }
#endif
  return barriers;
}

static const struct {
  const char* name;
  void* address;
} globals[] = {PTX_GLOBALS{nullptr, nullptr}};

extern "C" void* ptx_global(const char* name) {
  for (auto* each = globals; each->name != nullptr; each++) {
    if (std::strcmp(each->name, name) == 0) return each->address;
  }
  return nullptr;
}
