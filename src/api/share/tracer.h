/* tracer: private to src/api: spans of requests and commands, sent to a collector of OpenTelemetry
 * (OTLP over HTTP, as JSON).  Off unless the setting otlp_endpoint names one.  Nothing waits for
 * the collector: spans are queued up to a bound, and what is dropped is counted and logged. A
 * request continues the trace of its field traceparent; its commands get theirs as TRACEPARENT.
 * Thread: the loop's. */
#pragma once

#include "api/request.h"
#include "proto/trace.h"

struct exec_spec;

struct span { /* of a request: in its exchange's arena */
    struct trace_place here;
    unsigned char parent[8]; /* all 0: none */
    bool has_parent;
    int64_t began_us; /* wall clock */
};

CHECKED int tracer_open(struct api *a, struct err *e); /* a->tracer stays NULL: off */
void tracer_begin(struct request *r);                  /* sets r->span, or leaves it NULL */
void tracer_end(struct request *r);                    /* its reply has gone out */
/* The command continues the request's trace.  Texts live in the request's arena. */
void tracer_spec(const struct request *r, struct exec_spec *spec);
/* The place of a request as traceparent, in its arena; "": it has none. */
struct str tracer_text(const struct request *r);
void tracer_tick(struct api *a); /* every second */
void tracer_stop(struct api *a); /* no request to the collector goes on or begins */
void tracer_free(struct api *a); /* once the loop has called that request's end */
