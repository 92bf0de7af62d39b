/* Usage: floor_sqlite FILE.db (made anew) */
#include "floor_sqlite.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc != 2)
        return 1;
    (void)printf("bare SQLite in groups of 32: %.0f appends/s\n", floor_sqlite(argv[1], 32, 2.0));
    return 0;
}
