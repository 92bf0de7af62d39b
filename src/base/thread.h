/* thread: which thread is the loop's, for asserts of ownership: objects of the loop are touched by
 * no other.  In a program that claims none, every thread may. */
#pragma once

#include <stdbool.h>

void thread_claim_loop(void); /* the calling one is the loop's from here on */
bool thread_is_loop(void);
