/* Which of the wider instruction sets this processor and its operating system support. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if defined(__x86_64__) || defined(_M_X64)
#define X86 1
#if defined(_MSC_VER)
#include <intrin.h>
#else
#include <cpuid.h>
#endif

/* The registers eax, ebx, ecx, edx of one leaf of CPUID. */
static void leaf(unsigned int number, unsigned int registers[4])
{
#if defined(_MSC_VER)
    __cpuidex((int *)registers, (int)number, 0);
#else
    __cpuid_count(number, 0, registers[0], registers[1], registers[2], registers[3]);
#endif
}

/* Which registers the operating system saves when it switches between processes. */
static unsigned long long saved(void)
{
#if defined(_MSC_VER)
    return _xgetbv(0);
#else
    unsigned int low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return ((unsigned long long)high << 32) | low;
#endif
}

static int has(unsigned int word, int bit)
{
    return (word >> bit) & 1u;
}

/* 0: only what every x86-64 has; 1: AVX2 and all of x86-64-v3; 2: AVX-512 and all of x86-64-v4. */
static int level(void)
{
    unsigned int r[4], basic, wide, bits;
    leaf(0, r);
    if (r[0] < 7)
        return 0;
    leaf(1, r);
    basic = r[2];
    /* FMA, MOVBE, OSXSAVE, AVX, F16C: in that order */
    if (!(has(basic, 12) && has(basic, 22) && has(basic, 27) && has(basic, 28) && has(basic, 29)))
        return 0;
    leaf(0x80000000u, r);
    if (r[0] < 0x80000001u)
        return 0;
    leaf(0x80000001u, r);
    if (!has(r[2], 5)) /* LZCNT */
        return 0;
    leaf(7, r);
    wide = r[1];
    bits = (unsigned int)(saved() & 0xe6);
    /* BMI1, AVX2, BMI2; the system saves the registers of SSE and AVX */
    if (!(has(wide, 3) && has(wide, 5) && has(wide, 8) && (bits & 0x6) == 0x6))
        return 0;
    /* AVX-512 F, DQ, CD, BW, VL */
    if (!(has(wide, 16) && has(wide, 17) && has(wide, 28) && has(wide, 30) && has(wide, 31) && bits == 0xe6))
        return 1;
    return 2;
}
#endif

static PyObject *instruction_sets(PyObject *self, PyObject *ignored)
{
#ifdef X86
    switch (level()) {
    case 2:
        return Py_BuildValue("(ss)", "avx512", "avx2");
    case 1:
        return Py_BuildValue("(s)", "avx2");
    }
#endif
    return PyTuple_New(0);
}

static PyMethodDef methods[] = {
    {"instruction_sets", instruction_sets, METH_NOARGS,
     "instruction_sets() -> tuple[str, ...]\n\nThe wider instruction sets of this processor, the widest first."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_cpu", "What this processor can do.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__cpu(void)
{
    return PyModuleDef_Init(&module);
}
