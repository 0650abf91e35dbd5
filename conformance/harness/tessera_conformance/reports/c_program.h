/* Exit codes: 0 as expected, 1 a difference still shows, 2 a crash, 3 the answers are others and only the suite can judge
 * them. A difference that hangs on time need not show each time: a case with streams is asked up to three times, each in
 * a process of its own; with an argument, once and in this process.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tessera.h"

static int wrong, judged, undecided, compared, changed;

static void judge(const char* what, int holds) {
  printf("check    %s: %s\n", what, holds ? "as expected" : "not so");
  judged++;
  wrong += !holds;
}

static void judge_bytes(const char* what, const unsigned char* found, const unsigned char* expected, size_t size) {
  size_t first = 0;
  while (first < size && found[first] == expected[first]) first++;
  judge(what, first == size);
  if (first < size) printf("         byte %zu of %zu: %02x, expected %02x\n", first, size, found[first], expected[first]);
}

/* A status, and the one of then where the call succeeded; -1 where it did not, which is judged elsewhere */
static void told(const char* function, tessStatus_t status, int then) {
  if ((int)status != 0 || then == -1) printf("called   %s: status %d\n", function, (int)status);
  changed += then == 0 && (int)status != 0;
}

static void as_then(const unsigned char* found, const unsigned char* then, size_t size) {
  compared++;
  changed += memcmp(found, then, size) != 0;
}

static void only_the_suite(const char* what) {
  printf("check    %s: only the suite can judge it\n", what);
  undecided++;
}

static void put_address(unsigned char* place, const void* address) {
  uint64_t value = (uint64_t)(uintptr_t)address;
  for (int byte = 0; byte < 8; byte++) place[byte] = (unsigned char)(value >> (8 * byte));
}

static int conclude(void) {
  if (wrong || (undecided && compared && !changed)) {
    printf("result   %s\n", wrong ? "a difference still shows" : "the same answers as then");
    return 1;
  }
  if (judged && !undecided) {
    printf("result   as expected\n");
    return 0;
  }
  printf("result   the answers are others than then; only the suite can judge them\n");
  return 3;
}

static int repeated(char* program, int tries, int (*once)(void)) {
  int code = 0;
  if (tries == 1) return once();
  for (int number = 1; number <= tries && code != 1 && code != 2; number++) {
    printf("try      %d of at most %d\n", number, tries);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      char once_only[] = "once", *words[] = {program, once_only, NULL};
      execvp(program, words);
      _exit(2);
    }
    int state = 0;
    if (child < 0 || waitpid(child, &state, 0) < 0) return once();
    int now = WIFEXITED(state) ? WEXITSTATUS(state) : 2;
    if (!WIFEXITED(state)) printf("result   crash: signal %d\n", WTERMSIG(state));
    if (now == 1 || now > code) code = now;
  }
  return code;
}

/* not every program uses all of these */
void tessera_unused(void) { (void)judge_bytes; (void)told; (void)as_then; (void)only_the_suite; (void)put_address; }
