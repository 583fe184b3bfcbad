/*
 * Tests a store that is the machine's running session: `session NUDGE DEMO FOLDER`, with the binary, the binary with
 * one more source, and an empty folder. It starts real servers there, kills them, and continues with the same handle.
 */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kit.h"

static const nudge_str NONE = {NULL, 0};
static const char *binary, *folder;

typedef struct {
  pid_t pid;
  int stdin_end;
} server;

/* Starts `nudge serve`, which lives as long as its stdin is open. */
static server serve(void) {
  int ends[2];
  CHECK(!pipe(ends));
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    dup2(ends[0], 0);
    close(ends[0]);
    close(ends[1]);
    if (!freopen("/dev/null", "w", stdout)) _exit(9);
    execl(binary, "nudge", "serve", "--port", "0", "--runtime-dir", folder, (char *)NULL);
    _exit(9);
  }
  close(ends[0]);
  return (server){pid, ends[1]};
}

static void killed(server *one) {
  kill(one->pid, SIGKILL);
  CHECK(waitpid(one->pid, NULL, 0) == one->pid);
  close(one->stdin_end);
}

static void pause_a_moment(void) {
  struct timespec moment = {0, 2000000};
  nanosleep(&moment, NULL);
}

/* Waits for a session; returns NULL if none comes. */
static nudge_store *connected(void) {
  nudge_store *session = NULL;
  for (int tries = 0; tries < 5000 && !session; tries++) {
    if (nudge_connect(S(folder), S("nudge-c-test/1"), &session, NULL) != NUDGE_OK) pause_a_moment();
  }
  return session;
}

static void nobody_there(void) {
  nudge_store *session = NULL;
  nudge_error *error = NULL;
  nudge_status status = nudge_connect(S(folder), NONE, &session, &error);
  CHECK(refused(status, &error, NUDGE_E_UNAVAILABLE, "nudge serve"));
  status = nudge_connect(S("/dev/null/nowhere"), NONE, &session, &error);
  CHECK(status != NUDGE_OK && nudge_error_message(error).len > 0);
  nudge_error_free(error);
  /* The environment names the folder if the caller does not. */
  CHECK(!setenv("NUDGE_RUNTIME_DIR", folder, 1));
  error = NULL;
  status = nudge_connect(NONE, NONE, &session, &error);
  CHECK(refused(status, &error, NUDGE_E_UNAVAILABLE, "nudge serve"));
  CHECK(!session);
}

static void same_methods(const nudge_store *session) {
  nudge_result *result = NULL;
  nudge_str text = NONE;
  CHECK(nudge_call(session, S("nudge.status"), NONE, NULL, &result, NULL) == NUDGE_OK);
  CHECK(nudge_result_text(result, S("/role"), &text, NULL) == NUDGE_OK && is(text, "PRIMARY"));
  nudge_result_free(result);
  set_text(session, "api", "build", "make api");
  nudge_match *found = NULL;
  nudge_get_params get = {sizeof get, S("api"), S("build"), NULL};
  CHECK(nudge_get(session, &get, &found, NULL) == NUDGE_OK);
  CHECK(is(nudge_match_value(found), "make api") && is(nudge_match_reason(found, 0), "no scope: applies everywhere"));
  nudge_parts parts = nudge_match_parts(found);
  CHECK(nudge_match_score(found) > 0 && parts.priority > 0 && nudge_match_version(found) == 1 && nudge_match_is_secret(found) == 0);
  CHECK(holds(nudge_match_json(found), "\"match_explain\""));
  nudge_match_free(found);
  nudge_bump_params bump = {.struct_size = sizeof bump, .component = S("api"), .key = S("build"), .delta = 3};
  double uses = 0;
  CHECK(nudge_bump(session, &bump, &result, NULL) == NUDGE_OK);
  CHECK(nudge_result_number(result, S("/hint/use_count"), &uses, NULL) == NUDGE_OK && uses == 3);
  nudge_result_free(result);
  nudge_error *error = NULL;
  get.key = S("nothing");
  CHECK(refused(nudge_get(session, &get, &found, &error), &error, NUDGE_E_NOT_FOUND, "stored"));
  get.key = S("");
  CHECK(refused(nudge_get(session, &get, &found, &error), &error, NUDGE_E_INVALID, "bytes"));
  nudge_delete_params delete = {.struct_size = sizeof delete, .component = S("api"), .key = S("nothing")};
  CHECK(refused(nudge_delete(session, &delete, NULL, &error), &error, NUDGE_E_NOT_FOUND, "stored"));
  /* The session records the name of the client. */
  set_text(session, "api", "gone", "x");
  delete.key = S("gone");
  CHECK(nudge_delete(session, &delete, NULL, NULL) == NUDGE_OK);
  CHECK(nudge_call(session, S("nudge.deletions"), NONE, NULL, &result, NULL) == NUDGE_OK);
  CHECK(holds(nudge_result_json(result), "nudge-c-test/1"));
  nudge_result_free(result);
}

