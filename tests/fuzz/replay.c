/* replay: runs a fuzz target over its corpus, without libFuzzer: each file whole, and cut short at
 * each length, so that every parser also meets every early end of its seeds.  Each input stands in
 * a block of exactly its size: a sanitizer sees one byte read too many. */

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (1024 * 1024)
#define CUT_MAX 2048 /* cut short at each length up to here */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run_one(const char *bytes, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);

    if (!copy)
        abort();
    memcpy(copy, bytes, n);
    (void)LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static int run_file(const char *path)
{
    static char bytes[FILE_MAX];
    FILE *f = fopen(path, "re");
    size_t n = 0;

    if (!f) {
        fprintf(stderr, "open '%s': %m\n", path);
        return -1;
    }
    n = fread(bytes, 1, sizeof bytes, f);
    (void)fclose(f);
    for (size_t cut = 0; cut < n && cut < CUT_MAX; cut++)
        run_one(bytes, cut);
    run_one(bytes, n);
    return 0;
}

static int run_directory(const char *path)
{
    DIR *d = opendir(path);
    int count = 0;

    if (!d) {
        fprintf(stderr, "open '%s': %m\n", path);
        return -1;
    }
    for (struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
        char file[4096];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (run_file(file) < 0)
            break;
        count++;
    }
    (void)closedir(d);
    return count;
}

int main(int argc, char **argv)
{
    int count = argc == 2 ? run_directory(argv[1]) : -1;

    if (count < 0)
        fprintf(stderr, "usage: %s CORPUS-DIRECTORY\n", argv[0]);
    else if (!count)
        fprintf(stderr, "'%s' is empty: a target needs seeds\n", argv[1]);
    else
        printf("%d seeds\n", count);
    return count > 0 ? 0 : 1;
}
