/* Shares functions among the tests. */
#ifndef KIT_H
#define KIT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nudge.h>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                \
    }                                                                         \
  } while (0)

static inline nudge_str S(const char *text) { return nudge_cstr(text); }

static inline int is(nudge_str text, const char *expected) {
  return text.len == strlen(expected) && (text.len == 0 || !memcmp(text.ptr, expected, text.len));
}

static inline int holds(nudge_str text, const char *part) {
  size_t len = strlen(part);
  for (size_t at = 0; at + len <= text.len; at++)
    if (!memcmp(text.ptr + at, part, len)) return 1;
  return 0;
}

/* Checks the error of a call that must be refused, and frees it. */
static inline int refused(nudge_status status, nudge_error **place, nudge_status expected, const char *part) {
  nudge_error *error = *place;
  nudge_str message = nudge_error_message(error);
  int right = status == expected && nudge_error_code(error) == expected && message.len > 0 && holds(message, part) &&
              holds(nudge_error_data(error), "\"reason\":\"E_");
  if (!right)
    fprintf(stderr, "status %d, error %d: %.*s\n", (int)status, (int)nudge_error_code(error), (int)message.len,
            message.ptr);
  nudge_error_free(error);
  *place = NULL;
  return right;
}

static inline nudge_store *new_store(void) {
  nudge_store *store = NULL;
  CHECK(nudge_store_new(NULL, &store, NULL) == NUDGE_OK && store);
  return store;
}

static inline void set_text(const nudge_store *store, const char *component, const char *key, const char *value) {
  nudge_set_params params;
  memset(&params, 0, sizeof params);
  params.struct_size = sizeof params;
  params.component = S(component);
  params.key = S(key);
  params.value = S(value);
  CHECK(nudge_set(store, &params, NULL, NULL) == NUDGE_OK);
}

#endif
