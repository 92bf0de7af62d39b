/* macro: the few language extensions holt is written with.
 * AUTO(fn) on a local calls fn(value) at the end of its scope; TAKE and TAKE_FD are the only ways
 * to move the value out.  DEFINE_AUTO(type, fn) makes AUTO(fn) work for a destructor. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef NDEBUG
#error "holt is never built without its assertions"
#endif

#define CHECKED __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define UNUSED __attribute__((unused))
#define NORETURN __attribute__((noreturn))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(p, type, member) ((type *)(void *)((char *)(p) - offsetof(type, member)))

#define AUTO(fn) __attribute__((cleanup(fn##_p)))
#define DEFINE_AUTO(type, fn)                                                                      \
    static inline UNUSED void fn##_p(type *p)                                                      \
    {                                                                                              \
        (void)fn(*p);                                                                              \
    }

#define TAKE(p)                                                                                    \
    __extension__({                                                                                \
        __typeof__(p) taken_ = (p);                                                                \
        (p) = NULL;                                                                                \
        taken_;                                                                                    \
    })
#define TAKE_FD(fd)                                                                                \
    __extension__({                                                                                \
        int taken_fd_ = (fd);                                                                      \
        (fd) = -1;                                                                                 \
        taken_fd_;                                                                                 \
    })

static inline size_t size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t size_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

static inline int64_t i64_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t i64_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
