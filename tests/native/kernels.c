/* Kernels that tests/native compiles. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

double plus(double a, double b) { return a + b; }
float timesf(float a, float b) { return a * b; }
double ratio(double a, double b) { return a / b; }
int64_t mixed(int8_t a, double x, uint16_t b, float y, bool c, int64_t d) {
    return a * 1000000 + (int64_t)(x * 10) * 10000 + b * 100 + (int64_t)(y * 10) + c + d;
}
float narrow(int a, float x) { return (float)a * x; }
bool positive(double x) { return x > 0; }
int8_t wraps(int a) { return (int8_t)a; }
double four(double a, double b, double c, double d) { return a + 10 * b + 100 * c + 1000 * d; }

static volatile int64_t calls;
int64_t count_calls(void) { return calls; }
double counted(double x) {
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    return x;
}

/* Refuses negative numbers with the status 7. */
int roots(char* const* args, const intptr_t* sizes, const intptr_t* strides, void* data) {
    (void)data;
    for (intptr_t i = 0; i < sizes[0]; ++i) {
        const double x = *(const double*)(args[0] + i * strides[0]);
        if (x < 0) return 7;
        *(double*)(args[1] + i * strides[1]) = sqrt(x);
    }
    return 0;
}

/* (m,n),(n)->(m) */
int product(char* const* args, const intptr_t* sizes, const intptr_t* strides, void* data) {
    (void)data;
    const intptr_t m = sizes[1], n = sizes[2];
    for (intptr_t k = 0; k < sizes[0]; ++k)
        for (intptr_t i = 0; i < m; ++i) {
            double sum = 0;
            for (intptr_t j = 0; j < n; ++j)
                sum += *(const double*)(args[0] + k * strides[0] + i * strides[3] + j * strides[4]) *
                       *(const double*)(args[1] + k * strides[1] + j * strides[5]);
            *(double*)(args[2] + k * strides[2] + i * strides[6]) = sum;
        }
    return 0;
}

/* ()->(),() as NumPy's own loops are: it advances its pointers. */
void split(char** args, const intptr_t* sizes, const intptr_t* strides, void* data) {
    (void)data;
    for (intptr_t i = 0; i < sizes[0]; ++i) {
        *(double*)args[1] = modf(*(const double*)args[0], (double*)args[2]);
        for (int k = 0; k < 3; ++k) args[k] += strides[k];
    }
}
