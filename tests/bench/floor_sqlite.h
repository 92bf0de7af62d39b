/* floor_sqlite: the least a program must do for durable events: bare SQLite, one thread, groups of
 * inserts into tables like the store's, one synced commit a group.  Returns events a second. */
#pragma once

double floor_sqlite(const char *path, int group, double seconds);
