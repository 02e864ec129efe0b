"""Theorem 9 of the JMMD paper is about populations: for estimates with a regularizer it need not hold.

Read here as E |delta(X)|^2 <= sup k_X * CMMD^2, where delta(x) is the difference of the embeddings of the data's and
the model's distribution at x: |delta(x)| = |(U - U') phi(x)| is at most |U - U'| times |phi(x)|, for U and U' are
operators that give the embeddings exactly. The left side is AMMD^2 with its constant. From a file, CMMD^2 is estimated
by ridge regressions, whose operators shrink what varies fast along the input, the more so the larger lambda is; AMMD^2
shrinks nothing. So for y = sin 4x and a model that predicts the marginal distribution of y at every input, the sides
change places at the paper's lambda = 0.1. What the regressions still see, mean CCE^2, always obeys the inequality.

    python examples/theorem9.py
"""

import numpy as np

from calcheck.discrepancies import ammd, cmmd, mcmd

ROWS = 40
LAMBDAS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)


def main() -> None:
    """Print both sides for several regularizers and kernels on the input; k_X(x, x) = 1."""
    x = 2 * np.pi * (np.arange(ROWS) + 0.5) / ROWS
    y = np.sin(4 * x)
    draws = np.tile(y, (ROWS, 1))  # every target, at every input: the marginal distribution
    everywhere = np.repeat(x, ROWS), draws.ravel()
    left = float(ammd(y, draws, statistic="v", constant=True))
    print("gamma_x  lambda  mean CCE^2   CMMD^2   mean |delta|^2")
    for gamma_x in (0.5, 1.0):
        for lambda_ in LAMBDAS:
            right = float(cmmd(x, y, draws, gamma_x=gamma_x, lambda_=lambda_))
            squares = mcmd(x, y, *everywhere, x, gamma_x=gamma_x, gamma_y=0.5, lambda_=lambda_, squared=True)
            verdict = "<= CMMD^2" if left <= right else "> CMMD^2: Theorem 9 does not carry over"
            print(f"{gamma_x:<7}  {lambda_:<6}  {squares.mean():10.4f}  {right:7.3f}   {left:.3f} {verdict}")


if __name__ == "__main__":
    main()
