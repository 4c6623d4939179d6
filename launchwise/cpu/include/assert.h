// assert() ends the launch, not the process. Read again at each inclusion, as the standard's.
#undef assert
#ifdef NDEBUG
#define assert(...) static_cast<void>(0)
#else
#define assert(...)                                                                            \
    (static_cast<bool>(__VA_ARGS__)                                                            \
         ? static_cast<void>(0)                                                                \
         : launchwise_cpu::fail("%s:%d: assertion fails: %s", __FILE__, __LINE__, #__VA_ARGS__))
#endif
