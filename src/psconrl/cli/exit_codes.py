"""Exit codes of the commands; 0 is success."""

REFUSED = 1  # a proof or a submission is not right, or a run failed
BAD_INPUT = 2  # a mistake of the user, said in one line
INFEASIBLE = 3
UNCERTIFIED = 4
INTERRUPTED = 130  # by Ctrl-C
