/* pyop/version.h: which pyop this is, for C code that is compiled beside it. Plain C, no Python needed. */
#ifndef PYOP_VERSION_H
#define PYOP_VERSION_H

#define PYOP_VERSION_MAJOR 0
#define PYOP_VERSION_MINOR 1
#define PYOP_VERSION_PATCH 0

#endif /* PYOP_VERSION_H */
