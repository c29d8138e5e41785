# The bits of a number, and the number with given bits: neither arithmetic nor a call.

cdef extern from *:
    """
    #include <string.h>
    static CYTHON_INLINE unsigned long long psconrl_bits_of(double x) {
        unsigned long long n; memcpy(&n, &x, sizeof n); return n;
    }
    static CYTHON_INLINE double psconrl_with_bits(unsigned long long n) {
        double x; memcpy(&x, &n, sizeof x); return x;
    }
    """
    unsigned long long bits_of "psconrl_bits_of"(double x) noexcept nogil
    double with_bits "psconrl_with_bits"(unsigned long long n) noexcept nogil
