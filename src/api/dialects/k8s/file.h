/* file: files of the two runtimes, below the directory K8S_BASE of a sandbox.  path: the rest of
 * the request's path, as sent.  All reply.  Thread: the loop's. */
#pragma once

#include "api/dialects/k8s/k8s.h"

void k8s_download(struct request *r, struct sandbox *s, struct str path);
void k8s_list_files(struct request *r, struct sandbox *s, struct str path);
void k8s_exists(struct request *r, struct sandbox *s, struct str path);
void k8s_upload(struct request *r);
void k8s_files(struct request *r, struct sandbox *s, struct str path); /* sandboxd's, any method */
/* The words of a command line; their number, or -1.  Texts are in the arena. */
CHECKED int k8s_split_words(struct str line, struct arena *a, struct str *ret, size_t max,
                            struct err *e);
