/* thread: which thread is the loop's. */
#include "base/thread.h"

#include <stdatomic.h>

static atomic_bool claimed;
static _Thread_local bool is_mine;

void thread_claim_loop(void)
{
    is_mine = true;
    atomic_store_explicit(&claimed, true, memory_order_relaxed);
}

bool thread_is_loop(void)
{
    return is_mine || !atomic_load_explicit(&claimed, memory_order_relaxed);
}
