/* A library whose interpreter does not start answers, and always the same */
#include "expect.h"

int main(void) {
  tessContext_t context = NULL;
  int major = -1, minor = -1, patch = -1;
  size_t needed = 77;
  EXPECT(TESS_ERR_NOT_INITIALIZED, tessGetVersion(&major, &minor, &patch));
  EXPECT(TESS_ERR_NOT_INITIALIZED, tessInit(&context));
  EXPECT(TESS_ERR_NOT_INITIALIZED, tessStreamSynchronize(NULL));
  EXPECT(TESS_ERR_NOT_INITIALIZED, tessxReset());
  EXPECT(TESS_ERR_NOT_INITIALIZED, tessxHello(NULL, 0, &needed));
  HOLDS(context == NULL && major == -1 && needed == 77);
  HOLDS(tessGetApi() != NULL);
  return failures != 0;
}
