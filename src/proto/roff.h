/* roff: parts of a manual page in the man(7) macros.  Text is escaped, so that a backslash, a dash
 * or a leading dot prints unchanged.  A line break in a text begins a new paragraph.  Ownership:
 * none.  Errors: none. */
#pragma once

#include "base/buf.h"

/* The title line and the section NAME.  The page has no date: it is generated from the sources. */
void roff_page(struct buf *to, const char *page, int section, const char *version,
               const char *purpose);
void roff_section(struct buf *to, const char *heading);
void roff_subsection(struct buf *to, const char *heading);
void roff_text(struct buf *to, struct str text);
/* One entry of a list: a bold term and the text that explains it. */
void roff_term(struct buf *to, struct str term, struct str text);
/* Text with its line breaks kept: a usage line, examples. */
void roff_literal(struct buf *to, struct str text);
/* "holt-exec(1), holt-file(1)": call it once per page, last is false while more follow. */
void roff_reference(struct buf *to, const char *page, int section, bool last);
