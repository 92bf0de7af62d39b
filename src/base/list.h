/* list: an intrusive doubly linked list.  The head is a node of its own; an unlinked node points at
 * itself, so unlinking twice is harmless. */
#pragma once

#include "base/macro.h"

struct list {
    struct list *next, *prev;
};

static inline void list_init(struct list *l)
{
    l->next = l->prev = l;
}

static inline bool list_is_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_push(struct list *head, struct list *node) /* appends */
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

static inline void list_unlink(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

static inline struct list *list_pop(struct list *head) /* removes and returns the first, or NULL */
{
    struct list *first = head->next;

    if (first == head)
        return NULL;
    list_unlink(first);
    return first;
}

/* The body may unlink (and free) the current node. */
#define LIST_EACH(head, node)                                                                      \
    for (struct list *node = (head)->next, *node##_next_ = node->next; node != (head);             \
         node = node##_next_, node##_next_ = node->next)
#define LIST_ENTRY(node, type, member) CONTAINER_OF(node, type, member)
