# From the paper to its figure, and to a notebook to experiment with.
# Run it in an empty folder: bash student.sh
set -eu

psconrl solve marsrover-4x4 --plot optimum.png
psconrl explain marsrover-4x4 --state "(3,2)"
psconrl learn marsrover-4x4 --horizon 11000 --plot learned.png
psconrl reproduce figure1 --quick --out figures
cp "$(dirname "$0")/../first_steps.ipynb" . # open it with Jupyter, and change a limit
jupyter execute first_steps.ipynb
