/*
 * Is a small agent: it looks up its command for its folder, runs it, and reports whether it worked.
 * Built by CMakeLists.txt, or by: cc -std=c11 story.c $(pkg-config --cflags --libs nudge) -o story
 */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <nudge.h>

/* Ends the program if a call was refused. */
static void check(nudge_status status, nudge_error *error) {
  if (status == NUDGE_OK) return;
  nudge_str message = nudge_error_message(error);
  fprintf(stderr, "%.*s\n", (int)message.len, message.ptr);
  nudge_error_free(error);
  exit(1);
}

static void set(const nudge_store *store, const char *key, const char *command, const char *branch) {
  nudge_error *error = NULL;
  nudge_str branches[] = {nudge_cstr(branch)};
  nudge_scope scope = {.struct_size = sizeof scope, .branch = {branches, 1}};
  nudge_set_params params = {
      .struct_size = sizeof params,
      .component = nudge_cstr("api"),
      .key = nudge_cstr(key),
      .value = nudge_cstr(command),
      .scope = branch ? &scope : NULL,
  };
  check(nudge_set(store, &params, NULL, &error), error);
}

static nudge_context *on_branch(const char *branch) {
  nudge_error *error = NULL;
  nudge_context *context = NULL;
  nudge_context_params params = {.struct_size = sizeof params, .branch = nudge_cstr(branch)};
  check(nudge_context_new(&params, &context, &error), error);
  return context;
}

static nudge_match *get(const nudge_store *store, const char *key, const nudge_context *context) {
  nudge_error *error = NULL;
  nudge_match *found = NULL;
  nudge_get_params params = {
      .struct_size = sizeof params,
      .component = nudge_cstr("api"),
      .key = nudge_cstr(key),
      .context = context,
  };
  check(nudge_get(store, &params, &found, &error), error);
  return found;
}

static void show(const char *title, const nudge_match *found) {
  nudge_str command = nudge_match_value(found);
  printf("%s: %.*s\n  because ", title, (int)command.len, command.ptr);
  for (size_t at = 0; at < nudge_match_reason_count(found); at++) {
    nudge_str reason = nudge_match_reason(found, at);
    printf("%s%.*s", at ? ", " : "", (int)reason.len, reason.ptr);
  }
  printf("\n");
}

/* Runs a command, prints its output indented, and returns its exit code. */
static int run(nudge_str command) {
  char line[256];
  snprintf(line, sizeof line, "%.*s", (int)command.len, command.ptr);
  FILE *output = popen(line, "r");
  if (!output) exit(1);
  while (fgets(line, sizeof line, output)) printf("  %s", line);
  int status = pclose(output);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Writes a text as JSON; `to` needs room for six bytes for each byte, and three more. */
static void quote(char *to, nudge_str text) {
  *to++ = '"';
  for (size_t at = 0; at < text.len; at++) {
    unsigned char byte = (unsigned char)text.ptr[at];
    if (byte == '"' || byte == '\\') *to++ = '\\';
    if (byte < 0x20) to += sprintf(to, "\\u%04x", byte);
    else *to++ = (char)byte;
  }
  strcpy(to, "\"");
}

static void report(const nudge_store *store, nudge_str command, int exit_code, const nudge_context *context) {
  nudge_error *error = NULL;
  char quoted[2048], params[2200];
  if (command.len > 256) exit(1);
  quote(quoted, command);
  snprintf(params, sizeof params, "{\"command\":%s,\"ok\":%s,\"exit_code\":%d}", quoted,
           exit_code == 0 ? "true" : "false", exit_code);
  check(nudge_call(store, nudge_cstr("nudge.outcome"), nudge_cstr(params), context, NULL, &error), error);
}

/* Runs the command of a match, and tells the store whether it worked. */
static void try_it(const nudge_store *store, const nudge_match *found, const nudge_context *context) {
  nudge_str command = nudge_match_value(found);
  report(store, command, run(command), context);
}

static double uses(const nudge_store *store, const nudge_context *context) {
  nudge_error *error = NULL;
  nudge_result *result = NULL;
  double count = 0;
  nudge_str params = nudge_cstr("{\"component\":\"api\",\"key\":\"build\"}");
  check(nudge_call(store, nudge_cstr("nudge.get_hint"), params, context, &result, &error), error);
  /* The field is missing before the first use. */
  nudge_result_number(result, nudge_cstr("/hint/use_count"), &count, NULL);
  nudge_result_free(result);
  return count;
}

int main(void) {
  nudge_error *error = NULL;
  nudge_store *store = NULL;
  check(nudge_store_new(NULL, &store, &error), error);
  set(store, "build", "echo building for everybody", NULL);
  set(store, "build", "echo building the dev branch", "dev");
  set(store, "test", "exit 3", NULL);

  const char *branches[] = {"main", "dev"};
  nudge_context *here[] = {on_branch("main"), on_branch("dev")};
  for (int at = 0; at < 2; at++) {
    nudge_match *found = get(store, "build", here[at]);
    show(branches[at], found);
    try_it(store, found, here[at]);
    nudge_match_free(found);
  }

  for (int times = 0; times < 3; times++) {
    nudge_match *found = get(store, "test", here[0]);
    try_it(store, found, here[0]);
    nudge_match_free(found);
  }
  nudge_match *failing = get(store, "test", here[0]);
  show("test", failing);
  nudge_match_free(failing);

  double count = uses(store, here[1]);
  printf("build was used %.0f %s on dev\n", count, count == 1 ? "time" : "times");

  nudge_context_free(here[0]);
  nudge_context_free(here[1]);
  nudge_store_free(store);
  return 0;
}
