"""Random variates and Gibbs steps: gamma, Dirichlet, rates, costs; and the counts behind them."""
