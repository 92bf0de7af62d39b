/* cut_vfs: a SQLite VFS that can lose power.  It passes everything on to the system's own, and
 * remembers beside it what each file would hold had the power gone: what was synced, and any
 * subset of what was written since, torn at sectors.
 * Thread: any; arm, cut and restore when no database is open or by the test's own thread. */
#pragma once

#include "base/macro.h"

enum cut_mode { CUT_DROP_ALL, CUT_DROP_SOME };

void cut_vfs_register(void); /* as "cut" */
/* The power goes at the nth write, truncation or sync from now (0: never by itself). */
void cut_vfs_arm(int64_t operations, enum cut_mode mode, uint64_t seed);
void cut_vfs_cut(void);      /* now */
uint64_t cut_vfs_time(void); /* uv_hrtime of the cut; 0: there is power */
/* Power is back: the files hold what they would hold.  All databases are closed. */
void cut_vfs_restore(void);
void cut_vfs_forget(void); /* the files are gone; start from nothing */
