/* For Microsoft's compiler: a*b + c is rounded twice. */
#pragma fp_contract(off)
