"""From rows to rounds: what each row is, which faults it has, and what it reveals."""
