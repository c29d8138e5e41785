"""What is proven of a plan: its certificate, how it is found and checked, and files of proofs."""