/* A session gets only the environment variables that a hint asks for, and these are enough. */
static void the_environment_counts(const nudge_store *session) {
  nudge_str required = S("NUDGE_C_STAGE");
  nudge_pair match = {S("NUDGE_C_STAGE"), S("dev")};
  nudge_scope scope = {.struct_size = sizeof scope, .env_required = {&required, 1}, .env_match = {&match, 1}};
  nudge_set_params set = {.struct_size = sizeof set,
                          .component = S("env"),
                          .key = S("run"),
                          .value = S("make run"),
                          .scope = &scope};
  CHECK(nudge_set(session, &set, NULL, NULL) == NUDGE_OK);
  for (int at = 0; at < 3; at++) {
    if (at == 0) CHECK(!unsetenv("NUDGE_C_STAGE"));
    if (at == 1) CHECK(!setenv("NUDGE_C_STAGE", "prod", 1));
    if (at == 2) CHECK(!setenv("NUDGE_C_STAGE", "dev", 1));
    nudge_context *here = NULL;
    nudge_view *view = NULL;
    nudge_match *found = NULL;
    nudge_str files[] = {S("src/env/main.c")};
    CHECK(nudge_context_detect(NONE, (nudge_strs){files, 1}, &here, NULL) == NUDGE_OK);
    nudge_get_params get = {sizeof get, S("env"), S("run"), here};
    nudge_status expected = at == 2 ? NUDGE_OK : NUDGE_E_NOT_FOUND;
    CHECK(nudge_get(session, &get, &found, NULL) == expected);
    if (found) {
      CHECK(is(nudge_match_reason(found, 1), "env NUDGE_C_STAGE=dev matched"));
      CHECK(is(nudge_match_reason(found, 2), "open file src/env/main.c is in env"));
    }
    nudge_match_free(found);
    found = NULL;
    CHECK(nudge_view_new(session, here, &view, NULL) == NUDGE_OK);
    CHECK(nudge_view_get(view, get.component, get.key, &found, NULL) == expected);
    nudge_match_free(found);
    nudge_view_free(view);
    nudge_bump_params bump = {
        .struct_size = sizeof bump, .component = get.component, .key = get.key, .context = here};
    CHECK(nudge_bump(session, &bump, NULL, NULL) == expected);
    nudge_str params = S("{\"component\":\"env\",\"key\":\"run\"}");
    CHECK(nudge_call(session, S("nudge.get_hint"), params, here, NULL, NULL) == expected);
    nudge_context_free(here);
  }
}

/* A forked child opens its own connection, and the parent keeps its own. */
static void a_fork_asks_too(const nudge_store *session) {
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    set_text(session, "fork", "child", "was here");
    /* The child must not close the parent's connection, which valgrind would report as a leak of the child. */
    execlp("true", "true", (char *)NULL);
    _exit(1);
  }
  int status = 1;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  nudge_match *found = NULL;
  nudge_get_params get = {sizeof get, S("fork"), S("child"), NULL};
  CHECK(nudge_get(session, &get, &found, NULL) == NUDGE_OK);
  nudge_match_free(found);
}

typedef struct {
  const nudge_store *session;
  int number;
} caller;

static void *call_often(void *given) {
  const caller *own = given;
  for (int at = 0; at < 50; at++) {
    char key[32];
    snprintf(key, sizeof key, "key-%d-%d", own->number, at);
    set_text(own->session, "threads", key, key);
    nudge_match *found = NULL;
    nudge_get_params get = {sizeof get, S("threads"), S(key), NULL};
    CHECK(nudge_get(own->session, &get, &found, NULL) == NUDGE_OK && is(nudge_match_value(found), key));
    nudge_match_free(found);
  }
  return NULL;
}

/* Threads share the connection. */
static void threads_ask_at_once(const nudge_store *session) {
  enum { THREADS = 4 };
  pthread_t all[THREADS];
  caller callers[THREADS];
  for (int at = 0; at < THREADS; at++) {
    callers[at] = (caller){session, at};
    CHECK(!pthread_create(&all[at], NULL, call_often, &callers[at]));
  }
  for (int at = 0; at < THREADS; at++) CHECK(!pthread_join(all[at], NULL));
}

