/* selector: selections of objects by labels and fields. */
#include "api/dialects/k8s/k8s.h"

/* The part up to the next comma that is not inside parentheses. */
static struct str next_term(struct str *left)
{
    size_t n = 0;
    int depth = 0;
    struct str term;

    for (; n < left->n && (left->p[n] != ',' || depth > 0); n++)
        depth += (left->p[n] == '(') - (left->p[n] == ')');
    term = str_trim(str_make(left->p, n));
    *left = str_skip(*left, size_min(n + 1, left->n));
    return term;
}

static struct str first_word(struct str s, struct str *rest)
{
    size_t n = 0;

    while (n < s.n && s.p[n] != ' ' && s.p[n] != '(')
        n++;
    *rest = str_trim(str_skip(s, n));
    return str_make(s.p, n);
}

/* "key in (a,b)", "key notin (a,b)" */
static bool read_set(struct str term, struct k8s_term *t)
{
    struct str rest, op;

    t->key = first_word(term, &rest);
    op = first_word(rest, &rest);
    t->op = str_eq_c(op, "in") ? TERM_IN : TERM_NOT_IN;
    if ((t->op == TERM_NOT_IN && !str_eq_c(op, "notin")) || rest.n < 2 || rest.p[0] != '(' ||
        rest.p[rest.n - 1] != ')')
        return false;
    t->values = str_make(rest.p + 1, rest.n - 2);
    return t->key.n > 0;
}

/* "key=a", "key==a", "key!=a" */
static bool read_equality(struct str term, struct k8s_term *t)
{
    struct str value, key = str_cut(term, '=', &value);

    t->op = TERM_IN;
    if (key.n > 0 && key.p[key.n - 1] == '!') {
        t->op = TERM_NOT_IN;
        key.n--;
    } else if (value.n > 0 && value.p[0] == '=') {
        value = str_skip(value, 1);
    }
    t->key = str_trim(key);
    t->values = str_trim(value);
    return t->key.n > 0 && str_index(t->values, ',') < 0;
}

static bool read_term(struct str term, struct k8s_term *t)
{
    bool not = term.n > 0 && term.p[0] == '!';

    if (str_index(term, '(') >= 0)
        return read_set(term, t);
    if (str_index(term, '=') >= 0)
        return read_equality(term, t);
    t->op = not ? TERM_ABSENT : TERM_EXISTS;
    t->key = str_trim(str_skip(term, not));
    return t->key.n > 0 && str_index(t->key, ' ') < 0;
}

static int read_terms(struct str text, struct k8s_term *terms, size_t *count, struct err *e)
{
    struct str left = str_trim(text);

    while (left.n > 0) {
        struct str term = next_term(&left);

        if (*count >= K8S_TERMS_MAX)
            return err_set(e, ERR_INVALID, 0, "a selector has at most %d terms", K8S_TERMS_MAX);
        if (!read_term(term, &terms[*count]))
            return err_set(e, ERR_INVALID, 0, "unable to parse requirement: '" STR_FMT "'",
                           (int)size_min(term.n, 80), term.p ? term.p : "");
        (*count)++;
    }
    return 0;
}

int k8s_select_labels(struct k8s_selector *s, struct str text, struct err *e)
{
    return read_terms(text, s->labels, &s->label_count, e);
}

int k8s_select_fields(struct k8s_selector *s, struct str text, struct err *e)
{
    if (read_terms(text, s->fields, &s->field_count, e) < 0)
        return -1;
    for (size_t i = 0; i < s->field_count; i++)
        if ((!str_eq_c(s->fields[i].key, "metadata.name") &&
             !str_eq_c(s->fields[i].key, "metadata.namespace")) ||
            s->fields[i].op == TERM_EXISTS || s->fields[i].op == TERM_ABSENT)
            return err_set(e, ERR_INVALID, 0, "field label not supported: " STR_FMT,
                           (int)size_min(s->fields[i].key.n, 80), s->fields[i].key.p);
    return 0;
}

static bool is_among(struct str value, struct str values)
{
    bool more = true;

    while (more) {
        struct str rest, one = str_cut(values, ',', &rest);

        more = one.n < values.n;
        if (str_eq(str_trim(one), value))
            return true;
        values = rest;
    }
    return false;
}

static bool fits(const struct k8s_term *t, const json_t *v)
{
    struct str value =
        json_is_string(v) ? str_make(json_string_value(v), json_string_length(v)) : STR("");

    switch (t->op) {
    case TERM_EXISTS:
        return v;
    case TERM_ABSENT:
        return !v;
    case TERM_IN:
        return v && is_among(value, t->values);
    case TERM_NOT_IN:
        break;
    }
    return !v || !is_among(value, t->values);
}

bool k8s_selects(const struct k8s_selector *s, const json_t *object)
{
    const json_t *meta = k8s_meta(object), *labels = json_object_get(meta, "labels");

    for (size_t i = 0; i < s->field_count; i++)
        if (!fits(&s->fields[i], json_object_getn(meta, s->fields[i].key.p + strlen("metadata."),
                                                  s->fields[i].key.n - strlen("metadata."))))
            return false;
    for (size_t i = 0; i < s->label_count; i++)
        if (!fits(&s->labels[i], json_object_getn(labels, s->labels[i].key.p, s->labels[i].key.n)))
            return false;
    return true;
}
