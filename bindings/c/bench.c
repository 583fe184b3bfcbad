/*
 * Is the C side of the row `c` of tests/bench: makes the lookups of the Rust side, and prints their time.
 *
 * It reads a line with the params of nudge.import, a line with a count, and as many lines "COMPONENT KEY". For each
 * further line "WHAT TIMES" it prints a line with the processor time of this thread in nanoseconds.
 */
#define _POSIX_C_SOURCE 200809L

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <nudge.h>

typedef struct {
  nudge_str component, key;
} name;

static void check(nudge_status status) {
  if (status == NUDGE_OK) return;
  fprintf(stderr, "bench: a call was refused: %d\n", (int)status);
  exit(1);
}

static char *line(void) {
  char *text = NULL;
  size_t room = 0;
  ssize_t len = getline(&text, &room, stdin);
  if (len <= 0) exit(0);
  text[len - 1] = 0;
  return text;
}

static nudge_store *filled(const char *params) {
  nudge_config config = {
      .struct_size = sizeof config,
      .max_components = UINT64_MAX,
      .max_hints_per_component = UINT64_MAX,
      .max_hints = UINT64_MAX,
      .max_bytes = UINT64_MAX,
      .secret_guard = NUDGE_OFF,
  };
  nudge_store *store = NULL;
  check(nudge_store_new(&config, &store, NULL));
  check(nudge_call(store, nudge_cstr("nudge.import"), nudge_cstr(params), NULL, NULL, NULL));
  return store;
}

/* Makes the context of tests/bench/src/data.rs. */
static nudge_context *place(void) {
  nudge_pair env = {nudge_cstr("CI"), nudge_cstr("1")};
  nudge_context_params params = {
      .struct_size = sizeof params,
      .cwd = nudge_cstr("/work/mono/svc-12/src"),
      .repo = nudge_cstr("https://github.com/acme/mono.git"),
      .branch = nudge_cstr("feature/login"),
      .os = NUDGE_OS_LINUX,
      .env = {&env, 1},
  };
  nudge_context *context = NULL;
  check(nudge_context_new(&params, &context, NULL));
  return context;
}

/* Uses a match as a program would; the sum keeps the compiler from removing the code. */
static size_t use(nudge_match *found, int reasons) {
  size_t sum = nudge_match_value(found).len;
  if (reasons)
    for (size_t at = 0; at < nudge_match_reason_count(found); at++) sum += nudge_match_reason(found, at).len;
  nudge_match_free(found);
  return sum;
}

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

int main(void) {
  nudge_store *store = filled(line());
  nudge_context *context = place();
  nudge_view *view = NULL;
  check(nudge_view_new(store, context, &view, NULL));
  size_t count = (size_t)strtoull(line(), NULL, 10), step = 0, sum = 0;
  name *names = calloc(count, sizeof *names);
  if (!count || !names) return 1;
  for (size_t at = 0; at < count; at++) {
    char *component = line(), *space = strchr(component, ' ');
    *space = 0;
    names[at] = (name){nudge_cstr(component), nudge_cstr(space + 1)};
  }
  for (;;) {
    char *command = line();
    size_t times = (size_t)strtoull(strchr(command, ' '), NULL, 10);
    int by_view = command[0] == 'v', reasons = command[0] == 'r';
    free(command);
    uint64_t start = now();
    for (size_t at = 0; at < times; at++, step++) {
      const name *asked = &names[step % count];
      nudge_match *found = NULL;
      if (by_view || reasons) {
        check(nudge_view_get(view, asked->component, asked->key, &found, NULL));
      } else {
        nudge_get_params params = {sizeof params, asked->component, asked->key, context};
        check(nudge_get(store, &params, &found, NULL));
      }
      sum += use(found, reasons);
    }
    printf("%llu %zu\n", (unsigned long long)(now() - start), sum);
    fflush(stdout);
  }
}