/* A program calls the methods of other sources by name; the library knows none of them. */
static void other_sources(const nudge_store *session) {
  nudge_result *result = NULL;
  nudge_str text = NONE, params = S("{\"name\":\"kettle\",\"text\":\"put the kettle on\"}");
  double count = 0;
  CHECK(nudge_call(session, S("nudge.demo.add"), params, NULL, &result, NULL) == NUDGE_OK);
  CHECK(nudge_result_number(result, S("/count"), &count, NULL) == NUDGE_OK && count == 1);
  nudge_result_free(result);
  params = S("{\"name\":\"kettle\"}");
  CHECK(nudge_call(session, S("nudge.demo.get"), params, NULL, &result, NULL) == NUDGE_OK);
  CHECK(nudge_result_text(result, S("/text"), &text, NULL) == NUDGE_OK && is(text, "put the kettle on"));
  nudge_result_free(result);
  params = S("{\"query\":\"where is the kettle?\"}");
  CHECK(nudge_call(session, S("nudge.recall"), params, NULL, &result, NULL) == NUDGE_OK);
  CHECK(nudge_result_text(result, S("/items/0/source"), &text, NULL) == NUDGE_OK && is(text, "demo"));
  nudge_result_free(result);
  result = NULL;
  nudge_error *error = NULL;
  params = S("{\"name\":\"nothing\"}");
  nudge_status status = nudge_call(session, S("nudge.demo.get"), params, NULL, &result, &error);
  CHECK(refused(status, &error, NUDGE_E_NOT_FOUND, "note"));
  status = nudge_call(session, S("nudge.demo.get"), S("{}"), NULL, &result, &error);
  CHECK(refused(status, &error, NUDGE_E_INVALID, "name"));
  for (int at = 0; at < 2; at++) {
    nudge_str method = at ? S("nudge.nothing.get") : S("nudge.demo.nothing");
    status = nudge_call(session, method, params, NULL, &result, NULL);
    CHECK(status == NUDGE_E_UNKNOWN_METHOD);
    status = nudge_call(session, method, params, NULL, &result, &error);
    CHECK(refused(status, &error, NUDGE_E_UNKNOWN_METHOD, "nudge.methods"));
  }
  CHECK(!result);
}

int main(int count, char **words) {
  CHECK(count == 4);
  binary = words[1];
  folder = words[3];
  char data[4096];
  CHECK(snprintf(data, sizeof data, "%s-data", folder) < (int)sizeof data && !setenv("NUDGE_DATA_DIR", data, 1));
  signal(SIGPIPE, SIG_IGN);
  nobody_there();

  server first = serve();
  nudge_store *session = connected();
  CHECK(session);
  same_methods(session);
  the_environment_counts(session);
  a_fork_asks_too(session);
  threads_ask_at_once(session);

  /* The server is killed and a PROXY takes over: no data is lost, and the handle still works. */
  server second = serve();
  for (int tries = 0; tries < 5000; tries++) {
    nudge_result *result = NULL;
    CHECK(nudge_call(session, S("nudge.status"), NONE, NULL, &result, NULL) == NUDGE_OK);
    size_t proxies = 0;
    CHECK(nudge_result_count(result, S("/proxies"), &proxies, NULL) == NUDGE_OK);
    nudge_result_free(result);
    if (proxies) break;
    pause_a_moment();
  }
  killed(&first);
  nudge_match *found = NULL;
  nudge_get_params get = {sizeof get, S("api"), S("build"), NULL};
  CHECK(nudge_get(session, &get, &found, NULL) == NUDGE_OK && is(nudge_match_value(found), "make api"));
  set_text(session, "api", "test", "make test");

  /* The last server is killed: calls get a clear refusal, and matches stay readable. */
  killed(&second);
  nudge_error *error = NULL;
  nudge_match *none = NULL;
  CHECK(refused(nudge_get(session, &get, &none, &error), &error, NUDGE_E_UNAVAILABLE, " "));
  nudge_set_params set = {.struct_size = sizeof set, .component = S("a"), .key = S("b"), .value = S("c")};
  CHECK(refused(nudge_set(session, &set, NULL, &error), &error, NUDGE_E_UNAVAILABLE, " "));
  CHECK(!none && is(nudge_match_value(found), "make api"));
  nudge_match_free(found);

  /* The same handle reaches a new session. */
  server third = serve();
  nudge_store *fresh = connected();
  CHECK(fresh);
  nudge_store_free(fresh);
  CHECK(nudge_get(session, &get, &none, NULL) == NUDGE_E_NOT_FOUND);
  set_text(session, "api", "build", "anew");
  CHECK(nudge_call(session, S("nudge.demo.list"), NONE, NULL, NULL, NULL) == NUDGE_E_UNKNOWN_METHOD);
  killed(&third);

  /* The server of the next session has one more source. */
  binary = words[2];
  server fourth = serve();
  fresh = connected();
  CHECK(fresh);
  nudge_store_free(fresh);
  other_sources(session);
  killed(&fourth);
  nudge_store_free(session);
  return 0;
}
