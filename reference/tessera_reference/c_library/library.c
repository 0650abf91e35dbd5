/*
 * What every function of libtessera does before and after its work in Python: start the interpreter once, let one call
 * in at a time, and compute by IEEE 754's default rules whatever the program has chosen for itself. Below, what Python
 * asks of the process. The functions themselves are generated (c_source.py) and stand behind this text.
 *
 * BUILT_BY is the path of the Python that built the library.
 */

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#else
#include <fenv.h>
#endif

#define EXPORTED __attribute__((visibility("default")))
#define ALIVE 0x7e55 /* what py_alive answers: cffi makes every function of an interpreter that did not start return 0 */

extern char** environ;

/* ---- The interpreter ---- */

static int fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("libtessera: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  return 0;
}

static int is_program(char* path, size_t size, const char* folder, const char* name) {
  int length = snprintf(path, size, "%s/%s", folder, name);
  return length > 0 && (size_t)length < size && access(path, X_OK) == 0;
}

/* A Python in the folders above the library: that of a virtual environment, or any */
static int find_above(char* path, size_t size, int any) {
  static const char version[] = "bin/python" Py_STRINGIFY(PY_MAJOR_VERSION) "." Py_STRINGIFY(PY_MINOR_VERSION);
  char folder[PATH_MAX], marker[PATH_MAX];
  char* slash;
  Dl_info library;
  if (!dladdr((void*)&find_above, &library) || !realpath(library.dli_fname, folder)) return 0;
  while ((slash = strrchr(folder, '/')) && slash != folder) {
    int is_environment;
    *slash = 0;
    is_environment = snprintf(marker, sizeof marker, "%s/pyvenv.cfg", folder) > 0 && access(marker, R_OK) == 0;
    if ((is_environment && is_program(path, size, folder, "bin/python3")) ||
        (any && is_program(path, size, folder, version)))
      return 1;
  }
  return 0;
}

/* The Python to run: TESSERA_PYTHON, that of the environment around the library, that which built it, any near it */
static int find_python(char* path, size_t size) {
  const char* told = getenv("TESSERA_PYTHON");
  if (told && *told) {
    if (strlen(told) >= size || access(told, X_OK))
      return fail("TESSERA_PYTHON is %s, which cannot be run; expected the path of a Python", told);
    strcpy(path, told);
    return 1;
  }
  if (find_above(path, size, 0)) return 1;
  if (access(BUILT_BY, X_OK) == 0 && strlen(BUILT_BY) < size) {
    strcpy(path, BUILT_BY);
    return 1;
  }
  if (find_above(path, size, 1)) return 1;
  return fail("no Python was found, not even " BUILT_BY ", by which this library was built; set TESSERA_PYTHON to one");
}

/* Isolated: neither variables PYTHON... nor the locale nor the current directory count, and signals stay the program's */
static int initialize(const char* python) {
  PyPreConfig before;
  PyConfig config;
  PyStatus status;
  PyPreConfig_InitIsolatedConfig(&before);
  before.utf8_mode = 1;
  status = Py_PreInitialize(&before);
  if (!PyStatus_Exception(status)) {
    PyConfig_InitIsolatedConfig(&config);
    status = PyConfig_SetBytesString(&config, &config.program_name, python);
    if (!PyStatus_Exception(status)) status = PyConfig_SetBytesString(&config, &config.executable, python);
    if (!PyStatus_Exception(status)) status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
  }
  if (PyStatus_Exception(status))
    return fail("%s does not start: %s", python, status.err_msg ? status.err_msg : "no reason was given");
  PyEval_SaveThread();
  return 1;
}

