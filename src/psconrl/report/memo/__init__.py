"""The memo: advice from a log as one page for the person who decides."""