static int can_import(const char* python, const char* name) {
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject* module = PyImport_ImportModule(name);
  if (!module) {
    PyObject *type, *value, *traceback, *text;
    const char* message;
    PyErr_Fetch(&type, &value, &traceback);
    text = value ? PyObject_Str(value) : NULL;
    message = text ? PyUnicode_AsUTF8(text) : NULL;
    fail("%s cannot import %s (%s); expected a Python " Py_STRINGIFY(PY_MAJOR_VERSION) "." Py_STRINGIFY(
             PY_MINOR_VERSION) " with tessera-conformance[cabi], which TESSERA_PYTHON may name",
         python, name, message ? message : "no reason was given");
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
  }
  Py_XDECREF(module);
  PyGILState_Release(state);
  return module != NULL;
}

static int alive;

static void start(void) {
  char python[PATH_MAX] = "the program";
  Dl_info of_python;
  /* A library that was loaded locally hides the symbols that extension modules need */
  if (dladdr((void*)&Py_IsInitialized, &of_python)) dlopen(of_python.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  if (!Py_IsInitialized() && !(find_python(python, sizeof python) && initialize(python))) return;
  alive = can_import(python, "_cffi_backend") && can_import(python, "tessera_reference.c_library.serving") &&
          py_alive() == ALIVE;
}

/* ---- One call at a time ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

#if defined(__SSE__)
typedef unsigned Arithmetic;
#define DEFAULT_CONTROL 0x1f80u /* round to nearest, keep subnormals, mask exceptions; the six flags are not control */
static void take_default(Arithmetic* saved) {
  *saved = _mm_getcsr();
  if ((*saved & ~0x3fu) != DEFAULT_CONTROL) _mm_setcsr(DEFAULT_CONTROL);
}
static void give_back(const Arithmetic* saved) {
  if ((*saved & ~0x3fu) != DEFAULT_CONTROL) _mm_setcsr(*saved);
}
#else
typedef fenv_t Arithmetic;
static void take_default(Arithmetic* saved) {
  fegetenv(saved);
  fesetenv(FE_DFL_ENV);
}
static void give_back(const Arithmetic* saved) { fesetenv(saved); }
#endif

static int enter(Arithmetic* saved) {
  take_default(saved);
  pthread_once(&once, start);
  if (!alive) {
    give_back(saved);
    return 0;
  }
  pthread_mutex_lock(&one_at_a_time);
  return 1;
}

static void leave(const Arithmetic* saved) {
  pthread_mutex_unlock(&one_at_a_time);
  give_back(saved);
}

/* ---- What Python asks of the process ---- */

static uintptr_t page_of(uintptr_t address) { return address & ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1); }

/* Reserves addresses: as many as can be had, so that none has to be given twice. 0 where there are none. */
static uintptr_t process_reserve(uint64_t* bytes) {
  for (*bytes = (uint64_t)1 << 42; *bytes >= (uint64_t)1 << 24; *bytes /= 2) {
    void* found = mmap(NULL, *bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found != MAP_FAILED) return (uintptr_t)found;
  }
  return *bytes = 0;
}

/* Makes zeros at reserved addresses, or nothing again. Each has pages of its own. Returns whether it could. */
static int process_open(uintptr_t address, uint64_t bytes) {
  uintptr_t first = page_of(address);
  return bytes == 0 || mprotect((void*)first, address + bytes - first, PROT_READ | PROT_WRITE) == 0;
}

static int process_close(uintptr_t address, uint64_t bytes) {
  uintptr_t first = page_of(address);
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  return bytes == 0 || mmap((void*)first, address + bytes - first, PROT_NONE, flags, -1, 0) != MAP_FAILED;
}

/* Whether something is mapped at all of these addresses */
static int process_holds(uintptr_t address, uint64_t bytes) {
  unsigned char unused[4096];
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t first = page_of(address);
  const uintptr_t end = address + (bytes ? bytes : 1);
  while (first < end) {
    uintptr_t length = end - first < page * sizeof unused ? end - first : page * sizeof unused;
    if (mincore((void*)first, length, unused)) return 0;
    first += length;
  }
  return 1;
}

/* The environment variables as they are now: NAME=VALUE, NULL behind the last */
static const char* process_variable(size_t place) { return environ ? environ[place] : NULL; }
